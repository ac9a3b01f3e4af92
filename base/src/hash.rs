//! Stable hashes: the same on every machine, in every build, for ever. Their vectors are frozen by tests.

/// The ancestor's 64-bit name hash, over UTF-16 units. Protocol ids come from it.
pub const fn hash64(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let mut h = NAME_SEED;
    let mut i = 0;
    while i < bytes.len() {
        let (code, len) = decode_utf8(bytes, i);
        if code < 0x1_0000 {
            h = name_step(h, code);
        } else {
            let v = code - 0x1_0000;
            h = name_step(h, 0xd800 + (v >> 10));
            h = name_step(h, 0xdc00 + (v & 0x3ff));
        }
        i += len;
    }
    h
}

/// The ancestor's 32-bit name hash: [`hash64`] folded with an arithmetic shift.
pub const fn hash32(name: &str) -> i32 {
    let h = hash64(name) as i64;
    (h ^ (h >> 32)) as i32
}

const NAME_SEED: u64 = 3_074_457_345_618_258_791;
const NAME_FACTOR: u64 = 3_074_457_345_618_258_799;

const fn name_step(h: u64, unit: u32) -> u64 {
    h.wrapping_add(unit as u64).wrapping_mul(NAME_FACTOR)
}

/// Reads one character of a `&str`, which is valid UTF-8 by its type. `const`, unlike `str::chars`.
const fn decode_utf8(bytes: &[u8], at: usize) -> (u32, usize) {
    let b0 = bytes[at] as u32;
    if b0 < 0x80 {
        (b0, 1)
    } else if b0 < 0xe0 {
        ((b0 & 0x1f) << 6 | (bytes[at + 1] as u32 & 0x3f), 2)
    } else if b0 < 0xf0 {
        ((b0 & 0x0f) << 12 | (bytes[at + 1] as u32 & 0x3f) << 6 | (bytes[at + 2] as u32 & 0x3f), 3)
    } else {
        let tail = (bytes[at + 1] as u32 & 0x3f) << 12 | (bytes[at + 2] as u32 & 0x3f) << 6;
        ((b0 & 0x07) << 18 | tail | (bytes[at + 3] as u32 & 0x3f), 4)
    }
}

/// Spreads the bits of a number over 64 bits (the finalizer of SplitMix64). A bijection.
pub const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Hashes bytes so widely that the hash may stand for them: XXH3 with 128 bits.
pub fn wide(data: &[u8]) -> u128 {
    xxhash_rust::xxh3::xxh3_128(data)
}

/// Hashes bytes for routing: FNV-1a, then [`mix`].
pub const fn bytes(data: &[u8]) -> u64 {
    mix(fnv(0xcbf2_9ce4_8422_2325, data))
}

/// Hashes several byte strings as one, each closed by its length, so that ("ab","c") differs from ("a","bc").
pub fn parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        h = fnv(h, part);
        h = fnv(h, &(part.len() as u64).to_le_bytes());
    }
    mix(h)
}

const fn fnv(mut h: u64, data: &[u8]) -> u64 {
    let mut i = 0;
    while i < data.len() {
        h = (h ^ data[i] as u64).wrapping_mul(0x100_0000_01b3);
        i += 1;
    }
    h
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by an independent program; a change here moves every player to another provider.
    ///
    /// Holds: Z-18.
    #[test]
    fn routing_hashes_are_frozen() {
        assert_eq!(bytes(b""), 0xf52a_15e9_a9b5_e89b);
        assert_eq!(bytes(b"acc1"), 0x34c7_9216_96ac_303d);
        assert_eq!(bytes(b"player-7"), 0x8cfb_55c3_240e_d79c);
    }

    /// Computed by an independent program; a change here gives the arbiter other records than the storages have.
    #[test]
    fn wide_hashes_are_frozen() {
        assert_eq!(wide(b""), 0x99aa_06d3_0147_98d8_6001_c324_468d_497f);
        assert_eq!(wide(b"acc1"), 0x1b7b_2125_d202_f5e8_d09b_4674_3e1e_34c7);
        assert_eq!(wide(&[0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 42]), 0x038b_1e3b_1bed_86e5_766d_9737_3daa_4191);
    }

    /// The protocol ids that the ancestor's clients have compiled in.
    #[test]
    fn name_hashes_are_the_ancestors() {
        assert_eq!(hash32("Zeze.Services.Handshake.SHandshake0"), -2018202792);
        assert_eq!(hash32("Zezex.Linkd.Auth"), -997899722);
        assert_eq!(hash32("Zeze.Builtin.LinkdBase.ReportError"), 918874807);
    }

    #[test]
    fn name_hashes_go_over_utf16_units() {
        let units = |s: &str| s.encode_utf16().fold(NAME_SEED, |h, u| name_step(h, u.into()));
        for name in ["", "a", "é", "房间", "🎲x"] {
            assert_eq!(hash64(name), units(name), "{name}");
        }
    }

    #[test]
    fn parts_are_kept_apart() {
        assert_ne!(parts([&b"ab"[..], b"c"]), parts([&b"a"[..], b"bc"]));
    }
}
