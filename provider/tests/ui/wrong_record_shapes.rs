//! What has no place in a table.
use linkstead::Record;

#[derive(Clone, PartialEq, Record)]
#[record(table = "color", id = 1, key = u64)]
pub enum Color {
    Red,
}

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "pair", id = 1, key = u64)]
pub struct Pair(#[prost(uint64, tag = "1")] u64);

#[derive(Clone, PartialEq, Record)]
#[record(table = "page", id = 1, key = u64)]
pub struct Page<'a, T> {
    text: &'a T,
}

#[derive(Record)]
#[record(table = "either", id = 1, key = u64)]
pub union Either {
    one: u32,
    other: u64,
}

fn main() {}
