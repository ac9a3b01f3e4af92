//! What a seed stands for: the cluster's shape, and the faults with their times. Data, so that it can be printed.

use std::fmt;

use base::{AppVersion, ModuleId, Mono, Span};

use super::frames::{HALL, ROOM, SHOP};
use super::rng::Rng;

/// The first fault comes no earlier: the cluster is mostly up by then.
const FIRST_MS: u64 = 3_000;
const LAST_MS: u64 = 34_000;
/// Here all faults end.
pub const HEAL: Mono = Mono(40_000_000);
const FAULTS_MAX: u64 = 14;

/// A part of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    Directory,
    Linkd(u8),
    Provider(u8),
    Client(u8),
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Directory => f.write_str("directory"),
            Who::Linkd(n) => write!(f, "linkd-{n}"),
            Who::Provider(n) => write!(f, "game-{n}"),
            Who::Client(n) => write!(f, "client-{n}"),
        }
    }
}

/// What a provider offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub version: AppVersion,
    pub modules: Vec<ModuleId>,
}

/// How a provider is out of order without being ill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// Reports overload.
    Overloaded,
    /// Chosen for nothing new.
    Disabled,
    /// Says that it serves its modules no longer, and later that it does.
    Withdrawn,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// All connections between two are cut. Each end notices after a while, or only by silence.
    Cut {
        ends: [Who; 2],
        noticed: [Option<Span>; 2],
    },
    /// What one sends to the other arrives only afterwards.
    Block {
        from: Who,
        to: Who,
        both: bool,
        span: Span,
    },
    /// Like SIGSTOP and SIGCONT.
    Pause {
        who: Who,
        span: Span,
    },
    /// The process ends and starts anew. Hard: nobody's connections are closed by its end. The directory's wall clock
    /// may meanwhile be set back.
    Crash {
        who: Who,
        hard: bool,
        down: Span,
        back: Span,
    },
    /// Another process of the same node id is started elsewhere.
    Twin {
        of: Who,
        span: Span,
    },
    Mood {
        provider: u8,
        mood: Mood,
        span: Span,
    },
    /// A linkd's outboxes to its providers are full now and then.
    Clog {
        linkd: u8,
        span: Span,
    },
    /// The directory's next notice, a change or a question, is not delivered.
    LoseNotice {
        to: Who,
    },
    /// It is delivered twice.
    DoubleNotice {
        to: Who,
    },
    /// A node asks again for the list that it has.
    Repeat {
        who: Who,
    },
    /// The process ends and never comes back, also after healing.
    Retire {
        who: Who,
        hard: bool,
    },
}

/// A fault and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    pub at: Mono,
    pub fault: Fault,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub seed: u64,
    pub linkds: u8,
    pub workers: u8,
    pub clients: u8,
    pub offers: Vec<Offer>,
    /// Leases of 6 s instead of the default 15 s.
    pub brisk: bool,
    /// The directory has one.
    pub store: bool,
    pub faults: Vec<Planned>,
}

