//! Tickets in a whole cluster, the game's own judge, and the commands that make tickets.

use std::path::Path;

use base::{Account, Retry};
use client::{Client, Error, Options};
use linkd::config::Auth;
use linkstead::{AuthRequest, Authenticator, Env, Linkds};
use serde_json::Value;
use wire::code;
use wire::ticket::{Signer, Ticket};

use crate::cluster::{ANY, Directory, guarded_linkd, join, within};
use crate::process::output;

pub fn signer() -> Signer {
    Signer::new(1, &[8; 32])
}

fn ticket(id: u64, account: &str) -> String {
    ticket_for("test", id, account)
}

/// Of a cluster; no two have the same `id`.
pub fn ticket_for(cluster: &str, id: u64, account: &str) -> String {
    let now = node::clock::unix_micros() / 1_000_000;
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&id.to_le_bytes());
    let ticket = Ticket {
        kid: 1,
        issued: now,
        not_before: now,
        expires: now + 60,
        id: bytes,
        app_main: 0,
        audience: cluster.into(),
        account: Account::new(account).unwrap(),
    };
    ticket.sign(&signer()).unwrap()
}

/// The name of what came of it; "in" for a login.
async fn log_in(linkd: &linkd::Linkd, account: &str, token: &str) -> (&'static str, Option<Client>) {
    let options = Options::new(&linkd.client_addr.to_string(), account).token(token);
    match within(Client::connect(options)).await {
        Ok(client) => ("in", Some(client)),
        Err(Error::Refused { name, .. }) => (name, None),
        Err(error) => panic!("{error}"),
    }
}

/// As a client that is told to wait does.
async fn patiently(linkd: &linkd::Linkd, account: &str, token: &str) -> &'static str {
    loop {
        let (name, _client) = log_in(linkd, account, token).await;
        if name != "BUSY" {
            return name;
        }
        tokio::task::yield_now().await;
    }
}

/// One ticket shown at two gateways at the same moment, again and again: always one winner.
///
/// Holds: BI-022, Q37.
#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_that_race_with_one_ticket_let_one_session_in() {
    let directory = Directory::start(ANY);
    let keys = || vec![signer().public()];
    let one = guarded_linkd(directory.addr, "linkd-1", Auth::Ticket, keys()).await;
    let two = guarded_linkd(directory.addr, "linkd-2", Auth::Ticket, keys()).await;
    // The directory has just started and decides nothing new before everybody could be back.
    assert_eq!(patiently(&one, "first", &ticket(1_000, "first")).await, "in");
    assert_eq!(patiently(&two, "second", &ticket(1_001, "second")).await, "in");
    for round in 0..30 {
        let text = ticket(round, "ann");
        let mut racing = tokio::task::JoinSet::new();
        for linkd in [&one, &two, &one, &two] {
            let (linkd, text) = (linkd.clone(), text.clone());
            racing.spawn(async move { log_in(&linkd, "ann", &text).await });
        }
        let ends = racing.join_all().await;
        let won = ends.iter().filter(|(name, _)| *name == "in").count();
        let lost = ends.iter().filter(|(name, _)| *name == "TICKET_REPLAYED").count();
        assert_eq!((won, lost), (1, 3), "round {round}");
    }
}

/// Without a directory nobody knows what was used: players are asked to wait. A directory that comes back without a
/// memory is told what was used, and it stays used.
///
/// Holds: BI-022.
#[tokio::test(flavor = "multi_thread")]
async fn a_used_ticket_stays_used_when_the_directory_forgets() {
    let directory = Directory::start(ANY);
    let addr = directory.addr;
    let one = guarded_linkd(addr, "linkd-1", Auth::Ticket, vec![signer().public()]).await;
    let two = guarded_linkd(addr, "linkd-2", Auth::Ticket, vec![signer().public()]).await;
    let (used, new) = (ticket(1, "ann"), ticket(2, "bob"));
    assert_eq!(patiently(&one, "ann", &used).await, "in");
    directory.kill().await;
    for linkd in [&one, &two] {
        let options = Options::new(&linkd.client_addr.to_string(), "bob").token(new.as_str());
        let error = within(Client::connect(options)).await.unwrap_err();
        assert_eq!(error.code(), Some(&code::BUSY));
        assert!(matches!(error.retry(), Retry::After(_)), "{error}");
    }
    let _directory = Directory::start(addr);
    assert_eq!(patiently(&two, "ann", &used).await, "TICKET_REPLAYED");
    assert_eq!(patiently(&one, "ann", &used).await, "TICKET_REPLAYED");
    assert_eq!(patiently(&two, "bob", &new).await, "in");
}

