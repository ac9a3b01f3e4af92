//! What a worker counts: plain padded counters of its own, summed when somebody looks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crossbeam::utils::CachePadded;
use serde::Serialize;

use crate::router::Loss;

/// One worker's counters. Padded, so that two workers never share a cache line. Only the worker's own thread writes, so
/// a count is a plain load and store, without a locked instruction.
#[derive(Debug, Default)]
pub struct Counters(CachePadded<Cells>);

#[derive(Debug, Default)]
struct Cells {
    sessions: AtomicU64,
    accepted: AtomicU64,
    closed: AtomicU64,
    frames_in: AtomicU64,
    frames_out: AtomicU64,
    dispatched: AtomicU64,
    refused: AtomicU64,
    dropped: [AtomicU64; Loss::ALL.len()],
}

/// The sum of all workers, as `/status` shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Client connections now.
    pub sessions: u64,
    pub accepted: u64,
    pub closed: u64,
    /// Client frames received.
    pub frames_in: u64,
    /// Frames sent to clients.
    pub frames_out: u64,
    /// Client frames handed to providers.
    pub dispatched: u64,
    /// Requests answered with a refusal.
    pub refused: u64,
    /// Frames not delivered with nobody to tell, by cause.
    pub dropped: std::collections::BTreeMap<&'static str, u64>,
}

/// Wraps, so that adding `u64::MAX` subtracts one.
fn add(cell: &AtomicU64, n: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(n), Relaxed);
}

impl Counters {
    pub fn opened(&self) {
        add(&self.0.sessions, 1);
        add(&self.0.accepted, 1);
    }

    pub fn ended(&self) {
        add(&self.0.sessions, u64::MAX);
        add(&self.0.closed, 1);
    }

    pub fn frame_in(&self) {
        add(&self.0.frames_in, 1);
    }

    pub fn frame_out(&self) {
        add(&self.0.frames_out, 1);
    }

    pub fn dispatched(&self) {
        add(&self.0.dispatched, 1);
    }

    pub fn refused(&self) {
        add(&self.0.refused, 1);
    }

    pub fn dropped(&self, loss: Loss) {
        if let Some(index) = Loss::ALL.iter().position(|&l| l == loss) {
            add(&self.0.dropped[index], 1);
        }
    }

    pub fn sessions(&self) -> u64 {
        self.0.sessions.load(Relaxed)
    }

    /// Adds this worker's counters to `totals`.
    pub fn add_to(&self, totals: &mut Totals) {
        let cells = &self.0;
        totals.sessions += cells.sessions.load(Relaxed);
        totals.accepted += cells.accepted.load(Relaxed);
        totals.closed += cells.closed.load(Relaxed);
        totals.frames_in += cells.frames_in.load(Relaxed);
        totals.frames_out += cells.frames_out.load(Relaxed);
        totals.dispatched += cells.dispatched.load(Relaxed);
        totals.refused += cells.refused.load(Relaxed);
        for (loss, count) in Loss::ALL.iter().zip(&cells.dropped) {
            *totals.dropped.entry(loss.as_str()).or_default() += count.load(Relaxed);
        }
    }
}
