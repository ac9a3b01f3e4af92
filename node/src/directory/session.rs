//! One session with the directory over message types: hello, then one loop. It knows no transport; `dial` gives it
//! tonic's stream, tests and the simulation give it channels.

mod tell;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use base::{Epoch, NodeId};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_stream::{Stream, StreamExt};
use wire::directory::{self as msg, from_directory::Kind as From, to_directory::Kind as To};
use wire::{Code, code};

use super::error::JoinError;
use super::ids::IdsError;
use super::service::Instance;
use super::view::{Action, Event, Key};
use super::{Directory, Shared, Wanted};

/// The session wire's version that we speak.
pub const PROTO: u32 = 1;
/// How long the directory may take to admit or refuse; it asks the holder of a doubled node id for at most 1 s.
const ADMISSION_TIMEOUT: Duration = Duration::from_secs(5);
/// No directory makes us beat faster than this, nor wait longer for it.
const BEAT_RANGE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(60));

/// Why a session ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum End {
    #[error("this node said goodbye")]
    Left,
    #[error("the directory closed the session: {0}")]
    Closed(String),
    #[error("nothing was heard from the directory for {0:?}")]
    Silent(Duration),
    #[error("the directory sent something out of order: {0}")]
    OutOfOrder(&'static str),
    /// Refused before admission, or evicted after it.
    #[error("{0}")]
    Refused(JoinError),
}

/// Runs one session until it ends. `to` is bounded: a directory that does not read for the time of a lease is silent.
pub async fn session<S, E>(directory: &Directory, mut from: S, to: mpsc::Sender<msg::ToDirectory>) -> End
where
    S: Stream<Item = Result<msg::FromDirectory, E>> + Unpin,
    E: Display,
{
    let shared = &directory.shared;
    let welcome = tokio::select! {
        biased;
        () = shared.leave.cancelled() => return End::Left,
        welcome = admission(shared, &mut from, &to) => match welcome {
            Ok(welcome) => welcome,
            Err(end) => return end,
        },
    };
    tracing::info!(node = %shared.join.node, epoch = welcome.epoch, warming = welcome.warming, "in session with the directory");
    let mut session = Session::begin(shared.clone(), to, &welcome);
    session.run(from).await
}

async fn admission<S, E>(
    shared: &Shared,
    from: &mut S,
    to: &mpsc::Sender<msg::ToDirectory>,
) -> Result<msg::Welcome, End>
where
    S: Stream<Item = Result<msg::FromDirectory, E>> + Unpin,
    E: Display,
{
    let join = &shared.join;
    let hello = msg::Hello {
        cluster: join.cluster.clone(),
        node: join.node.as_str().to_owned(),
        role: join.role.clone(),
        host: join.host.clone(),
        ops_address: join.ops_address.clone(),
        epoch: shared.epoch.borrow().0,
        epoch_seen_max: shared.known.lock().view.epoch_seen_max().0,
        proto: PROTO,
    };
    let deadline = Instant::now() + ADMISSION_TIMEOUT;
    let hello = msg::ToDirectory { kind: Some(To::Hello(hello)) };
    to.send(hello).await.map_err(|_| End::Closed("before hello".to_owned()))?;
    let answer = tokio::time::timeout_at(deadline, from.next()).await;
    match answer.map_err(|_| End::Silent(ADMISSION_TIMEOUT))? {
        Some(Ok(msg::FromDirectory { kind: Some(From::Welcome(welcome)) })) => match welcome.epoch {
            0 => Err(End::OutOfOrder("a welcome without an epoch")),
            _ => Ok(welcome),
        },
        Some(Ok(msg::FromDirectory { kind: Some(From::Refused(refused)) })) => Err(refusal(shared, refused)),
        Some(Ok(_)) => Err(End::OutOfOrder("something before welcome")),
        Some(Err(error)) => Err(End::Closed(error.to_string())),
        None => Err(End::Closed("before an answer to hello".to_owned())),
    }
}

fn refusal(shared: &Shared, refused: msg::Refused) -> End {
    let node = shared.join.node.clone();
    End::Refused(if refused.code == code::DUPLICATE_NODE.number {
        JoinError::DuplicateNode { node, ours: shared.join.host.clone(), theirs: refused.other_host }
    } else {
        JoinError::refused(node, refused.code, refused.text)
    })
}

/// An admitted session.
struct Session {
    shared: Arc<Shared>,
    to: mpsc::Sender<msg::ToDirectory>,
    ttl: Duration,
    beat: Interval,
    beats: u64,
    heard: Instant,
    /// The last [`Wanted::seq`] sent.
    registered: u64,
    /// How many of [`Wanted::names`] the view knows.
    followed: usize,
    /// Claims up to this one were said again; none when all were.
    replaying: Option<Replay>,
    /// The names that this session observes.
    observed: BTreeSet<String>,
    /// How much of this node's loads and offline ids this session has said.
    loads_said: u64,
    heirs_named: u64,
}

