//! What clients and modules say to each other: the messages of `proto/tavern.proto`.

include!(concat!(env!("OUT_DIR"), "/tavern.rs"));

/// The same, for clients in other languages: what the verb `types` reads.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tavern.bin"));
