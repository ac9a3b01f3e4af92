//! Bots: many scripted players in one process, with assertions, percentiles and a summary.
//!
//! A scenario is one round of play. Every bot connects, plays rounds until the time is up, finishes the round it is in
//! and leaves; the run then ends by itself.
//!
//! ```no_run
//! use client::bots::{self, Bot, Failure, Plan, Scenario};
//! # use wire::Rpc;
//! # #[derive(Clone, PartialEq, prost::Message)]
//! # struct Say { #[prost(string, tag = "1")] text: String }
//! # #[derive(Clone, PartialEq, prost::Message)]
//! # struct Said { #[prost(string, tag = "1")] text: String }
//! # impl wire::Push for Said {
//! #     const TYPE_ID: base::TypeId = base::TypeId(0x2_0000_0001);
//! #     const NAME: &'static str = "Rooms.Said";
//! # }
//! # struct Rooms;
//! # impl Rooms { const SAY: Rpc<Say, ()> = Rpc::new(2, 1, "Rooms.say"); }
//! struct Talker;
//!
//! impl Scenario for Talker {
//!     async fn run(&self, bot: &mut Bot) -> Result<(), Failure> {
//!         bot.request(Rooms::SAY, Say { text: "hello".into() }).await?;
//!         let said: Said = bot.push(std::time::Duration::from_secs(2)).await?;
//!         bot.check(said.text == "hello", "what is said comes back")?;
//!         bot.think().await;
//!         Ok(())
//!     }
//! }
//!
//! # async fn example() {
//! let plan = Plan { bots: 200, seconds: 10, ..Plan::new("127.0.0.1:7710") };
//! let summary = bots::run(Talker, plan).await;
//! assert!(summary.passed(), "{:?}", summary.failures);
//! # }
//! ```
//!
//! | module | is |
//! |---|---|
//! | [`plan`] | how many, how fast, how long |
//! | [`bot`] | one player, as its scenario sees it |
//! | [`random`] | a bot's own random numbers |
//! | `run` | starts, ramps and ends a run |
//! | [`summary`] | what came of it |
//! | `tally` | counters and histograms while it runs |
//! | `progress` | the bar on a terminal |

pub mod bot;
pub mod plan;
mod progress;
pub mod random;
mod run;
pub mod summary;
mod tally;

pub use bot::{Bot, Failure};
pub use plan::{Plan, Tokens};
pub use random::Random;
pub use run::{run, run_over};
pub use summary::{Step, Summary};

/// What bots do. One value serves all bots of a run, so state that they share is its fields.
pub trait Scenario: Send + Sync + 'static {
    /// One round of one bot, played again until the time is up. A long round looks at [`Bot::is_over`] now and then.
    ///
    /// An error ends the bot for good and stands in the summary; the others play on.
    fn run(&self, bot: &mut Bot) -> impl Future<Output = Result<(), Failure>> + Send;
}
