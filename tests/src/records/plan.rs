//! What a seed means: a shape, and what goes wrong when. A setting chooses what may go wrong; the names of most are those
//! of the scenarios that they stand for.

use std::fmt;

use base::{Mono, Span};

use crate::sim::Rng;

use super::storage::Trouble;

/// When everything that goes wrong begins at the latest.
const FAULTS_UNTIL: u64 = 26_000;
/// When all faults end.
pub const HEAL: Mono = Mono(30_000_000);

/// What may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// D1: nothing, but everybody wants the same.
    Transfers,
    /// D2: the network is slow.
    Delays,
    /// D3: providers stand still for longer than their leases.
    Pauses,
    /// D4: providers crash and start again.
    Crashes,
    /// D5: providers stop in the middle of it all.
    Stops,
    /// D6: the arbiter crashes and starts with nothing.
    Restarts,
    /// D9: one way of a connection is silent.
    OneWay,
    /// D10: clocks run at different rates, and leases end.
    Clocks,
    /// D11: connections break, logins are said twice and arrive late.
    Doubles,
    /// D12: sessions end at every moment.
    Kills,
    /// D13: the storage fails, is slow, and forgets to say what it did.
    Disk,
    /// D15: memory is short.
    Memory,
    /// D18: one provider can't write, so what it has changed can't be had.
    Stuck,
    /// Any of these.
    All,
}

impl Setting {
    pub const EACH: [Self; 14] = [
        Self::Transfers,
        Self::Delays,
        Self::Pauses,
        Self::Crashes,
        Self::Stops,
        Self::Restarts,
        Self::OneWay,
        Self::Clocks,
        Self::Doubles,
        Self::Kills,
        Self::Disk,
        Self::Memory,
        Self::Stuck,
        Self::All,
    ];

    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    pub fn find(name: &str) -> Option<Self> {
        Self::EACH.into_iter().find(|setting| setting.name() == name)
    }

    /// One thing that goes wrong in it.
    fn fault(self, rng: &mut Rng, providers: usize) -> Fault {
        let who = rng.below(providers as u64) as usize;
        let span = |rng: &mut Rng, most| rng.millis(50, most);
        match self {
            Self::Transfers | Self::Memory => Fault::Cut { who },
            Self::Delays => Fault::Slow { who, span: span(rng, 6_000), most: span(rng, 800) },
            Self::Pauses if rng.one_in(3) => {
                Fault::Storage { trouble: Trouble::Refuses(Some(who)), span: span(rng, 14_000) }
            }
            Self::Pauses => Fault::Pause { who, span: span(rng, 20_000) },
            Self::Crashes if rng.one_in(3) => {
                Fault::Storage { trouble: Trouble::Slow(span(rng, 6_000)), span: span(rng, 9_000) }
            }
            Self::Crashes => Fault::Crash { who, span: span(rng, 1_500) },
            Self::Stops => Fault::Stop { who },
            Self::Restarts => match rng.below(4) {
                0 => Fault::Cut { who },
                1 => Fault::Pause { who, span: span(rng, 9_000) },
                _ => Fault::ArbiterCrash { span: span(rng, 3_000) },
            },
            Self::OneWay => {
                let up = rng.one_in(2);
                Fault::Silence { who, up, down: !up, span: span(rng, 14_000) }
            }
            Self::Clocks => match rng.below(3) {
                0 => Fault::Pause { who, span: span(rng, 12_000) },
                1 => Fault::Silence { who, up: true, down: true, span: span(rng, 14_000) },
                _ => Fault::Slow { who, span: span(rng, 9_000), most: span(rng, 3_000) },
            },
            Self::Doubles => match rng.below(4) {
                0 => Fault::Cut { who },
                1 => Fault::Slow { who, span: span(rng, 3_000), most: span(rng, 500) },
                _ => Fault::Ghost { who },
            },
            Self::Kills => match rng.below(4) {
                0 => Fault::Crash { who, span: span(rng, 500) },
                1 => Fault::ArbiterPause { span: span(rng, 3_000) },
                _ => Fault::Cut { who },
            },
            Self::Disk => match rng.below(5) {
                0 => Fault::Storage { trouble: Trouble::Slow(span(rng, 5_000)), span: span(rng, 8_000) },
                1 => Fault::Storage { trouble: Trouble::Refuses(None), span: span(rng, 6_000) },
                2 => Fault::Storage { trouble: Trouble::Forgets, span: span(rng, 6_000) },
                3 => Fault::Crash { who, span: span(rng, 1_000) },
                _ => Fault::StorageCrash,
            },
            Self::Stuck => Fault::Storage { trouble: Trouble::Refuses(Some(who)), span: span(rng, 9_000) },
            Self::All => {
                let kinds = &Self::EACH[1..Self::EACH.len() - 1];
                let kind = rng.pick(kinds).unwrap_or(Self::Pauses);
                kind.fault(rng, providers)
            }
        }
    }

