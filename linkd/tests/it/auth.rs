//! Who gets in: tickets, providers that judge, wrong keys, and those who try too often.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::{Account, Generation};
use bytes::BytesMut;
use linkd::auth::attempts::Attempts;
use linkd::auth::ticket::{Replay, Tickets, Used};
use linkd::auth::{Gate, Way};
use wire::auth::{AUTH, Auth};
use wire::code::{self, Code};
use wire::link::{AUTHENTICATE, message};
use wire::payload::{self, Head};
use wire::ticket::{Key, Signer, Ticket};

use crate::client::Client;
use crate::world::{Provider, World, request, settings, within};

/// The same for every test process, and nobody's.
pub fn signer(kid: u16) -> Signer {
    Signer::new(kid, &[kid as u8; 32])
}

pub fn now() -> u64 {
    node::clock::unix_micros() / 1_000_000
}

pub fn ticket(signer: &Signer, account: &str, id: u8) -> String {
    let ticket = Ticket {
        kid: signer.kid(),
        issued: now(),
        not_before: now(),
        expires: now() + 300,
        id: [id; 16],
        app_main: 0,
        audience: "test".into(),
        account: Account::new(account).unwrap(),
    };
    ticket.sign(signer).unwrap()
}

pub fn gate(way: Way) -> Gate {
    Gate::new(way, Attempts::new(10, 20), 4)
}

pub fn tickets(paths: Vec<PathBuf>, given: Vec<Key>) -> Way {
    let replay = Replay::Local(Arc::new(Used::new(1_000)));
    Way::Ticket(Arc::new(Tickets::new("test".into(), paths, given, replay).unwrap()))
}

impl Client {
    /// Sends an Auth and answers its result.
    pub async fn auth(&mut self, account: &str, token: &[u8]) -> i64 {
        let mut out = BytesMut::new();
        let auth = Auth { account: account.as_bytes(), token, ..Auth::default() };
        payload::encode_frame(&mut out, AUTH, Head::request(1), |out| auth.encode(out));
        self.send(&out).await;
        loop {
            let got = self.frame().await.expect("an answer to Auth");
            if got.type_id == AUTH {
                return got.head.code;
            }
        }
    }
}

impl World {
    /// A provider that says it judges logins, and answers as the test does.
    pub async fn authenticator(&self, node: &str) -> Provider {
        self.authenticator_as(node, Generation(base::hash::bytes(node.as_bytes()))).await
    }

    /// The same, as another connection of its node.
    pub async fn authenticator_as(&self, node: &str, conn: Generation) -> Provider {
        self.announced(node, conn, true, true).await
    }
}

async fn once(world: &World, account: &str, token: &[u8]) -> &'static str {
    let result = world.connect().await.auth(account, token).await;
    if result == 0 { "in" } else { Code::of_result(result).unwrap().name }
}

/// Holds: BI-021, BI-023, BI-024, Q37.
#[tokio::test]
async fn a_ticket_lets_one_session_in_and_a_wrong_one_none() {
    let world = World::guarded(settings(), gate(tickets(Vec::new(), vec![signer(1).public()])));
    let _provider = world.provider("game-1", true).await;
    let text = ticket(&signer(1), "ann", 1);
    let mut client = world.connect().await;
    assert_eq!(client.auth("ann", text.as_bytes()).await, 0);
    client.send(&request(5, b"hi")).await;
    assert_eq!(client.frame().await.unwrap().head, Head::response(5, 0));
    // Q38: logging in again is refused, and the session goes on as it was.
    let other = ticket(&signer(1), "bob", 2);
    assert_eq!(client.auth("bob", other.as_bytes()).await, code::ALREADY_AUTHED.result());
    client.send(&request(6, b"hi")).await;
    assert_eq!(client.frame().await.unwrap().head, Head::response(6, 0));

    assert_eq!(once(&world, "ann", text.as_bytes()).await, "TICKET_REPLAYED");
    assert_eq!(once(&world, "", text.as_bytes()).await, "TICKET_REPLAYED");
    assert_eq!(once(&world, "carl", other.as_bytes()).await, "TICKET_MISMATCH");
    // Neither the session that was logged in already nor the wrong account has used it up.
    assert_eq!(once(&world, "", other.as_bytes()).await, "in");
    for wrong in [&b""[..], b"x", &text.as_bytes()[1..], ticket(&signer(2), "ann", 3).as_bytes()] {
        assert_eq!(once(&world, "ann", wrong).await, "TICKET_INVALID");
    }
    let mut refused = world.connect().await;
    refused.auth("ann", b"x").await;
    assert_eq!(refused.closed_with().await, Some(code::TICKET_INVALID.number.into()));
}

