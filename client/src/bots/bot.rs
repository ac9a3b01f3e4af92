//! One bot as its scenario sees it: requests that are timed, pushes that are kept, checks that are counted.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::{Retry, TypeId};
use bytes::Bytes;
use prost::Message;
use tokio::time::{Instant, sleep, timeout_at};
use wire::{Notify, Rpc};

use crate::bots::random::Random;
use crate::bots::run::Run;
use crate::{Client, Error, Event, Events};

/// Pushes of one type kept for the scenario. The oldest goes when one more comes, which the summary counts as
/// `pushes_forgotten`: a scenario that doesn't look at a type of push need not care.
pub const PUSHES_KEPT_MAX: usize = 1024;

/// Why a bot gave up.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Failure {
    /// A [`check`](Bot::check) did not hold.
    #[error("check failed: {0}")]
    Check(String),
    /// A request or the login failed.
    #[error("{step}: {error}")]
    Request { step: &'static str, error: Error },
    /// An expected push did not come.
    #[error("no {name} came within {within:?}")]
    NoPush { name: &'static str, within: Duration },
    #[error("a {name} can't be read: {reason}")]
    BadPush { name: &'static str, reason: String },
    /// The last round did not end in time.
    #[error("still playing {0:?} after the end")]
    Overdue(Duration),
}

impl Failure {
    /// Whether it counts as a failed assertion; the others are errors.
    pub fn is_assertion(&self) -> bool {
        matches!(self, Failure::Check(_) | Failure::NoPush { .. } | Failure::BadPush { .. })
    }
}

/// One player.
pub struct Bot {
    /// 0 to the plan's number of bots, exclusive.
    pub index: u32,
    /// Rounds begun before this one.
    pub round: u64,
    /// This bot's own random numbers.
    pub random: Random,
    client: Client,
    events: Events,
    kept: HashMap<TypeId, VecDeque<Bytes>>,
    run: Arc<Run>,
}

impl fmt::Debug for Bot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bot").field("index", &self.index).field("round", &self.round).finish_non_exhaustive()
    }
}

impl Bot {
    pub(crate) fn new(index: u32, client: Client, run: Arc<Run>) -> Self {
        let random = Random::new(run.plan.seed, index.into());
        Self { index, round: 0, random, events: client.events(), client, kept: HashMap::new(), run }
    }

