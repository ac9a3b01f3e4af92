//! Bots against the scripted server: what they do, what they count, how they end.

use std::time::Duration;

use client::bots::{self, Bot, Failure, Plan, Scenario, Summary};
use tokio::task::JoinSet;
use tokio::time::Instant;
use wire::{code, handshake};

use crate::double::{Dials, SAY, Server, Text, network, push, text};

/// Says a number and sees it pushed back.
struct Talk;

impl Scenario for Talk {
    async fn run(&self, bot: &mut Bot) -> Result<(), Failure> {
        let number = bot.random.number().to_string();
        let reply = bot.request(SAY, text(&number)).await?;
        bot.check(reply.text == number, "the reply is what was said")?;
        let said: Text = bot.push(Duration::from_secs(1)).await?;
        bot.check(said.text == number, "the push is what was said")?;
        bot.think().await;
        Ok(())
    }
}

/// Answers each client's requests and pushes what was said; what begins with `wrong` is pushed wrong.
async fn serve(mut dials: Dials, answer: fn(&mut Server, i64, Text) -> Vec<u8>) {
    let mut sessions = JoinSet::new();
    while let Some(mut server) = dials.recv().await {
        sessions.spawn(async move {
            server.admit().await;
            while let Some(received) = server.next().await {
                if received.type_id == handshake::KEEP_ALIVE {
                    continue;
                }
                let said = prost::Message::decode(received.body).unwrap();
                let bytes = answer(&mut server, received.head.session, said);
                server.send(|out| out.extend_from_slice(&bytes)).await;
            }
        });
    }
    sessions.join_all().await;
}

fn echo(session: i64, said: &str, pushed: &str) -> Vec<u8> {
    let mut out = bytes::BytesMut::new();
    push(&mut out, pushed);
    let body = prost::Message::encode_to_vec(&text(said));
    let head = wire::payload::Head::response(session, 0);
    wire::payload::encode_frame(&mut out, SAY.type_id, head, |out| out.extend_from_slice(&body));
    out.to_vec()
}

async fn play(scenario: impl Scenario, plan: Plan, answer: fn(&mut Server, i64, Text) -> Vec<u8>) -> Summary {
    let (net, dials) = network(4096);
    let serving = tokio::spawn(serve(dials, answer));
    let summary = bots::run_over(net, scenario, plan).await;
    serving.await.unwrap();
    summary
}

