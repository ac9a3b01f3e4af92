//! What a worker counts: plain padded counters of its own, summed when somebody looks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crossbeam::utils::CachePadded;
use serde::Serialize;

use crate::router::Loss;

/// One worker's counters. Padded, so that two workers never share a cache line.
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

impl Counters {
    pub fn opened(&self) {
        self.0.sessions.fetch_add(1, Relaxed);
        self.0.accepted.fetch_add(1, Relaxed);
    }

    pub fn ended(&self) {
        self.0.sessions.fetch_sub(1, Relaxed);
        self.0.closed.fetch_add(1, Relaxed);
    }

    pub fn frame_in(&self) {
        self.0.frames_in.fetch_add(1, Relaxed);
    }

    pub fn frame_out(&self) {
        self.0.frames_out.fetch_add(1, Relaxed);
    }

    pub fn dispatched(&self) {
        self.0.dispatched.fetch_add(1, Relaxed);
    }

    pub fn refused(&self) {
        self.0.refused.fetch_add(1, Relaxed);
    }

    pub fn dropped(&self, loss: Loss) {
        if let Some(index) = Loss::ALL.iter().position(|&l| l == loss) {
            self.0.dropped[index].fetch_add(1, Relaxed);
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
