//! How records stand in a store of keys and values: one letter, then what it is about.
//!
//! | key | value |
//! |---|---|
//! | `r`, table (4 bytes, big-endian), key | epoch and seq of the grant, version, the record |
//! | `f`, node or nothing | below which fence nobody writes |
//! | `w`, node | under which fence its commits are durable, and up to which |

use base::{Epoch, Fence, NodeId};
use bytes::Bytes;

use super::{BackendError, Csn, Granted, Stored, TableId};

const HEAD_BYTES: usize = 24;

pub(super) fn record(table: TableId, key: &[u8]) -> Vec<u8> {
    [b"r".as_slice(), &table.0.to_be_bytes(), key].concat()
}

/// Before every record of the table.
pub(super) fn table(table: TableId) -> Vec<u8> {
    record(table, &[])
}

pub(super) fn fence(node: Option<&NodeId>) -> Vec<u8> {
    [b"f".as_slice(), node.map_or("", NodeId::as_str).as_bytes()].concat()
}

pub(super) fn watermark(node: &NodeId) -> Vec<u8> {
    [b"w".as_slice(), node.as_str().as_bytes()].concat()
}

fn numbers<const N: usize>(numbers: [u64; N]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

fn read<const N: usize>(what: &str, bytes: &[u8]) -> Result<[u64; N], BackendError> {
    let damaged = || BackendError::Damaged { what: format!("{what} has {} bytes", bytes.len()) };
    let (chunks, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(damaged());
    }
    let numbers: Vec<u64> = chunks.iter().map(|chunk| u64::from_be_bytes(*chunk)).collect();
    numbers.try_into().map_err(|_| damaged())
}

pub(super) fn write_record(granted: Granted, version: u64, value: &[u8]) -> Vec<u8> {
    let mut bytes = numbers([granted.epoch.0, granted.seq, version]);
    bytes.extend_from_slice(value);
    bytes
}

pub(super) fn read_record(bytes: &Bytes) -> Result<Stored, BackendError> {
    let head = bytes.get(..HEAD_BYTES).unwrap_or(bytes);
    let [epoch, seq, version] = read("a record's head", head)?;
    let granted = Granted { epoch: Epoch(epoch), seq };
    Ok(Stored { granted, version, value: bytes.slice(HEAD_BYTES..) })
}

pub(super) fn write_fence(fence: Fence) -> Vec<u8> {
    numbers([fence.epoch.0, fence.session])
}

pub(super) fn read_fence(bytes: &[u8]) -> Result<Fence, BackendError> {
    let [epoch, session] = read("a fence", bytes)?;
    Ok(Fence::new(Epoch(epoch), session))
}

pub(super) fn write_watermark(fence: Fence, csn: Csn) -> Vec<u8> {
    numbers([fence.epoch.0, fence.session, csn.0])
}

pub(super) fn read_watermark(bytes: &[u8]) -> Result<(Fence, Csn), BackendError> {
    let [epoch, session, csn] = read("a watermark", bytes)?;
    Ok((Fence::new(Epoch(epoch), session), Csn(csn)))
}
