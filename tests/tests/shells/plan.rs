//! What a seed means: who is there, and what befalls them when.

use std::fmt;
use std::time::Duration;

use tests::sim::Rng;

/// When players come: linkds are there by then, and share them.
pub const OPEN: Duration = Duration::from_secs(1);
/// When faults begin: everybody has found everybody by then.
const CALM: u64 = 4_000;
/// How long players go on after everything was healed and had its time to recover.
const AFTER: u64 = 5_000;
/// How long everything may take to work again after the last fault has ended: a connection between nodes that lost
/// something is silent for 12 s at most before both ends know, and the dials after that wait 1 s at most.
const RECOVERY: u64 = 14_000;
/// The same where a player's connection was cut without a word: it only hears of that by silence, after 60 s.
const RECOVERY_OF_PLAYERS: u64 = 66_000;

pub const DIRECTORY: &str = "directory";
pub const LINKDS: [&str; 2] = ["linkd-1", "linkd-2"];
pub const GAMES: [&str; 2] = ["game-1", "game-2"];
/// Their hashes put two on each way through a linkd to a game.
pub const PLAYERS: [&str; 8] = ["ann", "bob", "dan", "eve", "gus", "ida", "jim", "kim"];

/// What happens to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Nothing passes between the two, in either direction; what is on its way is lost.
    Cut(&'static str, &'static str),
    /// The same, but it arrives when the fault ends, as TCP sends again what was lost.
    Held(&'static str, &'static str),
    /// What passes takes this long, in milliseconds.
    Slow(&'static str, &'static str, u64),
    /// The process dies: its connections are closed. When the fault ends it starts again.
    Crash(&'static str),
    /// The machine dies: nobody hears of it. When the fault ends it starts again.
    Vanish(&'static str),
}

/// A fault and its time, in milliseconds from the beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spell {
    pub from: u64,
    pub to: u64,
    pub fault: Fault,
}

/// What a run tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    Calm,
    CutLink,
    LostProvider,
    LostLinkd,
    LostDirectory,
    CutPlayer,
    Delays,
    Storm,
}

impl Theme {
    pub const ALL: [Theme; 8] = [
        Theme::Calm,
        Theme::CutLink,
        Theme::LostProvider,
        Theme::LostLinkd,
        Theme::LostDirectory,
        Theme::CutPlayer,
        Theme::Delays,
        Theme::Storm,
    ];

    /// The `nth` seed of this theme.
    pub fn seed(self, nth: u64) -> u64 {
        nth * Self::ALL.len() as u64 + self as u64
    }
}

/// Everything that a seed decides beside the network's own chance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub seed: u64,
    pub theme: Theme,
    pub spells: Vec<Spell>,
}

impl Plan {
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let theme = Theme::ALL[(seed % Theme::ALL.len() as u64) as usize];
        let mut spells = Vec::new();
        let count = match theme {
            Theme::Calm => 0,
            Theme::Storm => rng.between(3, 5),
            _ => rng.between(1, 2),
        };
        let mut from = CALM;
        for _ in 0..count {
            from += rng.below(500);
            let (fault, lasts) = draw(theme, &mut rng);
            spells.push(Spell { from, to: from + lasts, fault });
            // In a storm the next one may come before this one has ended.
            from += if theme == Theme::Storm { rng.between(500, lasts) } else { lasts + 2 * RECOVERY };
        }
        Self { seed, theme, spells }
    }

    /// When the last fault has ended.
    pub fn healed(&self) -> Duration {
        millis(self.spells.iter().map(|spell| spell.to).max().unwrap_or(CALM))
    }

    /// From here on everything must work.
    pub fn recovered(&self) -> Duration {
        let unheard = PLAYERS.iter().any(|player| self.cuts(player));
        self.healed() + millis(if unheard { RECOVERY_OF_PLAYERS } else { RECOVERY })
    }

    /// Whether this player's connection may end without a word that reaches it.
    pub fn cuts(&self, player: &str) -> bool {
        self.spells.iter().any(|spell| match spell.fault {
            Fault::Cut(one, _) => one == player,
            Fault::Vanish(host) => LINKDS.contains(&host),
            _ => false,
        })
    }

    /// When players ask nothing more.
    pub fn end(&self) -> Duration {
        self.recovered() + millis(AFTER)
    }
}

fn draw(theme: Theme, rng: &mut Rng) -> (Fault, u64) {
    let theme = match theme {
        Theme::Storm => Theme::ALL[rng.between(1, 6) as usize],
        other => other,
    };
    let (linkd, game) = (rng.pick(&LINKDS).unwrap_or(LINKDS[0]), rng.pick(&GAMES).unwrap_or(GAMES[0]));
    let player = rng.pick(&PLAYERS).unwrap_or(PLAYERS[0]);
    let dies = |host, rng: &mut Rng| if rng.one_in(3) { Fault::Vanish(host) } else { Fault::Crash(host) };
    match theme {
        Theme::Calm | Theme::Storm | Theme::CutLink => (Fault::Cut(linkd, game), rng.between(1_000, 20_000)),
        Theme::LostProvider => (dies(game, rng), rng.between(200, 20_000)),
        Theme::LostLinkd => (dies(linkd, rng), rng.between(200, 20_000)),
        // The lease is 15 s.
        Theme::LostDirectory => match rng.below(4) {
            0 => (Fault::Cut(DIRECTORY, game), rng.between(2_000, 25_000)),
            1 => (Fault::Cut(DIRECTORY, linkd), rng.between(2_000, 25_000)),
            _ => (dies(DIRECTORY, rng), rng.between(500, 25_000)),
        },
        Theme::CutPlayer => match rng.one_in(2) {
            true => (Fault::Cut(player, linkd), rng.between(1_000, 20_000)),
            false => (Fault::Held(player, linkd), rng.between(1_000, 20_000)),
        },
        Theme::Delays => match rng.one_in(2) {
            true => (Fault::Held(linkd, game), rng.between(100, 5_000)),
            false => (Fault::Slow(linkd, game, rng.between(50, 900)), rng.between(2_000, 10_000)),
        },
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, {:?}", self.seed, self.theme)?;
        for Spell { from, to, fault } in &self.spells {
            write!(f, "\n    {from} ms to {to} ms: {fault:?}")?;
        }
        Ok(())
    }
}
