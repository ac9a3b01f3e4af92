//! Everything a record may say.
use linkstead::{Account, Durability, Key, Record, Role, TableId};

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "score", id = 101, key = u64)]
pub struct Score {
    #[prost(uint64, tag = "1")]
    pub best: u64,
}

#[derive(Clone, PartialEq, prost::Message, linkstead::Record)]
#[record(durability = "sync", key = (Account, [u8; 4], Vec<u8>, Role), id = 0x7fff_ffff, table = "bags_2",)]
pub struct Bag {}

#[derive(Clone, Copy, PartialEq, prost::Message, Record)]
#[record(table = "seen", id = 1, key = String, durability = "memory")]
pub struct Seen {}

fn is<R: Record>(table: &str, id: u32, durability: Durability) {
    assert_eq!((R::TABLE, R::ID, R::DURABILITY), (table, TableId(id), durability));
}

fn main() {
    is::<Score>("score", 101, Durability::Grouped);
    is::<Bag>("bags_2", 0x7fff_ffff, Durability::Sync);
    is::<Seen>("seen", 1, Durability::Memory);
    let mut key = Vec::new();
    <Score as Record>::Key::encode(&1, &mut key);
    assert_eq!(key, [0, 0, 0, 0, 0, 0, 0, 1]);
}
