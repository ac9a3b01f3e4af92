//! `up --game bazaar` with a folder is killed in the middle of trades, again and again: whoever was answered has what he was
//! told, and a request whose answer was lost is done once when it is sent again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::Retry;
use bazaar::messages::{Balance, Look, MakeOffer, Open, Take, Transfer, Withdraw};
use bazaar::rules::{START_COINS, START_ITEMS};
use bazaar::{Bank, Market};
use client::{Client, Error, Options};
use prost::Message;
use tokio::sync::Notify;
use wire::Rpc;

use crate::process::{PATIENCE, Process, addr_after};

const PAIRS: usize = 4;
/// Kills. Each in the middle of the trades of all pairs.
const ROUNDS: u64 = 10;
/// Answers of a round, at least; each round has some more than the one before, so that the kills come at different steps.
const ANSWERS: u64 = 100;
const PRICE: u64 = 2;
const APPLE: &str = "apple";

/// Counts answers for whoever waits for some.
#[derive(Default)]
struct Answers {
    count: AtomicU64,
    more: Notify,
}

/// Two accounts that trade with each other and nobody else: what each has is known after every answer.
#[derive(Clone)]
struct Pair {
    names: [String; 2],
    model: Model,
    /// Where the numbers of requests begin.
    first: [u64; 2],
    /// The present step was sent, and its answer has not come.
    sent: bool,
    /// How it stood before the step that was answered last, and the answer.
    last: Option<(Model, Balance)>,
}

/// What two accounts have, and which step comes next.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    step: u64,
    coins: [u64; 2],
    apples: [u64; 2],
    /// Who offers an apple.
    open: Option<usize>,
}

impl Model {
    /// Who acts in this step; the two change places after every cycle.
    fn actor(&self) -> usize {
        let seller = (self.step / 5 % 2) as usize;
        if [0, 2].contains(&(self.step % 5)) { seller } else { 1 - seller }
    }

    /// The step was done.
    fn done(&mut self) {
        let actor = self.actor();
        match self.step % 5 {
            0 | 3 => {
                self.apples[actor] -= 1;
                self.open = Some(actor);
            }
            1 => {
                self.coins[actor] -= PRICE;
                self.coins[1 - actor] += PRICE;
                self.apples[actor] += 1;
                self.open = None;
            }
            2 => {
                self.coins[actor] -= PRICE;
                self.coins[1 - actor] += PRICE;
            }
            _ => {
                self.apples[actor] += 1;
                self.open = None;
            }
        }
        self.step += 1;
    }

    fn is(&self, who: usize, balance: &Balance) -> bool {
        let apples = balance.items.get(APPLE).copied().unwrap_or_default();
        let open = usize::from(self.open == Some(who));
        (balance.coins, apples, balance.offers.len()) == (self.coins[who], self.apples[who], open)
    }
}

