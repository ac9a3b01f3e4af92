//! What clients and modules say to each other: the messages of `proto/bazaar.proto`.

include!(concat!(env!("OUT_DIR"), "/bazaar.rs"));

/// The same, for clients in other languages: what the verb `types` reads.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bazaar.bin"));
