//! What the bazaar keeps. Field numbers, table ids and keys never change: they are what stands at the storage.

use std::collections::BTreeMap;

use linkstead::Record;

/// An account's coins, by its name.
#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "account", id = 201, key = String, durability = "sync")]
pub struct Account {
    #[prost(uint64, tag = "1")]
    pub coins: u64,
    /// How often it was opened, which gives each session numbers of its own for its requests.
    #[prost(uint64, tag = "2")]
    pub sessions: u64,
    /// The numbers of its open offers, at most [`OFFERS_MAX`](crate::rules::OFFERS_MAX).
    #[prost(uint64, repeated, tag = "3")]
    pub offers: Vec<u64>,
}

/// What an account has, by its name. Apart from the coins: who pays it does not get into the way of who it sells to.
#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "bag", id = 202, key = String, durability = "sync")]
pub struct Bag {
    /// Kinds of which there is none have no entry.
    #[prost(btree_map = "string, uint64", tag = "1")]
    pub items: BTreeMap<String, u64>,
}

/// An open offer, by its seller and its number. The items are here and in nobody's bag.
///
/// The number is that of the request which made it, which is known before anything is read. One from a counter would be known
/// only while the counter is at hand, and everybody counts: by the time the offer's record had come, the next number would be
/// another.
#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "offer", id = 203, key = (String, u64), durability = "sync")]
pub struct Offer {
    #[prost(string, tag = "1")]
    pub kind: String,
    #[prost(uint64, tag = "2")]
    pub count: u64,
    /// For all of them.
    #[prost(uint64, tag = "3")]
    pub price: u64,
}

/// The open offers of one kind, by the kind: what a list shows. Everybody who trades in a kind changes this one record, so
/// it is small and bounded.
#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "shelf", id = 204, key = String, durability = "sync")]
pub struct Shelf {
    /// At most [`SHELF_MAX`](crate::rules::SHELF_MAX), the oldest first.
    #[prost(message, repeated, tag = "1")]
    pub places: Vec<Place>,
}

/// An offer on its shelf.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Place {
    #[prost(string, tag = "1")]
    pub seller: String,
    #[prost(uint64, tag = "2")]
    pub number: u64,
    #[prost(uint64, tag = "3")]
    pub count: u64,
    #[prost(uint64, tag = "4")]
    pub price: u64,
}

/// How often an account has come in, by its name. Nobody waits for the disk to come in: a crash may cost the last ones.
#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "visits", id = 205, key = String, durability = "grouped")]
pub struct Visits {
    #[prost(uint64, tag = "1")]
    pub count: u64,
}