fn plan(bots: u32) -> Plan {
    Plan { bots, seconds: 3, ramp: bots / 2, ..Plan::new("linkd-1:7710,linkd-2:7710") }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_bots_play_and_the_run_ends_by_itself() {
    let started = Instant::now();
    let summary = play(Talk, plan(1000), |_, session, said| echo(session, &said.text, &said.text)).await;
    assert!(summary.passed(), "{:?}", summary.failures);
    assert_eq!((summary.bots, summary.logins, summary.requests), (1000, 1000, summary.rounds));
    assert_eq!((summary.pushes, summary.pushes_forgotten), (summary.requests, 0));
    assert_eq!(summary.steps["Rooms.say"].count, summary.requests);
    // On average 2 s of play at 100 ms a round.
    assert!((15_000..25_000).contains(&summary.rounds), "{}", summary.rounds);
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_plays_the_same() {
    let once =
        async || play(Talk, plan(20), |_, session, said| echo(session, &said.text, &said.text)).await.rounds;
    assert_eq!(once().await, once().await);
}

#[tokio::test(start_paused = true)]
async fn failed_checks_are_counted_and_the_first_are_told() {
    let plan = Plan { failures_max: 3, ..plan(10) };
    let summary = play(Talk, plan, |_, session, said| echo(session, &said.text, "something else")).await;
    assert_eq!((summary.failed_assertions, summary.errors, summary.passed()), (10, 0, false));
    assert_eq!(summary.failures.len(), 3);
    assert!(
        summary.failures[0].ends_with("check failed: the push is what was said"),
        "{:?}",
        summary.failures
    );
}

#[tokio::test(start_paused = true)]
async fn refusals_are_errors_and_end_their_bot_only() {
    let summary = play(Talk, plan(10), |_, session, said| {
        let lucky = said.text.len() % 2 == 0;
        if lucky {
            return echo(session, &said.text, &said.text);
        }
        let mut out = bytes::BytesMut::new();
        wire::payload::encode_refusal(&mut out, SAY.type_id, session, code::NO_PROVIDER.result());
        out.to_vec()
    })
    .await;
    assert_eq!(
        (summary.errors, summary.failed_assertions),
        (10, 0),
        "every bot meets an odd number in the end"
    );
    assert!(summary.requests > 0);
    assert!(summary.failures[0].contains("NO_PROVIDER"), "{:?}", summary.failures);
}

#[tokio::test(start_paused = true)]
async fn bots_nobody_lets_in_fail_and_the_run_still_ends() {
    let plan = Plan { addrs: "down-1:1".into(), ..plan(5) };
    let (net, _dials) = network(64);
    let summary = bots::run_over(net, Talk, plan).await;
    assert_eq!((summary.logins, summary.errors, summary.passed()), (0, 5, false));
}

/// Never comes back from its first round.
struct Stuck;

impl Scenario for Stuck {
    async fn run(&self, _: &mut Bot) -> Result<(), Failure> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_stuck_bot_is_cut_off_after_the_grace() {
    let started = Instant::now();
    let plan =
        Plan { bots: 2, seconds: 3, grace: Duration::from_secs(1), ramp: 0, ..Plan::new("linkd-1:7710") };
    let summary = play(Stuck, plan, |_, session, said| echo(session, &said.text, &said.text)).await;
    assert_eq!((summary.errors, summary.rounds), (2, 0));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

/// Comes back on a new connection each round.
struct Tunnel;

impl Scenario for Tunnel {
    async fn run(&self, bot: &mut Bot) -> Result<(), Failure> {
        bot.request(SAY, text("before")).await?;
        bot.reconnect().await?;
        let none = bot.push_or_none::<Text>(Duration::from_millis(10)).await?;
        bot.check(none.is_none(), "pushes of the old connection are gone")
    }
}

#[tokio::test(start_paused = true)]
async fn a_bot_may_reconnect() {
    let plan = Plan { bots: 3, seconds: 0, ramp: 0, ..Plan::new("linkd-1:7710") };
    let summary = play(Tunnel, plan, |_, session, said| echo(session, &said.text, &said.text)).await;
    assert!(summary.passed(), "{:?}", summary.failures);
    assert_eq!((summary.logins, summary.rounds, summary.pushes), (6, 3, 3));
}

#[tokio::test(start_paused = true)]
async fn the_summary_is_one_json_object_with_the_promised_fields() {
    let summary = play(Talk, plan(2), |_, session, said| echo(session, &said.text, &said.text)).await;
    let json = serde_json::to_value(&summary).unwrap();
    for field in ["bots", "logins", "requests", "pushes", "errors", "p50_us", "p99_us"] {
        assert!(json[field].is_u64(), "{field}");
    }
    assert_eq!(serde_json::from_value::<Summary>(json).unwrap(), summary);
}

/// Asks several at once.
struct Burst;

impl Scenario for Burst {
    async fn run(&self, bot: &mut Bot) -> Result<(), Failure> {
        let replies = bot.request_all(SAY, (0..5).map(|n| text(&n.to_string())).collect()).await?;
        for (n, reply) in replies.iter().enumerate() {
            bot.check(reply.text == n.to_string(), "answers come in the order of the questions")?;
            let said: Text = bot.push(Duration::ZERO).await?;
            bot.check(said.text == n.to_string(), "they were sent in the order given")?;
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_sent_in_order_and_each_answer_is_counted() {
    let plan = Plan { bots: 1, seconds: 0, ramp: 0, ..Plan::new("linkd-1:7710") };
    let summary = play(Burst, plan, |_, session, said| echo(session, &said.text, &said.text)).await;
    assert!(summary.passed(), "{:?}", summary.failures);
    assert_eq!((summary.requests, summary.steps["Rooms.say"].count), (5, 5));
}

/// Comes back until it is let in.
struct Patient;

impl Scenario for Patient {
    async fn run(&self, bot: &mut Bot) -> Result<(), Failure> {
        bot.request_patiently(SAY, text("let me in"), 3).await.map(drop)
    }
}

#[tokio::test(start_paused = true)]
async fn a_patient_bot_waits_as_long_as_the_refusal_says_and_not_for_ever() {
    let started = Instant::now();
    let plan = Plan { bots: 1, seconds: 0, ramp: 0, ..Plan::new("linkd-1:7710") };
    let summary = play(Patient, plan, |_, session, _| {
        let mut out = bytes::BytesMut::new();
        wire::payload::encode_refusal(&mut out, SAY.type_id, session, code::PROVIDER_BUSY.result());
        out.to_vec()
    })
    .await;
    assert_eq!((summary.retried, summary.errors), (3, 1));
    let waited = started.elapsed();
    assert!(waited >= Duration::from_millis(1500) && waited < Duration::from_secs(4), "{waited:?}");
}