    fn faults(self, rng: &mut Rng) -> u64 {
        match self {
            Self::Transfers => 0,
            Self::Memory | Self::Restarts => rng.between(1, 4),
            Self::Kills | Self::Doubles => rng.between(8, 30),
            _ => rng.between(2, 8),
        }
    }
}

/// One thing that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Pause { who: usize, span: Span },
    Crash { who: usize, span: Span },
    Stop { who: usize },
    Cut { who: usize },
    Silence { who: usize, up: bool, down: bool, span: Span },
    Slow { who: usize, span: Span, most: Span },
    Ghost { who: usize },
    ArbiterCrash { span: Span },
    ArbiterPause { span: Span },
    Storage { trouble: Trouble, span: Span },
    StorageCrash,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub seed: u64,
    pub setting: Setting,
    pub providers: usize,
    pub workers: usize,
    pub keys: usize,
    /// From one transaction of a worker to its next, at most.
    pub think: Span,
    pub cache_bytes: usize,
    /// How fast the clock of each provider runs, and the arbiter's: millionths of the true one.
    pub rates: Vec<u64>,
    pub arbiter_rate: u64,
    pub faults: Vec<(Mono, Fault)>,
}

impl Plan {
    pub fn draw(setting: Setting, seed: u64) -> Self {
        let mut rng = Rng::new(base::hash::mix(seed ^ 0x7265_636f_7264) ^ setting as u64);
        let rng = &mut rng;
        let providers = rng.between(2, 3) as usize;
        let crowded = setting == Setting::Transfers;
        let keys = if crowded { rng.between(2, 3) } else { rng.between(2, 8) } as usize;
        let workers = rng.between(1, 3) as usize;
        let think = if crowded { Span::millis(20) } else { rng.millis(30, 250) };
        let short = setting == Setting::Memory || (setting == Setting::All && rng.one_in(4));
        let cache_bytes = if short { rng.between(400, 1_600) as usize } else { 1 << 20 };
        let skewed = matches!(setting, Setting::Clocks | Setting::All);
        let mut rate = || if skewed { rng.between(900_000, 1_100_000) } else { 1_000_000 };
        let rates = (0..providers).map(|_| rate()).collect();
        let arbiter_rate = rate();
        let mut faults: Vec<(Mono, Fault)> = Vec::new();
        for _ in 0..setting.faults(rng) {
            let at = Mono(rng.between(500, FAULTS_UNTIL) * 1_000);
            faults.push((at, setting.fault(rng, providers)));
        }
        faults.sort_by_key(|(at, _)| *at);
        Self { seed, setting, providers, workers, keys, think, cache_bytes, rates, arbiter_rate, faults }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, setting, providers, workers, keys, cache_bytes, .. } = self;
        writeln!(
            f,
            "seed {seed} of {}: {providers} providers with {workers} workers, {keys} records, {cache_bytes} bytes of memory",
            setting.name()
        )?;
        if self.rates.iter().any(|rate| *rate != 1_000_000) {
            writeln!(f, "  clocks at {:?}, the arbiter's at {}", self.rates, self.arbiter_rate)?;
        }
        for (at, fault) in &self.faults {
            writeln!(f, "  {at} {fault:?}")?;
        }
        Ok(())
    }
}