/// Whoever guesses is answered without a look at the guess, and who is inside does not notice.
///
/// Holds: BI-026.
#[tokio::test]
async fn guesses_from_one_address_are_soon_not_looked_at() {
    let gate = Arc::new(tickets(Vec::new(), vec![signer(1).public()]));
    let Way::Ticket(tickets) = &*gate else { panic!() };
    let slow = Gate::new(Way::Ticket(tickets.clone()), Attempts::new(1, 5), 4);
    let world = World::guarded(settings(), slow);
    let _provider = world.provider("game-1", true).await;
    let mut inside = world.connect().await;
    assert_eq!(inside.auth("ann", ticket(&signer(1), "ann", 1).as_bytes()).await, 0);
    let mut refusals = std::collections::BTreeMap::new();
    for _ in 0..200 {
        *refusals.entry(once(&world, "eve", b"guess").await).or_insert(0) += 1;
    }
    // Five at once, and one for each second that the test took.
    let looked_at = refusals["TICKET_INVALID"];
    assert!((5..=30).contains(&looked_at), "{refusals:?}");
    assert_eq!(looked_at + refusals["TOO_MANY_ATTEMPTS"], 200, "{refusals:?}");
    inside.send(&request(7, b"hi")).await;
    assert_eq!(inside.frame().await.unwrap().head, Head::response(7, 0));
}

/// Keys change under players: those inside stay, both keys count while both are there, and a file that is no key changes
/// nothing.
///
/// Holds: X-15, BI-025.
#[tokio::test]
async fn keys_rotate_without_ending_a_session() {
    let dir = tempfile::tempdir().unwrap();
    let files = [dir.path().join("a.pub"), dir.path().join("b.pub")];
    let write = |at: usize, key: &Key| std::fs::write(&files[at], key.to_string()).unwrap();
    write(0, &signer(1).public());
    write(1, &signer(2).public());
    let tickets =
        Tickets::new("test".into(), files.to_vec(), Vec::new(), Replay::Local(Arc::new(Used::new(100))));
    let tickets = Arc::new(tickets.unwrap());
    let world = World::guarded(settings(), gate(Way::Ticket(tickets.clone())));
    let _provider = world.provider("game-1", true).await;
    let mut inside = world.connect().await;
    assert_eq!(inside.auth("ann", ticket(&signer(1), "ann", 1).as_bytes()).await, 0);
    assert_eq!(once(&world, "bob", ticket(&signer(2), "bob", 2).as_bytes()).await, "in");

    let mut retired = signer(1).public();
    retired.retire_at = Some(now() - 1);
    write(0, &retired);
    write(1, &signer(3).public());
    tickets.reload();
    assert_eq!(once(&world, "ann", ticket(&signer(1), "ann", 3).as_bytes()).await, "TICKET_INVALID");
    assert_eq!(once(&world, "bob", ticket(&signer(2), "bob", 4).as_bytes()).await, "TICKET_INVALID");
    assert_eq!(once(&world, "cid", ticket(&signer(3), "cid", 5).as_bytes()).await, "in");

    std::fs::write(&files[1], "half a fi").unwrap();
    tickets.reload();
    assert_eq!(once(&world, "cid", ticket(&signer(3), "cid", 6).as_bytes()).await, "in");
    inside.send(&request(7, b"hi")).await;
    assert_eq!(inside.frame().await.unwrap().head, Head::response(7, 0));
}

