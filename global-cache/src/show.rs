//! How operators see records: the table by its id, the key as text where it is text, and as bytes otherwise.

use serde_json::{Value, json};

use crate::arbiter::Mode;
use crate::server::{Lock, Record};

/// Bytes of a table's id before a record's key.
const TABLE_BYTES: usize = 4;

/// A record that is waited for often, and who has it now.
pub fn lock(lock: &Lock) -> Value {
    let mut value = record(&lock.key, &lock.record);
    value["per_second"] = json!((lock.per_second * 100.0).round() / 100.0);
    value
}

/// A record, who holds it and who waits for it. Numbers of grants are texts, since readers of JSON round large ones.
pub fn record(key: &[u8], record: &Record) -> Value {
    let holders: Vec<_> = record
        .holders
        .iter()
        .map(|(node, mode, seq)| json!({"node": node.as_str(), "mode": word(*mode), "seq": seq.to_string()}))
        .collect();
    let waiting: Vec<_> = record
        .waiting
        .iter()
        .map(|(node, want)| json!({"node": node.as_str(), "wants": word(*want)}))
        .collect();
    let (table, key) = split(key);
    json!({
        "table": table,
        "key": key,
        "mode": record.holders.first().map(|(_, mode, _)| word(*mode)),
        "holders": holders,
        "holders_count": record.holders_count,
        "waiting": waiting,
        "waiting_count": record.waiting_count,
    })
}

fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Invalid => "invalid",
        Mode::Share => "share",
        Mode::Modify => "modify",
    }
}

/// The table's id and the key as people write it: text, or `0x` and bytes. `None`: too short to have a table.
fn split(key: &[u8]) -> (Option<u32>, String) {
    match key.split_first_chunk::<TABLE_BYTES>() {
        Some((table, key)) => (Some(u32::from_be_bytes(*table)), written(key)),
        None => (None, written(key)),
    }
}

/// What begins like bytes is written as bytes, so that each form means one key.
fn written(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(text)
            if !text.is_empty()
                && !text.starts_with("0x")
                && key.iter().all(|b| (b' '..=b'~').contains(b)) =>
        {
            text.to_owned()
        }
        _ => {
            let hex = key.iter().map(|byte| format!("{byte:02x}"));
            format!("0x{}", hex.collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_text_where_it_is_and_bytes_where_not() {
        for (key, table, text) in [
            (&b"\0\0\0\x07role/1"[..], Some(7), "role/1"),
            (b"\0\0\x01\0\0\0\0\0\0\0\0\x05", Some(256), "0x0000000000000005"),
            (b"\0\0\0\x01", Some(1), "0x"),
            (b"\0\0\0\x010xff", Some(1), "0x30786666"),
            (b"\0\0\0\x01a\nb", Some(1), "0x610a62"),
            (b"\0\0\0\x01\xc3\xa4", Some(1), "0xc3a4"),
            (b"ab", None, "ab"),
        ] {
            assert_eq!(split(key), (table, text.to_owned()));
        }
    }
}
