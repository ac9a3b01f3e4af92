//! How many bots, how fast they come, how long they stay.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::{Options, Token};

/// A run's numbers. Make one with [`Plan::new`] and change what you need.
#[derive(Debug, Clone)]
pub struct Plan {
    pub bots: u32,
    /// Bots that start per second; 0 starts all at once.
    pub ramp: u32,
    /// How long the run lasts, ramp included. Rounds that have begun by then are finished.
    pub seconds: u64,
    /// How long [`Bot::think`](crate::bots::Bot::think) waits: drawn evenly from this range.
    pub think: Range<Duration>,
    /// The same seed makes each bot draw the same numbers.
    pub seed: u64,
    /// Linkds; bots spread over them by their accounts.
    pub addrs: String,
    /// Bot n plays as account `{account}{n}`.
    pub account: String,
    /// Failures kept as texts; the others are counted.
    pub failures_max: usize,
    /// How long a bot may take for its last round once the time is up. A bot that takes longer has failed.
    pub grace: Duration,
    /// Show a bar while it runs, if standard error is a terminal.
    pub progress: bool,
    /// What the bots' connections are made with; addresses and accounts are the plan's.
    pub options: Options,
    /// Gives each bot a new token for each login; `None`: all have that of `options`.
    pub tokens: Option<Tokens>,
}

/// A new token for an account, or why there is none.
#[derive(Clone)]
pub struct Tokens(Arc<Make>);

type Make = dyn Fn(&str) -> Result<String, String> + Send + Sync;

impl Tokens {
    /// `make` is called on the bots' threads, so it must not wait.
    pub fn new(make: impl Fn(&str) -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Plan {
    /// 100 bots for ten seconds, arriving within the first two.
    pub fn new(addrs: impl Into<String>) -> Self {
        let addrs = addrs.into();
        Self {
            bots: 100,
            ramp: 0,
            seconds: 10,
            think: Duration::from_millis(50)..Duration::from_millis(150),
            seed: 1,
            options: Options::new(&addrs, "bot"),
            addrs,
            account: "bot-".into(),
            failures_max: 10,
            grace: Duration::from_secs(20),
            progress: true,
            tokens: None,
        }
        .ramped_within_a_fifth()
    }

    /// Lets the bots arrive evenly within the first fifth of the run, whatever their number.
    pub fn ramped_within_a_fifth(mut self) -> Self {
        let seconds = u32::try_from(self.seconds.div_ceil(5)).unwrap_or(u32::MAX).max(1);
        self.ramp = self.bots.div_ceil(seconds);
        self
    }

    /// When bot `index` starts, counted from the run's start.
    pub(crate) fn start(&self, index: u32) -> Duration {
        match self.ramp {
            0 => Duration::ZERO,
            ramp => Duration::from_secs_f64(f64::from(index) / f64::from(ramp)),
        }
    }

    pub(crate) fn options(&self, index: u32) -> Options {
        let Options { addrs, .. } = Options::new(&self.addrs, "bot");
        let account = self.account(index);
        let token = match self.tokens.clone() {
            None => self.options.token.clone(),
            Some(Tokens(make)) => {
                let account = account.clone();
                Token::fresh(move || std::future::ready(make(&account)))
            }
        };
        Options { addrs, account, token, ..self.options.clone() }
    }

    /// The account that bot `index` plays as.
    pub fn account(&self, index: u32) -> String {
        format!("{}{index}", self.account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bots_arrive_evenly() {
        let plan = Plan { bots: 1000, ramp: 500, ..Plan::new("a:1") };
        assert_eq!(plan.start(0), Duration::ZERO);
        assert_eq!(plan.start(250), Duration::from_millis(500));
        assert_eq!(Plan { ramp: 0, ..plan.clone() }.start(999), Duration::ZERO);
        let ramped = Plan { bots: 200, seconds: 10, ..plan }.ramped_within_a_fifth();
        assert_eq!(ramped.ramp, 100);
    }
}
