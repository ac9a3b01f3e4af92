//! A record that is no message, one that can't be copied, and keys that are none.
use linkstead::Record;

#[derive(Clone, PartialEq, Record)]
#[record(table = "plain", id = 1, key = u64)]
pub struct Plain {}

#[derive(PartialEq, prost::Message, Record)]
#[record(table = "single", id = 2, key = u64)]
pub struct Single {}

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "spot", id = 3, key = f64)]
pub struct Spot {}

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "line", id = 4, key = (u64, f32))]
pub struct Line {}

fn main() {}