/// How far claims were said again.
#[derive(Default)]
struct Replay(Option<Arc<str>>);

/// However a session ends, also by being dropped, the handle shows it.
impl Drop for Session {
    fn drop(&mut self) {
        self.shared.claims.lock().close();
        self.shared.ids.lock().close(|| Err(IdsError::Unknown));
        self.shared.state.send_modify(|state| state.connected = false);
    }
}

impl Session {
    fn begin(shared: Arc<Shared>, to: mpsc::Sender<msg::ToDirectory>, welcome: &msg::Welcome) -> Self {
        let given = Epoch(welcome.epoch);
        let millis = |ms: u32| Duration::from_millis(ms.into()).clamp(BEAT_RANGE.0, BEAT_RANGE.1);
        let every = millis(welcome.heartbeat_ms);
        let mut beat = tokio::time::interval_at(Instant::now() + every, every);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Followers of the state look at the epoch, so the epoch is first.
        shared.claims.lock().open();
        shared.ids.lock().open();
        if shared.epoch.send_if_modified(|epoch| std::mem::replace(epoch, given) != given) {
            shared.claims.lock().start_over();
        }
        shared.state.send_modify(|state| {
            state.connected = true;
            state.admitted += 1;
            state.warming = welcome.warming;
        });
        let ttl = millis(welcome.ttl_ms).max(every);
        let followed = shared.known.lock().view.followed();
        let (heard, replaying) = (Instant::now(), Some(Replay::default()));
        shared.heirs.lock().open();
        let observed = BTreeSet::new();
        let (registered, loads_said, heirs_named) = (0, 0, 0);
        Self {
            shared,
            to,
            ttl,
            beat,
            beats: 0,
            heard,
            registered,
            followed,
            replaying,
            observed,
            loads_said,
            heirs_named,
        }
    }

    async fn run<S, E>(&mut self, mut from: S) -> End
    where
        S: Stream<Item = Result<msg::FromDirectory, E>> + Unpin,
        E: Display,
    {
        let shared = self.shared.clone();
        let mut next = self.replay().await;
        while next.is_ok() {
            next = tokio::select! {
                biased;
                () = shared.leave.cancelled() => {
                    // The stream ends when the directory has taken the Bye and closes.
                    let said = self.send(To::Bye(msg::Bye {})).await;
                    let closed = async { while let Some(Ok(_)) = from.next().await {} };
                    let _ = tokio::time::timeout(ADMISSION_TIMEOUT, closed).await;
                    Err(said.err().unwrap_or(End::Left))
                }
                _ = self.beat.tick() => {
                    self.beats += 1;
                    self.send(To::Heartbeat(msg::Heartbeat { seq: self.beats })).await
                }
                () = shared.changed.notified() => self.sync().await,
                // After the beat, so that a flood of changes can't make this node look dead; before silence.
                message = from.next() => match message {
                    Some(Ok(message)) => {
                        self.heard = Instant::now();
                        self.take(message).await
                    }
                    Some(Err(error)) => Err(End::Closed(error.to_string())),
                    None => Err(End::Closed("the stream ended".to_owned())),
                },
                // Last of what has work, so that a hundred thousand claims hold up neither beats nor answers.
                () = std::future::ready(()), if self.replaying.is_some() => self.replay_claims().await,
                () = tokio::time::sleep_until(self.heard + self.ttl) => Err(End::Silent(self.ttl)),
            };
        }
        next.err().unwrap_or(End::Left)
    }

    async fn take(&mut self, message: msg::FromDirectory) -> Result<(), End> {
        match message.kind {
            Some(From::Snapshot(snapshot)) if snapshot.code != 0 => {
                let (name, code) = (&snapshot.name, name_of(snapshot.code));
                tracing::error!(%name, code, text = %snapshot.text, "the directory refused a subscription");
                metrics::counter!("linkstead_node_directory_refusals_total", "what" => "subscribe")
                    .increment(1);
                Ok(())
            }
            Some(From::Snapshot(snapshot)) => {
                let msg::Snapshot { name, revision, warming, more, instances, .. } = snapshot;
                let instances = instances.into_iter().filter_map(Instance::from_wire).collect();
                self.feed(Event::Snapshot { name, revision, warming, instances, more }).await
            }
            Some(From::Delta(delta)) => {
                let msg::Delta { name, previous, revision, added, removed } = delta;
                let added = added.into_iter().filter_map(Instance::from_wire).collect();
                let removed = removed.into_iter().filter_map(key).collect();
                self.feed(Event::Delta { name, previous, revision, added, removed }).await
            }
            Some(From::Warm(_)) => {
                self.shared.state.send_modify(|state| state.warming = false);
                self.feed(Event::Warm).await
            }
            Some(From::Ping(ping)) => self.send(To::Pong(msg::Pong { nonce: ping.nonce })).await,
            Some(From::Registered(answer)) => {
                if answer.code != 0 {
                    let code = name_of(answer.code);
                    tracing::error!(seq = answer.seq, code, text = %answer.text, "the directory refused this node's services");
                    metrics::counter!("linkstead_node_directory_refusals_total", "what" => "register")
                        .increment(1);
                }
                Ok(())
            }
            Some(From::Refused(refused)) => Err(refusal(&self.shared, refused)),
            Some(From::Welcome(_)) => Err(End::OutOfOrder("a second welcome")),
            Some(From::Claimed(claimed)) => {
                self.shared.claims.lock().answered(self.shared.clock.now(), claimed);
                Ok(())
            }
            Some(From::AllocatedIds(answer)) => {
                self.shared.ids.lock().take(answer);
                Ok(())
            }
            Some(From::Loads(loads)) => {
                self.shared.board.lock().take(loads);
                Ok(())
            }
            Some(From::Offline(question)) => {
                self.shared.ask_heir(question);
                Ok(())
            }
            Some(From::Unreachable(unreachable)) => {
                tell::say_unreachable(&unreachable);
                Ok(())
            }
            // A newer directory may say things we don't know yet.
            Some(From::Heartbeat(_)) | None => Ok(()),
        }
    }

