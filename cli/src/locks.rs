//! What operators ask of the arbiter: which records are waited for, and who has one.

use clap::{Args, Subcommand};
use node::admin::Client;
use serde_json::Value;

use crate::Failed;
use crate::operate::{Ask, nodes, text, unreachable};

/// What to ask about locks.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the records that are waited for most, over the last minute.
    Top(Top),
}

#[derive(Debug, Args)]
pub struct Top {
    /// How many at most.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    count: u32,
    #[command(flatten)]
    ask: Ask,
}

/// What else `lookup` looks for.
#[derive(Debug, Clone, Subcommand)]
pub enum Lookup {
    /// Show who holds a record, and who waits for it.
    Record(Record),
}

#[derive(Debug, Clone, Args)]
pub struct Record {
    /// The table's number, as `locks top` shows it.
    table: u32,
    /// The record's key as `locks top` shows it: text, or 0x and its bytes.
    #[arg(value_parser = key)]
    key: Key,
    #[command(flatten)]
    ask: Ask,
}

/// The bytes of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key(Vec<u8>);

fn key(text: &str) -> Result<Key, String> {
    let Some(hex) = text.strip_prefix("0x") else { return Ok(Key(text.as_bytes().to_vec())) };
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok()?;
        let digits = pair.len() == 2 && pair.bytes().all(|digit| digit.is_ascii_hexdigit());
        digits.then(|| u8::from_str_radix(pair, 16).ok())?
    };
    let bytes: Option<Vec<u8>> = hex.as_bytes().chunks(2).map(byte).collect();
    bytes.map(Key).ok_or_else(|| "after 0x come two hexadecimal digits for each byte".to_owned())
}

/// The arbiter of the cluster.
async fn arbiter(ask: &Ask) -> Result<(String, Client), Failed> {
    let nodes = nodes(ask).await?;
    let arbiter = nodes.iter().find(|node| text(node, "role") == "arbiter");
    let arbiter =
        arbiter.ok_or_else(|| Failed::Unreachable("the directory lists no arbiter of records".to_owned()))?;
    let client = Client::connect(text(arbiter, "ops")).await.map_err(unreachable)?;
    Ok((text(arbiter, "node").to_owned(), client))
}

pub async fn run(command: Command) -> Result<(), Failed> {
    let Command::Top(top) = command;
    let (_, mut arbiter) = arbiter(&top.ask).await?;
    let records = arbiter.locks(top.count).await.map_err(unreachable)?;
    if top.ask.json {
        println!("{records}");
        return Ok(());
    }
    let records = records.as_array().map(Vec::as_slice).unwrap_or_default();
    for record in records {
        let per_second = record["per_second"].as_f64().unwrap_or_default();
        println!("{per_second:>9.2}/s  {:<40} {}", name(record), state(record));
    }
    println!("{} records", records.len());
    Ok(())
}

/// Shows who holds a record.
pub async fn lookup(lookup: &Lookup) -> Result<(), Failed> {
    let Lookup::Record(Record { table, key, ask }) = lookup;
    let (node, mut arbiter) = arbiter(ask).await?;
    let whole = [&table.to_be_bytes()[..], &key.0].concat();
    let record = arbiter.record(whole).await.map_err(unreachable)?;
    if ask.json {
        println!("{record}");
        return Ok(());
    }
    println!("{}  {}, says {node}", name(&record), state(&record));
    for holder in record["holders"].as_array().into_iter().flatten() {
        println!(
            "    {:<20} {:<8} grant {}",
            text(holder, "node"),
            text(holder, "mode"),
            text(holder, "seq")
        );
    }
    for waiter in record["waiting"].as_array().into_iter().flatten() {
        println!("    {:<20} waits for {}", text(waiter, "node"), text(waiter, "wants"));
    }
    Ok(())
}

fn name(record: &Value) -> String {
    match record["table"].as_u64() {
        Some(table) => format!("{table} {}", text(record, "key")),
        None => format!("- {}", text(record, "key")),
    }
}

fn state(record: &Value) -> String {
    let count = |key: &str| record[key].as_u64().unwrap_or_default();
    let first = record["holders"].get(0).map_or("", |holder| text(holder, "node"));
    let held = match (text(record, "mode"), count("holders_count")) {
        (_, 0) => "held by nobody".to_owned(),
        (mode, 1) => format!("{mode} at {first}"),
        (mode, others) => format!("{mode} at {first} and {} more", others - 1),
    };
    match count("waiting_count") {
        0 => held,
        waiting => format!("{held}, {waiting} waiting"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_shown() {
        for (text, bytes) in [("role/1", &b"role/1"[..]), ("0x", b""), ("0x00fF", &[0, 255]), ("ab", b"ab")] {
            assert_eq!(key(text), Ok(Key(bytes.to_vec())));
        }
        for text in ["0x1", "0x0g", "0x+1", "0x\u{e4}"] {
            assert!(key(text).is_err(), "{text}");
        }
    }
}
