//! Players who talk without a pause while processes come and go, and write down what they see.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::Retry;
use client::{Client, Error, Event, Options};
use parking_lot::Mutex;
use tavern::messages::{Enter, Login, Said, Say};
use tavern::{Rooms, Tavern, codes};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::world::World;

/// Between two requests of one player, and after a refusal.
const PAUSE: Duration = Duration::from_millis(20);
const AGAIN: Duration = Duration::from_millis(100);

/// One player's memory.
#[derive(Debug, Default)]
struct Seen {
    /// What was answered with success, and the words that came back as a push.
    said: BTreeSet<String>,
    heard: BTreeSet<String>,
    /// Beginning of the last request that succeeded.
    served: Option<Instant>,
    failed: Vec<Error>,
    reconnects: u32,
    /// What must never be.
    wrong: Vec<String>,
}

/// Everybody who plays.
pub struct Players {
    seen: Vec<Arc<Mutex<Seen>>>,
    tasks: JoinSet<()>,
    over: CancellationToken,
}

/// What came of it all.
#[derive(Debug)]
pub struct Outcome {
    pub said: usize,
    pub reconnects: u32,
    /// By player.
    pub failed: Vec<Vec<Error>>,
}

impl Outcome {
    pub fn failed(&self) -> impl Iterator<Item = &Error> {
        self.failed.iter().flatten()
    }
}

impl Players {
    /// So many, each in a room of its own; returns when all are served.
    pub async fn begin(world: &World, count: usize) -> Self {
        let (over, mut tasks) = (CancellationToken::new(), JoinSet::new());
        let seen: Vec<_> = (0..count).map(|_| Arc::<Mutex<Seen>>::default()).collect();
        for (n, seen) in seen.iter().enumerate() {
            let account = format!("player-{n}");
            let options = world.options(&account);
            tasks.spawn(play(account, options, seen.clone(), over.clone()));
        }
        let players = Self { seen, tasks, over };
        players.served_within(Duration::from_secs(20)).await;
        // What was refused before all had found each other is no failure of what follows.
        players.seen.iter().for_each(|seen| seen.lock().failed.clear());
        players
    }

    /// Waits until each has had a success that began after now, and says how long that took.
    pub async fn served_within(&self, bound: Duration) -> Duration {
        let now = Instant::now();
        loop {
            let waiting =
                self.seen.iter().filter(|seen| seen.lock().served.is_none_or(|at| at < now)).count();
            if waiting == 0 {
                return now.elapsed();
            }
            assert!(
                now.elapsed() < bound,
                "{waiting} of {} players are not served after {bound:?}: {:#?}",
                self.seen.len(),
                self.seen
            );
            // Sleep: many players' progress has no one event.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Ends the play and judges what must hold whatever was killed.
    pub async fn end(mut self) -> Outcome {
        self.over.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
        let mut outcome = Outcome { said: 0, reconnects: 0, failed: Vec::new() };
        for (n, seen) in self.seen.iter().enumerate() {
            let mut seen = seen.lock();
            assert!(seen.wrong.is_empty(), "player-{n}: {:#?}", seen.wrong);
            let lost: Vec<_> = seen.said.difference(&seen.heard).collect();
            assert!(lost.is_empty(), "player-{n} was answered, and nobody heard it: {lost:?}");
            outcome.said += seen.said.len();
            outcome.reconnects += seen.reconnects;
            outcome.failed.push(std::mem::take(&mut seen.failed));
        }
        outcome
    }
}

async fn play(account: String, options: Options, seen: Arc<Mutex<Seen>>, over: CancellationToken) {
    let client = loop {
        match Client::connect(options.clone()).await {
            Ok(client) => break client,
            Err(error) => seen.lock().failed.push(error),
        }
        // Sleep: who is turned away comes again, as clients do.
        tokio::time::sleep(AGAIN).await;
    };
    let player = Player { room: format!("room of {account}"), account, client, seen };
    let hearing = tokio::spawn(player.clone().hear());
    let (mut inside, mut number) = (false, 0);
    while !over.is_cancelled() {
        number += 1;
        match player.round(inside, number).await {
            Ok(()) => inside = true,
            Err(error) => {
                inside = false;
                player.seen.lock().failed.push(error);
                // Sleep: as above.
                tokio::time::sleep(AGAIN).await;
            }
        }
        // Sleep: the load that is offered.
        tokio::time::sleep(PAUSE).await;
    }
    player.client.close().await;
    hearing.await.unwrap();
    let stats = player.client.stats();
    if stats.unexpected > 0 || stats.ignored > 0 {
        player.seen.lock().wrong.push(format!("{stats:?}"));
    }
}

#[derive(Clone)]
struct Player {
    account: String,
    room: String,
    client: Client,
    seen: Arc<Mutex<Seen>>,
}

impl Player {
    /// Comes in if need be, and says something that nobody has said before.
    async fn round(&self, inside: bool, number: u64) -> Result<(), Error> {
        let began = Instant::now();
        if !inside {
            let welcome = self.client.request(Tavern::LOGIN, Login::default()).await?;
            if welcome.account != self.account {
                self.seen.lock().wrong.push(format!("{} is welcomed as {:?}", self.account, welcome.account));
            }
            self.client.request(Rooms::ENTER, Enter { room: self.room.clone() }).await?;
        }
        let text = format!("{} {number}", self.account);
        let heard =
            self.client.request(Rooms::SAY, Say { room: self.room.clone(), text: text.clone() }).await?;
        let mut seen = self.seen.lock();
        if heard.by != 1 {
            seen.wrong.push(format!("{text:?} went to {} players in a room of one", heard.by));
        }
        seen.said.insert(text);
        seen.served = Some(began);
        Ok(())
    }

    /// Everything that comes without being asked for.
    async fn hear(self) {
        while let Some(event) = self.client.events().next().await {
            let mut seen = self.seen.lock();
            match event {
                Event::Push(push) => match push.decode::<Said>() {
                    Some(Ok(said)) if said.from == self.account && said.room == self.room => {
                        if !seen.heard.insert(said.text.clone()) {
                            seen.wrong.push(format!("heard twice: {said:?}"));
                        }
                    }
                    other => seen.wrong.push(format!("not for {}: {other:?}", self.account)),
                },
                Event::Reconnected { .. } => seen.reconnects += 1,
                _ => {}
            }
        }
    }
}

/// Whether an error says that nothing was done, or that the player has to enter the room anew: where it is kept now,
/// nobody knows of the player.
pub fn refused(error: &Error) -> bool {
    let outside = error.game_code().is_some_and(|(_, code)| code == codes::NOT_IN_ROOM);
    outside || matches!(error.retry(), Retry::Now | Retry::After(_))
}

/// Whether an error says that its connection or its provider was lost on the way: the outcome is unknown.
pub fn lost(error: &Error) -> bool {
    matches!(error.retry(), Retry::Unknown)
}