    /// The bot's connection, for what this type doesn't offer. Take events here only, else they are missed there.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    pub fn account(&self) -> &str {
        self.client.account()
    }

    /// How many bots the run has.
    pub fn bots(&self) -> u32 {
        self.run.plan.bots
    }

    /// The account of another bot.
    pub fn account_of(&self, index: u32) -> String {
        self.run.plan.account(index)
    }

    /// The time is up: finish.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.run.ends
    }

    /// Asks, times the answer under the protocol's name, and keeps pushes that come meanwhile.
    pub async fn request<Q, A>(&mut self, rpc: Rpc<Q, A>, message: Q) -> Result<A, Failure>
    where
        Q: Message,
        A: Message + Default,
    {
        let client = self.client.clone();
        let answer = self.timed(rpc.name, client.request(rpc, message)).await;
        answer.map_err(|error| Failure::Request { step: rpc.name, error })
    }

    /// Sends all of them at once, in this order, and waits for every answer; each is timed under the protocol's name.
    /// At most [`Options::in_flight_max`](crate::Options::in_flight_max).
    pub async fn request_all<Q, A>(&mut self, rpc: Rpc<Q, A>, messages: Vec<Q>) -> Result<Vec<A>, Failure>
    where
        Q: Message,
        A: Message + Default,
    {
        let (client, run, index) = (self.client.clone(), self.run.clone(), self.index);
        let started = Instant::now();
        let mut asks: Vec<_> =
            messages.into_iter().map(|message| Box::pin(client.request(rpc, message))).collect();
        let mut answers: Vec<_> = asks.iter().map(|_| None).collect();
        let all = std::future::poll_fn(|cx| {
            let mut waits = false;
            for (ask, answer) in asks.iter_mut().zip(&mut answers).filter(|(_, answer)| answer.is_none()) {
                match ask.as_mut().poll(cx) {
                    Poll::Ready(done) => {
                        if done.is_ok() {
                            run.tally.timed(index, rpc.name, started.elapsed());
                        }
                        *answer = Some(done);
                    }
                    Poll::Pending => waits = true,
                }
            }
            if waits { Poll::Pending } else { Poll::Ready(()) }
        });
        self.listening(all).await;
        let answers: Result<_, _> = answers.into_iter().flatten().collect();
        answers.map_err(|error| Failure::Request { step: rpc.name, error })
    }

    /// As [`request`](Self::request), for requests that the game may refuse: its own codes come back as `Ok(Err(…))`
    /// and are no failure.
    pub async fn try_request<Q, A>(&mut self, rpc: Rpc<Q, A>, message: Q) -> Result<Result<A, Error>, Failure>
    where
        Q: Message,
        A: Message + Default,
    {
        match self.request(rpc, message).await {
            Ok(answer) => Ok(Ok(answer)),
            Err(Failure::Request { error, .. }) if error.game_code().is_some() => Ok(Err(error)),
            Err(failure) => Err(failure),
        }
    }

    /// As [`request`](Self::request), but a refusal that names a wait is waited for and asked again, at most
    /// `again_max` times, as a well-behaved client does with a cluster that is full for the moment. The summary counts
    /// these as `retried`.
    pub async fn request_patiently<Q, A>(
        &mut self,
        rpc: Rpc<Q, A>,
        message: Q,
        again_max: u32,
    ) -> Result<A, Failure>
    where
        Q: Message + Clone,
        A: Message + Default,
    {
        for _ in 0..again_max {
            match self.request(rpc, message.clone()).await {
                Err(Failure::Request { error, .. }) if let Retry::After(wait) = error.retry() => {
                    self.run.tally.retried();
                    let wait = Duration::from(wait);
                    self.think_for(wait / 2..wait).await;
                }
                answered => return answered,
            }
        }
        self.request(rpc, message).await
    }

    /// Sends a message that nobody answers.
    pub fn notify<M: Message>(&mut self, rpc: Notify<M>, message: M) -> Result<(), Failure> {
        self.client.notify(rpc, message).map_err(|error| Failure::Request { step: rpc.name, error })
    }

    /// Times anything as one request of the step `name`, and keeps pushes that come meanwhile. Failed ones are not
    /// timed.
    pub async fn timed<T, E>(
        &mut self,
        name: &'static str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let started = Instant::now();
        let result = self.listening(work).await;
        if result.is_ok() {
            self.run.tally.timed(self.index, name, started.elapsed());
        }
        result
    }

    /// Waits as long as the plan says a player thinks.
    pub async fn think(&mut self) {
        let think = self.run.plan.think.clone();
        self.think_for(think).await;
    }

    /// Waits, drawn evenly from `range`; pushes that come meanwhile are kept.
    pub async fn think_for(&mut self, range: Range<Duration>) {
        let wait = self.random.duration(&range);
        self.listening(sleep(wait)).await;
    }

    /// An assertion: when `holds` is false the bot has failed, and `text` says in what.
    pub fn check(&self, holds: bool, text: impl Into<String>) -> Result<(), Failure> {
        if holds { Ok(()) } else { Err(Failure::Check(text.into())) }
    }

    /// The next push of type `P`, in order of arrival; one that came before counts. Other types stay kept.
    pub async fn push<P: wire::Push>(&mut self, within: Duration) -> Result<P, Failure> {
        let found = self.push_or_none::<P>(within).await?;
        found.ok_or(Failure::NoPush { name: P::NAME, within })
    }

    /// As [`push`](Self::push), where none is no failure.
    pub async fn push_or_none<P: wire::Push>(&mut self, within: Duration) -> Result<Option<P>, Failure> {
        let give_up = Instant::now() + within;
        loop {
            if let Some(body) = self.kept.get_mut(&P::TYPE_ID).and_then(VecDeque::pop_front) {
                let bad =
                    |error: prost::DecodeError| Failure::BadPush { name: P::NAME, reason: error.to_string() };
                return P::decode(body).map(Some).map_err(bad);
            }
            match timeout_at(give_up, self.events.next()).await {
                Ok(Some(event)) => self.keep(event),
                // The connection's end: nothing can come any more.
                Ok(None) | Err(_) => return Ok(None),
            }
        }
    }

    /// The next push of type `P` that `wanted` accepts; those before it are dropped.
    pub async fn push_that<P: wire::Push>(
        &mut self,
        within: Duration,
        wanted: impl Fn(&P) -> bool,
    ) -> Result<P, Failure> {
        let give_up = Instant::now() + within;
        loop {
            let left = give_up.saturating_duration_since(Instant::now());
            let push = self.push::<P>(left).await.map_err(|failure| match failure {
                Failure::NoPush { name, .. } => Failure::NoPush { name, within },
                other => other,
            })?;
            if wanted(&push) {
                return Ok(push);
            }
        }
    }

    /// Closes the connection and logs in anew, as a player does whose phone was in a tunnel. Kept pushes go.
    pub async fn reconnect(&mut self) -> Result<(), Failure> {
        self.client.close().await;
        self.drain();
        self.run.tally.closed(&self.client);
        self.client = self.run.connect(self.index).await?;
        self.events = self.client.events();
        self.kept.clear();
        Ok(())
    }

    /// The end of the bot.
    pub(crate) async fn leave(mut self) {
        self.client.close().await;
        self.drain();
        self.run.tally.closed(&self.client);
    }

    fn drain(&mut self) {
        while let Some(event) = self.events.ready() {
            self.keep(event);
        }
    }

    /// Runs `work` while keeping pushes, so that a busy room never stops the connection's reading.
    async fn listening<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            let events = self.events.clone();
            tokio::select! {
                biased;
                done = &mut work => return done,
                Some(event) = events.next() => self.keep(event),
                else => return work.await,
            }
        }
    }

    fn keep(&mut self, event: Event) {
        let Event::Push(push) = event else { return };
        let kept = self.kept.entry(push.type_id).or_default();
        if kept.len() == PUSHES_KEPT_MAX {
            kept.pop_front();
            self.run.tally.forgotten();
        }
        kept.push_back(push.body);
    }
}