struct Word;

impl Authenticator for Word {
    async fn authenticate(&self, request: AuthRequest) -> linkstead::Result<Account> {
        match request.token.expose() {
            b"mellon" => Ok(request.account.unwrap_or_else(|| Account::new("friend").unwrap())),
            _ => Err(linkstead::Error::code(1, "speak friend")),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_games_own_judge_lets_players_in() {
    let directory = Directory::start(ANY);
    let linkd = guarded_linkd(directory.addr, "linkd-1", Auth::Module, Vec::new()).await;
    let (name, _) = log_in(&linkd, "ann", "mellon").await;
    assert_eq!(name, "NO_PROVIDER");
    let (node, member, cancel) = join(directory.addr, "game-1", "provider");
    let env = Env::new("test", node, Linkds::Directory(member));
    let config = linkstead::Config { server_id: 1, ..linkstead::Config::default() };
    let running = within(tavern::provider().authenticator(Word).start(config, env, cancel)).await.unwrap();
    within(running.ready()).await;
    assert_eq!(log_in(&linkd, "ann", "mellon").await.0, "in");
    assert_eq!(log_in(&linkd, "ann", "open sesame").await.0, "AUTH_REFUSED");
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

/// A key pair, a ticket, and what it says; and nothing of it shows the key.
///
/// Holds: BI-115.
#[test]
fn the_commands_make_keys_and_tickets() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let dir_text = at.to_str().unwrap();
    let (code, out, err) = output(&["ticket", "keygen", "--kid", "7", "--dir", dir_text]);
    assert_eq!(code, 0, "{err}");
    let (private, public) = (path(at, "ticket-7.key"), path(at, "ticket-7.pub"));
    let secret = std::fs::read_to_string(&private).unwrap();
    let secret = secret.split_whitespace().last().unwrap();
    assert!(!out.contains(secret));
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&private).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    // Never over a key that is there.
    let (code, _, err) = output(&["ticket", "keygen", "--kid", "7", "--dir", dir_text]);
    assert!(code == 2 && err.contains("ticket-7.key"), "{code} {err}");

    let issue = ["ticket", "issue", "--key", &private, "--account", "ann", "--audience", "test", "--json"];
    let (code, out, err) = output(&issue);
    assert_eq!(code, 0, "{err}");
    let issued: Value = serde_json::from_str(&out).unwrap();
    let text = issued["ticket"].as_str().unwrap();
    let keys =
        wire::ticket::Keys::new([
            wire::ticket::Key::parse(&std::fs::read_to_string(&public).unwrap()).unwrap()
        ]);
    let expect = wire::ticket::Expect {
        now_unix: node::clock::unix_micros() / 1_000_000,
        audience: "test",
        app: base::AppVersion(0),
        account: None,
    };
    assert_eq!(Ticket::verify(text.as_bytes(), &keys.unwrap(), expect).unwrap().account.as_str(), "ann");
    let (code, out, _) = output(&["ticket", "show", text, "--json"]);
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert!(
        code == 0 && shown["kid"] == 7 && shown["account"] == "ann" && shown["id"] == issued["id"],
        "{out}"
    );
    assert_eq!(output(&["ticket", "show", "nonsense"]).0, 2);

    std::fs::set_permissions(&private, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let (code, out, err) = output(&issue);
    assert!(code == 2 && err.contains("0600") && !err.contains(secret) && out.is_empty(), "{code} {err}");
}

/// Holds: Q37.
#[test]
fn bots_play_with_tickets() {
    let args = ["up", "--base-port", "0", "--bots", "20", "--seconds", "2", "--auth", "ticket", "--json"];
    let (code, out, err) = output(&args);
    assert_eq!(code, 0, "{out}{err}");
    let summary: Value = serde_json::from_str(&out).unwrap();
    assert!(summary["errors"] == 0 && summary["logins"] == 20, "{out}");
}
