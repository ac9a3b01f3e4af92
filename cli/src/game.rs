//! The example games that this binary can serve and play.

use client::bots::{self, Plan, Summary};

/// Which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Game {
    /// Chat rooms.
    Tavern,
    /// Coins, items and a market, kept in records.
    Bazaar,
}

impl Game {
    /// A provider that serves it, ready to run.
    pub fn provider(self) -> linkstead::Builder {
        match self {
            Self::Tavern => tavern::provider(),
            Self::Bazaar => bazaar::provider(),
        }
    }

    /// Lets its bots play to the end.
    pub async fn play(self, plan: Plan) -> Summary {
        match self {
            Self::Tavern => bots::run(tavern::bots(), plan).await,
            Self::Bazaar => bots::run(bazaar::bots(), plan).await,
        }
    }
}

impl std::fmt::Display for Game {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tavern => "tavern",
            Self::Bazaar => "bazaar",
        })
    }
}
