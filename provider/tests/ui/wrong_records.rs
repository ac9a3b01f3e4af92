//! Records that say too little, too much, or what is not there.
use linkstead::Record;

#[derive(Clone, PartialEq, prost::Message, Record)]
pub struct Nothing {}

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record]
pub struct Bare {}

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(id = 1, key = u64)]
pub struct NoTable {}

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "no_id", key = u64)]
pub struct NoId {}

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "no_key", id = 1)]
pub struct NoKey {}

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "", id = 0, key = u64, durability = "often")]
pub struct Together {}

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "High-Score", id = 1, key = u64)]
pub struct Letters {}

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "a_name_that_goes_on_and_on_until_nobody_can_read_it_in_one_breath", id = 1, key = u64)]
pub struct Long {}

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "_owner", id = 0xF000_0001, key = u64)]
pub struct Ours {}

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "reserved", id = 2_147_483_648, key = u64)]
pub struct Reserved {}

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "unknown", id = 1, key = u64, durabilty = "sync")]
pub struct Unknown {}

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "twice", id = 1, key = u64, id = 2)]
pub struct Twice {}

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = values, id = "one", key = "u64", durability)]
pub struct Values {}

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record("bare", id = -1 key = u64)]
pub struct Commas {}

fn main() {}
