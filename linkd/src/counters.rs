//! What a worker counts: plain padded counters of its own, summed when somebody looks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crossbeam::utils::CachePadded;
use serde::Serialize;
use wire::code::{self, Code};

use crate::router::Loss;
use crate::worker::Transport;

const CODES: usize = code::ALL.len();

/// One worker's counters. Padded, so that two workers never share a cache line. Only the worker's own thread writes, so
/// a count is a plain load and store, without a locked instruction.
#[derive(Debug, Default)]
pub struct Counters(CachePadded<Cells>);

#[derive(Debug)]
struct Cells {
    /// By transport.
    sessions: [AtomicU64; 2],
    accepted: [AtomicU64; 2],
    closed: AtomicU64,
    frames_in: AtomicU64,
    frames_out: AtomicU64,
    dispatched: AtomicU64,
    /// By code, in the registry's order.
    refused: [AtomicU64; CODES],
    /// Closed by us, by code.
    closed_by: [AtomicU64; CODES],
    dropped: [AtomicU64; Loss::ALL.len()],
}

impl Default for Cells {
    fn default() -> Self {
        Self {
            sessions: Default::default(),
            accepted: Default::default(),
            closed: AtomicU64::default(),
            frames_in: AtomicU64::default(),
            frames_out: AtomicU64::default(),
            dispatched: AtomicU64::default(),
            refused: [const { AtomicU64::new(0) }; CODES],
            closed_by: [const { AtomicU64::new(0) }; CODES],
            dropped: Default::default(),
        }
    }
}

/// The sum of all workers, as `/status` shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Client connections now.
    pub sessions: u64,
    pub accepted: u64,
    /// Of them, those by WebSocket.
    pub websocket_sessions: u64,
    pub websocket_accepted: u64,
    pub closed: u64,
    /// Client frames received.
    pub frames_in: u64,
    /// Frames sent to clients.
    pub frames_out: u64,
    /// Client frames handed to providers.
    pub dispatched: u64,
    /// Of them, those that were closed by us, by code.
    pub closed_by: BTreeMap<&'static str, u64>,
    /// Requests answered with a refusal, and by code.
    pub refused: u64,
    pub refused_by: BTreeMap<&'static str, u64>,
    /// Frames not delivered with nobody to tell, by cause.
    pub dropped: BTreeMap<&'static str, u64>,
}

/// Wraps, so that adding `u64::MAX` subtracts one.
fn add(cell: &AtomicU64, n: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(n), Relaxed);
}

/// A code's place in the registry; what a game made up stands with the codes of operators.
fn place(code: Option<&'static Code>) -> usize {
    let number = code.map_or(code::KICKED.number, |code| code.number);
    code::ALL.iter().position(|code| code.number == number).unwrap_or(0)
}

fn by_code(cells: &[AtomicU64; CODES], sums: &mut BTreeMap<&'static str, u64>) {
    for (code, count) in code::ALL.iter().zip(cells) {
        let count = count.load(Relaxed);
        if count > 0 {
            *sums.entry(code.name).or_default() += count;
        }
    }
}

impl Counters {
    pub fn opened(&self, by: Transport) {
        add(&self.0.sessions[by as usize], 1);
        add(&self.0.accepted[by as usize], 1);
    }

    pub fn ended(&self, by: Transport) {
        add(&self.0.sessions[by as usize], u64::MAX);
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

    /// With this RPC result.
    pub fn refused(&self, result: i64) {
        add(&self.0.refused[place(Code::of_result(result))], 1);
    }

    /// A session is closed by us, with the number of a code.
    pub fn closing(&self, number: i32) {
        add(&self.0.closed_by[place(Code::find(number))], 1);
    }

    pub fn dropped(&self, loss: Loss) {
        if let Some(index) = Loss::ALL.iter().position(|&l| l == loss) {
            add(&self.0.dropped[index], 1);
        }
    }

    pub fn sessions(&self) -> u64 {
        self.0.sessions.iter().map(|n| n.load(Relaxed)).sum()
    }

    /// Adds this worker's counters to `totals`.
    pub fn add_to(&self, totals: &mut Totals) {
        let cells = &self.0;
        let by = |cells: &[AtomicU64; 2]| cells.each_ref().map(|n| n.load(Relaxed));
        let ([tcp_now, ws_now], [tcp, ws]) = (by(&cells.sessions), by(&cells.accepted));
        totals.sessions += tcp_now + ws_now;
        totals.accepted += tcp + ws;
        totals.websocket_sessions += ws_now;
        totals.websocket_accepted += ws;
        totals.closed += cells.closed.load(Relaxed);
        totals.frames_in += cells.frames_in.load(Relaxed);
        totals.frames_out += cells.frames_out.load(Relaxed);
        totals.dispatched += cells.dispatched.load(Relaxed);
        by_code(&cells.refused, &mut totals.refused_by);
        by_code(&cells.closed_by, &mut totals.closed_by);
        totals.refused = totals.refused_by.values().sum();
        for (loss, count) in Loss::ALL.iter().zip(&cells.dropped) {
            *totals.dropped.entry(loss.as_str()).or_default() += count.load(Relaxed);
        }
    }
}
