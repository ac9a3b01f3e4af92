//! A player: asks again and again, several requests at once, and compares what comes back with what may come.

use std::collections::BTreeSet;
use std::time::Duration;

use base::Retry;
use client::{Client, Event, Options, Reconnect};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::game::{Ask, Desk, Note, Told};
use crate::ledger::{ANSWER_MAX, Shared};
use crate::net::Simulated;
use crate::plan::{LINKDS, OPEN, Plan};
use tests::sim::Rng;

/// How a player who was turned away waits.
const AGAIN: Duration = Duration::from_millis(200);

/// Plays until the plan's end.
pub async fn play(account: &'static str, plan: Plan, ledger: Shared) -> turmoil::Result {
    let began = Instant::now();
    let over = began + plan.end();
    sleep_until(began + OPEN).await;
    let Some(client) = enter(account, over).await else {
        ledger.lock().wrong(format!("{account} never came in"));
        return Ok(());
    };
    let mut rng = Rng::new(plan.seed ^ base::hash::bytes(account.as_bytes()));
    let (mut asking, mut number) = (JoinSet::new(), 0);
    let mut heard = Heard { account, began, last: 0, pushed: BTreeSet::new(), ledger: ledger.clone() };
    while Instant::now() < over {
        for _ in 0..rng.between(1, 2) {
            number += 1;
            let wait_ms = if rng.one_in(4) { rng.below(300) as u32 } else { 0 };
            asking.spawn_local(ask(client.clone(), account, Ask { number, wait_ms }, began, ledger.clone()));
        }
        let next = Instant::now() + Duration::from_millis(rng.between(100, 600));
        heard.until(next, &client).await;
        while asking.try_join_next().is_some() {}
    }
    while asking.join_next().await.is_some() {}
    heard.end(&client);
    tracing::info!(account, number, stats = ?client.stats(), "played");
    Ok(())
}

/// Logs in, as often as it takes.
async fn enter(account: &'static str, over: Instant) -> Option<Client> {
    let addrs = LINKDS.map(|linkd| format!("{linkd}:7710")).join(",");
    let reconnect = Reconnect { wait_max: Duration::from_secs(1), ..Reconnect::default() };
    let options = Options {
        deadline: ANSWER_MAX,
        // What is lost waits for its deadline; it must not keep others from being asked.
        in_flight_max: 4_096,
        reconnect: Some(reconnect),
        ..Options::new(&addrs, account).token(account)
    };
    while Instant::now() < over {
        match Client::connect_over(Simulated::default(), options.clone()).await {
            Ok(client) => return Some(client),
            Err(error) => tracing::info!(account, %error, "not yet in"),
        }
        // Sleep: who is turned away comes again, as clients do; time is virtual.
        sleep(AGAIN).await;
    }
    None
}

async fn ask(client: Client, account: &'static str, ask: Ask, began: Instant, ledger: Shared) {
    let (number, at) = (ask.number, began.elapsed());
    let answer = client.request(Desk::ASK, ask).await;
    tracing::info!(account, number, ?answer, "answered");
    let end = match answer {
        Ok(Told { number: told, account: of }) => {
            if (told, of.as_str()) != (number, account) {
                ledger.lock().wrong(format!("{account}'s request {number} got the answer of {of}'s {told}"));
            }
            Ok(())
        }
        Err(error) => Err(error),
    };
    ledger.lock().ended(account, number, at, end);
}

/// What comes unasked.
struct Heard {
    account: &'static str,
    began: Instant,
    /// The last push.
    last: u64,
    /// Whose requests' pushes have come.
    pushed: BTreeSet<u64>,
    ledger: Shared,
}

impl Heard {
    async fn until(&mut self, time: Instant, client: &Client) {
        let events = client.events();
        loop {
            tokio::select! {
                biased;
                event = events.next() => match event {
                    Some(event) => self.hear(event),
                    None => return sleep_until(time).await,
                },
                () = sleep_until(time) => return,
            }
        }
    }

    fn hear(&mut self, event: Event) {
        let account = self.account;
        tracing::info!(account, ?event, "heard");
        match event {
            Event::Push(push) => match push.decode::<Note>() {
                Some(Ok(Note { number })) if number > self.last => {
                    self.last = number;
                    self.pushed.insert(number);
                }
                other => {
                    self.ledger.lock().wrong(format!("{account} hears {other:?} after push {}", self.last))
                }
            },
            Event::Closed(cause) => self.ledger.lock().wrong(format!("{account} is sent away: {cause}")),
            Event::Report(report) if report.code().is_none_or(|code| code.retry == Retry::Never) => {
                self.ledger.lock().wrong(format!("{account} is told: {report}"));
            }
            Event::Report(_) => self.ledger.lock().told(account, self.began.elapsed()),
            _ => {}
        }
    }

    /// Whatever was answered has pushed before. Nothing was answered twice: what nobody waited for was given up before.
    fn end(&mut self, client: &Client) {
        while let Some(event) = client.events().ready() {
            self.hear(event);
        }
        let answered = self.ledger.lock().answered(self.account);
        for number in answered.difference(&self.pushed) {
            let wrong = format!("{}'s request {number} was answered and its push never came", self.account);
            self.ledger.lock().wrong(wrong);
        }
        let stats = client.stats();
        let given_up = self.ledger.lock().given_up(self.account);
        if stats.late_replies > given_up || stats.unexpected > 0 || stats.ignored > 0 {
            let wrong = format!("{} gave up {given_up} requests and counts {stats:?}", self.account);
            self.ledger.lock().wrong(wrong);
        }
    }
}
