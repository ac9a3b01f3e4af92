//! Starts the bots at their times, lets them play to the end, and sums up.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use net::{NetIo, Tcp};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::bots::progress::Progress;
use crate::bots::tally::Tally;
use crate::bots::{Bot, Failure, Plan, Scenario, Summary};
use crate::{Client, Error};

/// What the bots of one run share.
pub(crate) struct Run {
    pub plan: Plan,
    pub tally: Tally,
    pub ends: Instant,
    dial: Dial,
}

/// Connects bot n, over whatever network the run has: so that a [`Bot`] has no type parameter.
type Dial = Box<dyn Fn(crate::Options) -> Dialling + Send + Sync>;
type Dialling = std::pin::Pin<Box<dyn Future<Output = Result<Client, Error>> + Send>>;

impl Run {
    /// Connects a bot; a login that succeeds is counted and timed.
    pub async fn connect(&self, index: u32) -> Result<Client, Failure> {
        let connected = (self.dial)(self.plan.options(index)).await;
        match &connected {
            Ok(_) => self.tally.logged_in(),
            Err(error) => tracing::debug!(index, %error, "a bot was not let in"),
        }
        connected.map_err(|error| Failure::Request { step: "connect", error })
    }
}

/// Runs bots over TCP on the current runtime. Ends by itself: at the latest the plan's `seconds` and `grace` after
/// it began.
pub async fn run(scenario: impl Scenario, plan: Plan) -> Summary {
    run_over(Tcp, scenario, plan).await
}

/// As [`run`], over another network.
pub async fn run_over<N: NetIo>(io: N, scenario: impl Scenario, plan: Plan) -> Summary {
    let started = Instant::now();
    let dial: Dial = Box::new(move |options| Box::pin(Client::connect_over(io.clone(), options)));
    let ends = started + std::time::Duration::from_secs(plan.seconds);
    let run = Arc::new(Run { tally: Tally::new(plan.failures_max), ends, dial, plan });
    let scenario = Arc::new(scenario);
    let progress = Progress::start(&run);
    let mut bots = JoinSet::new();
    for index in 0..run.plan.bots {
        let starts = started + run.plan.start(index);
        bots.spawn(play(index, starts, run.clone(), scenario.clone()));
    }
    while let Some(played) = bots.join_next().await {
        if let Err(error) = played {
            // A scenario that panics has failed an assertion of its own.
            run.tally.failed("a bot", &Failure::Check(error.to_string()));
        }
    }
    drop(progress);
    Summary::new(run.plan.bots, started.elapsed(), &run.tally)
}

/// One bot's life.
async fn play(index: u32, starts: Instant, run: Arc<Run>, scenario: Arc<impl Scenario>) {
    // A bot that would start after the end still plays one round: the plan asked for it.
    sleep_until(starts).await;
    let mut bot = match run.connect(index).await {
        Ok(client) => Bot::new(index, client, run.clone()),
        Err(failure) => return run.tally.failed(&run.plan.account(index), &failure),
    };
    let give_up = run.ends.max(starts) + run.plan.grace;
    let rounds = async {
        loop {
            scenario.run(&mut bot).await?;
            run.tally.rounds.fetch_add(1, Ordering::Relaxed);
            bot.round += 1;
            if bot.is_over() {
                return Ok(());
            }
        }
    };
    let played = timeout_at(give_up, rounds).await.unwrap_or(Err(Failure::Overdue(run.plan.grace)));
    if let Err(failure) = played {
        run.tally.failed(bot.account(), &failure);
    }
    bot.leave().await;
}