impl Plan {
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let providers = rng.between(2, 4) as u8;
        let mut plan = Self {
            seed,
            linkds: rng.between(2, 3) as u8,
            workers: if rng.one_in(4) { 2 } else { 1 },
            clients: rng.between(3, 6) as u8,
            offers: (0..providers).map(|index| offer(index, &mut rng)).collect(),
            brisk: !rng.one_in(4),
            store: Rng::new(!seed).one_in(2),
            faults: Vec::new(),
        };
        let count = if rng.one_in(12) { 0 } else { rng.between(1, FAULTS_MAX) };
        for _ in 0..count {
            let at = Mono::ZERO + rng.millis(FIRST_MS, LAST_MS);
            let fault = plan.fault(&mut rng, HEAL.since(at));
            plan.faults.push(Planned { at, fault });
        }
        plan.faults.sort_by_key(|planned| planned.at);
        plan
    }

    /// A client's version: the second main version is played only where a provider of it is.
    pub fn version(&self, client: u8) -> &'static str {
        let second = self.offers.iter().any(|offer| offer.version.main() == 2);
        match client % 4 {
            3 if second => "2.0.1.0",
            1 => "",
            _ => "1.4.0.0",
        }
    }

    fn fault(&self, rng: &mut Rng, left: Span) -> Fault {
        let providers = self.offers.len() as u64;
        let span = |rng: &mut Rng, low, high| rng.millis(low, high).min(left);
        match rng.below(25) {
            0..4 => {
                let ends = self.pair(rng);
                let notice = |rng: &mut Rng| (!rng.one_in(3)).then(|| rng.millis(5, 1_500));
                Fault::Cut { ends, noticed: [notice(rng), notice(rng)] }
            }
            4..7 => {
                let [from, to] = self.pair(rng);
                Fault::Block { from, to, both: rng.one_in(2), span: span(rng, 500, 12_000) }
            }
            7..9 => Fault::Pause { who: self.node(rng), span: span(rng, 300, 20_000) },
            9..13 => {
                let who = self.node(rng);
                let back = who == Who::Directory && rng.one_in(3);
                let back = if back { Span::secs(3_600) } else { Span::ZERO };
                Fault::Crash { who, hard: rng.one_in(2), down: span(rng, 200, 9_000), back }
            }
            13..15 => Fault::Twin { of: self.member(rng), span: span(rng, 3_000, 20_000) },
            15..18 => {
                let mood = rng.pick(&[Mood::Overloaded, Mood::Disabled, Mood::Withdrawn]);
                let (provider, mood) = (rng.below(providers) as u8, mood.unwrap_or(Mood::Disabled));
                Fault::Mood { provider, mood, span: span(rng, 1_000, 15_000) }
            }
            18 => Fault::Clog { linkd: rng.below(self.linkds.into()) as u8, span: span(rng, 2_000, 15_000) },
            19..21 => Fault::LoseNotice { to: self.member(rng) },
            21 => Fault::DoubleNotice { to: self.member(rng) },
            22 => Fault::Repeat { who: self.member(rng) },
            _ => Fault::Retire { who: self.spare(rng), hard: rng.one_in(2) },
        }
    }

    /// Somebody without whom everybody can still be served.
    fn spare(&self, rng: &mut Rng) -> Who {
        let last = self.offers.len() as u8 - 1;
        let second = self.offers[usize::from(last)].version.main() == 2;
        if rng.one_in(2) && !second { Who::Provider(last) } else { Who::Linkd(self.linkds - 1) }
    }

    fn member(&self, rng: &mut Rng) -> Who {
        if rng.one_in(2) {
            Who::Linkd(rng.below(self.linkds.into()) as u8)
        } else {
            Who::Provider(rng.below(self.offers.len() as u64) as u8)
        }
    }

    fn node(&self, rng: &mut Rng) -> Who {
        if rng.one_in(4) { Who::Directory } else { self.member(rng) }
    }

    /// Two that talk to each other.
    fn pair(&self, rng: &mut Rng) -> [Who; 2] {
        let linkd = Who::Linkd(rng.below(self.linkds.into()) as u8);
        let provider = Who::Provider(rng.below(self.offers.len() as u64) as u8);
        let client = Who::Client(rng.below(self.clients.into()) as u8);
        let pairs =
            [[provider, linkd], [provider, linkd], [linkd, provider], [client, linkd], [linkd, client]];
        match rng.below(8) {
            0 => [self.member(rng), Who::Directory],
            1 => [Who::Directory, self.member(rng)],
            _ => rng.pick(&pairs).unwrap_or([provider, linkd]),
        }
    }
}

/// The first serves everything, so that every module has somebody; the third may be of a second main version.
fn offer(index: u8, rng: &mut Rng) -> Offer {
    let version = match index {
        2 if rng.one_in(3) => AppVersion::new(2, 0, 0, 0),
        1 if rng.one_in(4) => AppVersion(0),
        _ => AppVersion::new(1, u16::from(index), 0, 0),
    };
    let whole = index == 0 || version.main() == 2 || rng.one_in(2);
    let modules = match rng.below(4) {
        _ if whole => vec![HALL, SHOP, ROOM],
        0 => vec![HALL, ROOM],
        1 => vec![SHOP],
        2 => vec![HALL, SHOP],
        _ => vec![ROOM],
    };
    Offer { version, modules }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { seed, linkds, workers, clients, brisk, store, .. } = self;
        writeln!(
            f,
            "seed {seed}: {linkds} linkds of {workers} workers, {clients} clients, brisk leases: {brisk}, a store: {store}"
        )?;
        for (index, offer) in self.offers.iter().enumerate() {
            let modules: Vec<_> = offer.modules.iter().map(ToString::to_string).collect();
            writeln!(f, "  game-{index} {} serves {}", offer.version, modules.join(" "))?;
        }
        for Planned { at, fault } in &self.faults {
            writeln!(f, "  {at} {fault}")?;
        }
        write!(f, "  {HEAL} all healed")
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Cut { ends: [a, b], noticed } => {
                let word = |noticed: &Option<Span>| {
                    noticed.map_or("by silence".into(), |span| format!("after {span}"))
                };
                let [first, second] = noticed.each_ref().map(word);
                write!(f, "cut {a} from {b}; {a} notices {first}, {b} {second}")
            }
            Fault::Block { from, to, both, span } => {
                write!(f, "block {from} -> {to}{} for {span}", if *both { " and back" } else { "" })
            }
            Fault::Pause { who, span } => write!(f, "pause {who} for {span}"),
            Fault::Crash { who, hard, down, back } => {
                let how = if *hard { "the machine of " } else { "" };
                write!(f, "crash {how}{who} for {down}")?;
                if *back > Span::ZERO { write!(f, ", its clock set back {back}") } else { Ok(()) }
            }
            Fault::Twin { of, span } => write!(f, "start a second {of} for {span}"),
            Fault::Mood { provider, mood, span } => write!(f, "{mood:?} game-{provider} for {span}"),
            Fault::Clog { linkd, span } => write!(f, "clog linkd-{linkd} for {span}"),
            Fault::Retire { who, hard } => {
                write!(f, "end {}{who} for good", if *hard { "the machine of " } else { "" })
            }
            Fault::LoseNotice { to } => write!(f, "lose a notice to {to}"),
            Fault::DoubleNotice { to } => write!(f, "double a notice to {to}"),
            Fault::Repeat { who } => write!(f, "{who} asks for its list again"),
        }
    }
}