/// Asks until there is an answer; an error: the connection is gone.
async fn ask<Q: Message + Clone, A: Message + Default>(
    client: &Client,
    rpc: Rpc<Q, A>,
    message: Q,
) -> Result<A, Error> {
    loop {
        match client.request(rpc, message.clone()).await {
            Err(error @ Error::Refused { .. }) if error.retry() != Retry::Never => {
                // Sleep: a refusal for the moment says nothing of when it is over.
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            Err(error @ Error::Refused { .. }) => panic!("{}: {error}", rpc.name),
            answered => return answered,
        }
    }
}

impl Pair {
    fn new(index: usize) -> Self {
        let names = ["left", "right"].map(|side| format!("{side}-{index}"));
        let (coins, apples) = ([START_COINS; 2], [START_ITEMS; 2]);
        let model = Model { step: 0, coins, apples, open: None };
        Self { names, model, first: [0; 2], sent: false, last: None }
    }

    /// Logs in, looks whether everything is there, and trades until the cluster is gone.
    async fn play(mut self, addrs: String, answers: Arc<Answers>) -> Self {
        let clients = [self.enter(&addrs, 0).await, self.enter(&addrs, 1).await];
        if self.first == [0; 2] {
            for who in [0, 1] {
                let opened = ask(&clients[who], Bank::OPEN, Open {}).await.unwrap();
                assert!(opened.fresh);
                self.first[who] = opened.first_request;
            }
        }
        self.check(&clients).await;
        self.say_again(&clients).await;
        while self.step(&clients).await.is_ok() {
            answers.count.fetch_add(1, Ordering::SeqCst);
            answers.more.notify_one();
        }
        self
    }

    async fn enter(&self, addrs: &str, who: usize) -> Client {
        let options =
            Options { reconnect: None, deadline: PATIENCE, ..Options::new(addrs, &self.names[who]) };
        Client::connect(options).await.unwrap()
    }

    /// Everything that was answered is there; what was sent and not answered is there or not, as a whole.
    async fn check(&self, clients: &[Client; 2]) {
        let mut balances = Vec::new();
        for client in clients {
            balances.push(ask(client, Bank::BALANCE, Look {}).await.unwrap());
        }
        let is = |model: &Model| [0, 1].iter().all(|who| model.is(*who, &balances[*who]));
        let mut done = self.model.clone();
        done.done();
        let fine = is(&self.model) || (self.sent && is(&done));
        assert!(fine, "{balances:?} and not {:?}, sent: {}", self.model, self.sent);
    }

    /// What was answered before the kill is answered again, in the same words, and not done again.
    async fn say_again(&self, clients: &[Client; 2]) {
        let Some((model, answer)) = self.last.clone() else { return };
        let again = Self { model, ..self.clone() }.send(clients).await.unwrap();
        assert_eq!(again, answer);
        self.check(clients).await;
    }

    /// Does one step, or does it again if it is not known to be done.
    async fn step(&mut self, clients: &[Client; 2]) -> Result<(), Error> {
        self.sent = true;
        let balance = self.send(clients).await?;
        self.sent = false;
        let (before, actor) = (self.model.clone(), self.model.actor());
        self.model.done();
        assert!(self.model.is(actor, &balance), "{balance:?} and not {:?}", self.model);
        self.last = Some((before, balance));
        Ok(())
    }

    /// Sends the present step; what its actor has after it.
    async fn send(&self, clients: &[Client; 2]) -> Result<Balance, Error> {
        let actor = self.model.actor();
        let (client, request) = (&clients[actor], self.first[actor] + self.model.step);
        // Of the offer that the step before has made.
        let seller = self.model.open.unwrap_or_default();
        let number = (self.first[seller] + self.model.step).saturating_sub(1);
        let balance = match self.model.step % 5 {
            0 | 3 => {
                let offer = MakeOffer { request, kind: APPLE.to_owned(), count: 1, price: PRICE };
                let offered = ask(client, Market::OFFER, offer).await?;
                offered.balance
            }
            1 => {
                let seller = self.names[seller].clone();
                let take = Take { request, seller, number, kind: APPLE.to_owned() };
                ask(client, Market::TAKE, take).await?.balance
            }
            2 => {
                let to = self.names[1 - actor].clone();
                Some(ask(client, Bank::TRANSFER, Transfer { request, to, coins: PRICE }).await?)
            }
            _ => {
                let withdraw = Withdraw { request, number, kind: APPLE.to_owned() };
                ask(client, Market::WITHDRAW, withdraw).await?.balance
            }
        };
        Ok(balance.unwrap())
    }
}

/// The cluster over this folder, and where its gateways are.
fn start(data: &Path) -> (Process, String) {
    let data = data.to_str().unwrap();
    let mut up = Process::start(&["up", "--game", "bazaar", "--base-port", "0", "--data-dir", data]);
    let there = up.wait_for("records ");
    assert!(there.ends_with("all there"), "{there}");
    let addrs = ["linkd-1", "linkd-2"].map(|name| addr_after(&up.wait_for(name), "clients "));
    up.wait_for("the cluster is up");
    (up, addrs.join(","))
}

/// Holds: D5, BI-036.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_was_answered_has_what_he_was_told_after_every_kill() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("records");
    let mut pairs: Vec<_> = (0..PAIRS).map(Pair::new).collect();
    let mut lost = 0;
    for round in 0..ROUNDS {
        let (mut up, addrs) = start(&data);
        let answers = Arc::new(Answers::default());
        let playing = pairs.drain(..).map(|pair| tokio::spawn(pair.play(addrs.clone(), answers.clone())));
        let playing: Vec<_> = playing.collect();
        let enough = async {
            while answers.count.load(Ordering::SeqCst) < ANSWERS + 7 * round {
                answers.more.notified().await;
            }
        };
        tokio::time::timeout(PATIENCE, enough).await.unwrap();
        up.signal("KILL");
        up.end();
        for pair in playing {
            pairs.push(pair.await.unwrap());
        }
        lost += pairs.iter().filter(|pair| pair.sent).count();
    }
    assert!(lost > 0, "no kill came in the middle of a trade");
    let (up, addrs) = start(&data);
    for pair in &pairs {
        let clients = [pair.enter(&addrs, 0).await, pair.enter(&addrs, 1).await];
        pair.check(&clients).await;
    }
    let mut up = up;
    up.signal("INT");
    assert!(up.end().success(), "{:#?}", up.seen);
    assert!(up.seen.iter().any(|line| line.starts_with("audit ") && line.ends_with("all there")));
}
