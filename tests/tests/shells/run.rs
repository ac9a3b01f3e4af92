//! One run of a plan: hosts, faults at their time, and the verdict.

use std::fmt;
use std::time::{Duration, SystemTime};

use turmoil::Sim;

use crate::ledger::{ANSWER_MAX, Ledger, Shared};
use crate::nodes;
use crate::plan::{DIRECTORY, Fault, GAMES, LINKDS, PLAYERS, Plan};
use crate::player;
use crate::trace::Trace;

/// The grain of the network: hosts run this long one after another, with a clock of their own that is exact.
const TICK: Duration = Duration::from_millis(10);
/// Usual delays, in milliseconds.
const LATENCY_MS: (u64, u64) = (1, 40);
/// Segments that a connection or a listener holds.
const SEGMENTS_MAX: usize = 4_096;
/// When the runs take place: some day of 2026, in seconds after 1970.
const DAY: u64 = 1_780_000_000;
/// A run in which less was answered shows nothing.
const ANSWERED_MIN: usize = 100;

/// What became of a run.
pub struct Outcome {
    plan: Plan,
    pub lines: Vec<String>,
    pub wrong: Vec<String>,
    answered: usize,
    asked: usize,
}

/// Runs a seed once. Should be the only run of its process: tokio numbers tasks across all runtimes of a process, and in
/// what order the tasks of a host that crashes are dropped depends on their numbers.
pub fn run(seed: u64) -> Outcome {
    let (plan, trace, ledger) = (Plan::draw(seed), Trace::default(), Shared::default());
    let ran = tracing::subscriber::with_default(trace.clone(), || simulate(&plan, &trace, &ledger));
    let ledger = std::mem::take(&mut *ledger.lock());
    let (answered, asked) = ledger.counts();
    let mut wrong = Ledger::judge(ledger, &plan);
    if let Err(error) = ran {
        wrong.push(format!("the run did not end: {error}"));
    }
    if answered < ANSWERED_MIN {
        wrong.push(format!("only {answered} requests were answered, so nothing is shown"));
    }
    Outcome { lines: trace.lines(), plan, wrong, answered, asked }
}

fn simulate(plan: &Plan, trace: &Trace, ledger: &Shared) -> turmoil::Result {
    let mut sim = turmoil::Builder::new()
        .rng_seed(plan.seed)
        .epoch(SystemTime::UNIX_EPOCH + Duration::from_secs(DAY))
        .simulation_duration(plan.end() + 2 * ANSWER_MAX)
        .tick_duration(TICK)
        .min_message_latency(Duration::from_millis(LATENCY_MS.0))
        .max_message_latency(Duration::from_millis(LATENCY_MS.1))
        .tcp_capacity(SEGMENTS_MAX)
        .build();
    populate(&mut sim, plan, ledger);
    let mut turns: Vec<(u64, bool, &Fault)> = Vec::new();
    for spell in &plan.spells {
        turns.push((spell.from, true, &spell.fault));
        turns.push((spell.to, false, &spell.fault));
    }
    turns.sort_by_key(|turn| turn.0);
    let mut turns = turns.into_iter().peekable();
    loop {
        trace.set_now(sim.elapsed());
        while let Some((_, begins, fault)) =
            turns.next_if(|turn| Duration::from_millis(turn.0) <= sim.elapsed())
        {
            tracing::info!(begins, ?fault, "fault");
            if begins { strike(&mut sim, fault) } else { heal(&mut sim, fault) }
        }
        if sim.step()? {
            return Ok(());
        }
    }
}

fn populate(sim: &mut Sim<'_>, plan: &Plan, ledger: &Shared) {
    // Names come first: a host may dial another that starts after it.
    for name in everybody() {
        sim.lookup(name);
    }
    sim.host(DIRECTORY, nodes::directory);
    for name in LINKDS {
        let (plan, ledger) = (plan.clone(), ledger.clone());
        sim.host(name, move || nodes::linkd(name, plan.clone(), ledger.clone()));
    }
    for (name, server_id) in GAMES.into_iter().zip(1..) {
        let (plan, ledger) = (plan.clone(), ledger.clone());
        sim.host(name, move || nodes::game(name, server_id, plan.clone(), ledger.clone()));
    }
    for name in PLAYERS {
        sim.client(name, player::play(name, plan.clone(), ledger.clone()));
    }
}

fn everybody() -> impl Iterator<Item = &'static str> {
    [DIRECTORY].into_iter().chain(LINKDS).chain(GAMES).chain(PLAYERS)
}

fn strike(sim: &mut Sim<'_>, fault: &Fault) {
    match *fault {
        Fault::Cut(a, b) => sim.partition(a, b),
        Fault::Held(a, b) => sim.hold(a, b),
        Fault::Slow(a, b, ms) => sim.set_link_latency(a, b, Duration::from_millis(ms)),
        Fault::Crash(host) => sim.crash(host),
        Fault::Vanish(host) => {
            everybody().filter(|other| *other != host).for_each(|other| sim.partition(host, other));
            sim.crash(host);
        }
    }
}

fn heal(sim: &mut Sim<'_>, fault: &Fault) {
    match *fault {
        Fault::Cut(a, b) => sim.repair(a, b),
        Fault::Held(a, b) => sim.release(a, b),
        Fault::Slow(a, b, _) => sim.set_link_latency(a, b, Duration::from_millis(LATENCY_MS.1 / 4)),
        Fault::Crash(host) => sim.bounce(host),
        Fault::Vanish(host) => {
            everybody().filter(|other| *other != host).for_each(|other| sim.repair(host, other));
            sim.bounce(host);
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, lines, wrong, answered, asked } = self;
        lines.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        writeln!(f, "{plan}")?;
        wrong.iter().try_for_each(|wrong| writeln!(f, "WRONG: {wrong}"))?;
        write!(f, "{asked} requests, {answered} answered; {} lines of trace", lines.len())
    }
}