    /// Says everything again that this node had: what it offers first, so that it is missed as briefly as possible.
    async fn replay(&mut self) -> Result<(), End> {
        self.register().await?;
        self.feed(Event::Connected).await?;
        self.follow().await?;
        self.tell().await
    }

    /// Sends what the handle was told since the last time.
    async fn sync(&mut self) -> Result<(), End> {
        self.register().await?;
        self.follow().await?;
        self.tell().await?;
        while let Some(claim) = self.next_claim() {
            self.send(To::Claim(claim)).await?;
        }
        while let Some(ids) = self.next_ids() {
            self.send(To::AllocateIds(ids)).await?;
        }
        Ok(())
    }

    async fn replay_claims(&mut self) -> Result<(), End> {
        let Some(Replay(last)) = self.replaying.take() else { return Ok(()) };
        let (claims, next) = self.shared.claims.lock().replay(self.shared.clock.now(), last.as_ref());
        for claim in claims {
            self.send(To::Claim(claim)).await?;
        }
        self.replaying = next.map(|key| Replay(Some(key)));
        Ok(())
    }

    async fn register(&mut self) -> Result<(), End> {
        let register = {
            let wanted = self.shared.wanted.lock();
            (wanted.seq > self.registered).then(|| registration(&wanted))
        };
        let Some(register) = register else { return Ok(()) };
        self.registered = register.seq;
        self.send(To::Register(register)).await
    }

    async fn follow(&mut self) -> Result<(), End> {
        let names: Vec<String> =
            self.shared.wanted.lock().names.iter().skip(self.followed).cloned().collect();
        for name in names {
            self.followed += 1;
            self.feed(Event::Follow { name }).await?;
        }
        Ok(())
    }

    /// Steps the view, publishes what changed and sends what it asks for.
    async fn feed(&mut self, event: Event) -> Result<(), End> {
        let mut actions = Vec::new();
        {
            let mut known = self.shared.known.lock();
            let known = &mut *known;
            known.view.step(self.shared.clock.now(), event, &mut actions);
            for action in &actions {
                if let Action::Changed { name, .. } = action
                    && let Some(watch) = known.watches.get(name)
                {
                    watch.send_replace(known.view.services(name));
                }
            }
            let less =
                |action: &Action| matches!(action, Action::Changed { removed, .. } if !removed.is_empty());
            if actions.iter().any(less) {
                self.forget_loads(&known.view);
            }
        }
        for action in actions {
            match action {
                Action::Subscribe { name } => self.ask_for(name).await?,
                Action::Changed { name, added, removed } => {
                    tracing::debug!(%name, ?added, ?removed, "the directory's list changed");
                }
                Action::Gap { name, expected, previous } => {
                    tracing::warn!(%name, expected, previous, "a change was missed; asking for the list anew");
                    metrics::counter!("linkstead_node_directory_gaps_total").increment(1);
                }
            }
        }
        Ok(())
    }

    async fn send(&self, kind: To) -> Result<(), End> {
        let message = msg::ToDirectory { kind: Some(kind) };
        match tokio::time::timeout(self.ttl, self.to.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End::Closed("while sending".to_owned())),
            Err(_) => Err(End::Silent(self.ttl)),
        }
    }
}

fn registration(wanted: &Wanted) -> msg::Register {
    msg::Register { seq: wanted.seq, services: wanted.services.iter().map(Into::into).collect() }
}

fn key(key: msg::Key) -> Option<Key> {
    Some((key.name, NodeId::new(&key.node).ok()?))
}

fn name_of(number: i32) -> &'static str {
    Code::find(number).map_or("UNKNOWN", |code| code.name)
}

#[cfg(test)]
mod tests;