fn module(timeout: Duration, auths_max: usize) -> Gate {
    Gate::new(Way::Module { timeout }, Attempts::new(100, 100), auths_max)
}

const LONG: Duration = Duration::from_secs(20);

/// The game says who a player is; only who has announced that he does is asked.
#[tokio::test]
async fn a_provider_judges_logins() {
    let world = World::guarded(settings(), module(LONG, 4));
    let _game = world.provider("game-1", true).await;
    assert_eq!(once(&world, "ann", b"word").await, "NO_PROVIDER");
    let mut judge = world.authenticator("judge-1").await;
    let mut client = world.connect().await;
    let (result, ()) = tokio::join!(client.auth("ann", b"word"), async {
        let call = judge.next(AUTHENTICATE).await;
        let ask = <message::Authenticate as prost::Message>::decode(call.body).unwrap();
        assert_eq!((ask.account.as_str(), &ask.token[..]), ("ann", &b"word"[..]));
        assert!(!format!("{ask:?}").contains("word"), "a token is never shown");
        judge.link.reply(call.meta.call, &message::Authenticated { account: "Ann the 1st".into() }).unwrap();
    });
    assert_eq!(result, 0);
    client.send(&request(5, b"hi")).await;
    assert_eq!(client.frame().await.unwrap().head, Head::response(5, 0));
    for (said, heard) in
        [(&code::AUTH_REFUSED, "AUTH_REFUSED"), (&code::EXCEPTION, "AUTH_REFUSED"), (&code::BUSY, "BUSY")]
    {
        let (result, ()) = tokio::join!(once(&world, "ann", b"word"), async {
            let call = judge.next(AUTHENTICATE).await;
            judge.link.refuse(call.meta.call, said, "the game's own reason").unwrap();
        });
        assert_eq!(result, heard);
    }
}

/// The judge is lost in the middle: the player hears it once, nobody else is asked, and the way is free again.
#[tokio::test]
async fn a_judge_that_is_lost_ends_each_login_exactly_once() {
    let world = World::guarded(settings(), module(LONG, 1));
    let mut judge = world.authenticator("judge-1").await;
    let mut client = world.connect().await;
    let (result, ()) = tokio::join!(client.auth("ann", b"word"), async {
        judge.next(AUTHENTICATE).await;
        // One is under way and no more may be.
        assert_eq!(once(&world, "bob", b"word").await, "BUSY");
        judge.link.outbox.close();
    });
    assert_eq!(result, code::PROVIDER_BROKEN.result());
    let mut ends = 0;
    while let Some(got) = client.frame().await {
        assert_ne!(got.type_id, AUTH, "a second answer");
        ends += 1;
    }
    assert_eq!(ends, 1, "one report, then the end");
    drop(judge);
    let mut judge = world.authenticator_as("judge-1", Generation(77)).await;
    let (result, ()) = tokio::join!(once(&world, "ann", b"word"), async {
        let call = judge.next(AUTHENTICATE).await;
        judge.link.reply(call.meta.call, &message::Authenticated { account: "ann".into() }).unwrap();
    });
    assert_eq!(result, "in");
}

/// A judge that says nothing costs its time and no more.
#[tokio::test]
async fn a_judge_that_is_silent_is_given_up() {
    let world = World::guarded(settings(), module(Duration::from_millis(50), 4));
    let _judge = world.authenticator("judge-1").await;
    let mut client = world.connect().await;
    assert_eq!(within(client.auth("ann", b"word")).await, code::TIMEOUT.result());
    assert_eq!(client.closed_with().await, Some(code::TIMEOUT.number.into()));
}
