//! `up --game bazaar`: coins and items are neither made nor lost, whoever trades with whom.

use std::time::Instant;

use serde_json::Value;

use crate::process::{PATIENCE, Process, addr_after, output};

const UP: [&str; 5] = ["up", "--game", "bazaar", "--base-port", "0"];

/// Bots trade to the end; what they and the audit say.
fn trade(more: &[&str]) -> Value {
    let (code, out, err) = output(&[&UP[..], &["--bots", "50", "--seconds", "3", "--json"], more].concat());
    assert_eq!(code, 0, "{out}{err}");
    let summary: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&summary["errors"], &summary["failed_assertions"]), (&0.into(), &0.into()), "{out}");
    let audit = &summary["audit"];
    assert_eq!((&audit["coins"], &audit["wrong"]), (&audit["coins_granted"], &Value::Array(vec![])), "{out}");
    for kind in bazaar::rules::KINDS {
        assert_eq!(audit["items"][kind], audit["items_granted"], "{out}");
    }
    summary
}

fn count(summary: &Value, step: &str) -> u64 {
    summary["steps"][step]["count"].as_u64().unwrap_or_default()
}

#[test]
fn traders_at_two_providers_lose_nothing_and_make_nothing() {
    let summary = trade(&[]);
    assert_eq!((&summary["bots"], &summary["audit"]["accounts"]), (&50.into(), &50.into()));
    for step in ["Bank.transfer", "Market.offer", "Market.take", "Market.withdraw"] {
        assert!(count(&summary, step) > 0, "nobody has done {step}: {summary}");
    }
    assert!(summary["pushes"].as_u64().unwrap() > 0, "nobody was told of a sale: {summary}");
}

/// Started again it has the same accounts, and nothing is granted to them again.
///
/// Holds: D5.
#[test]
fn with_a_folder_the_accounts_are_there_again() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("records");
    let data = ["--data-dir", data.to_str().unwrap()];
    let first = trade(&data);
    let again = trade(&[&data[..], &["--seed", "2"]].concat());
    for figure in ["accounts", "coins", "items"] {
        assert_eq!(first["audit"][figure], again["audit"][figure], "{figure}");
    }
    let mut up = Process::start(&[&UP[..], &data].concat());
    let there = up.wait_for("records ");
    assert!(there.contains("50 accounts, 5000 coins") && there.ends_with("all there"), "{there}");
    up.wait_for("the cluster is up");
    let (code, _, err) = output(&[&UP[..], &data].concat());
    assert!(code == 2 && err.contains(data[1]) && err.contains("in use by another process"), "{code}: {err}");
    up.signal("INT");
    assert!(up.end().success(), "{:#?}", up.seen);
    assert!(up.seen.iter().any(|line| line.starts_with("audit ") && line.ends_with("all there")));
}

/// What a provider's records come to can be scraped.
#[tokio::test]
async fn metrics_tell_of_the_records() {
    let mut up = Process::start(&UP);
    let addr = addr_after(&up.wait_for("linkd-1"), "clients ");
    let ops = addr_after(&up.wait_for("game-1"), "ops ");
    up.wait_for("the cluster is up");
    let client = client::Client::connect(client::Options::new(addr.as_str(), "ann")).await.unwrap();
    client.request(bazaar::Bank::OPEN, Default::default()).await.unwrap();
    let began = Instant::now();
    loop {
        let text = super::up::get(&ops, "/metrics").await.1;
        let value = |name: &str| -> f64 {
            let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
            line.map_or(-1.0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
        };
        let told = value("linkstead_records_asked_total") >= 2.0
            && value("linkstead_records_in_memory") >= 2.0
            && value("linkstead_records_bytes") > 0.0;
        if told {
            assert_eq!(value("linkstead_records_commits_total"), 1.0, "{text}");
            assert!(value("linkstead_records_runs_again_total") >= 1.0, "{text}");
            assert_eq!(value("linkstead_records_without_lease"), 0.0, "{text}");
            assert_eq!(value("linkstead_records_lost_commits_total"), 0.0, "{text}");
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{text}");
    }
}

#[test]
fn the_tavern_keeps_nothing() {
    let (code, _, err) = output(&["up", "--data-dir", "nowhere"]);
    assert!(code == 2 && err.contains("the tavern keeps nothing"), "{code}: {err}");
}
