//! Processes whose wall clock stands ten years back, by Debian's `faketime`.

use std::process::Command;
use std::time::{Duration, Instant};

use base::Account;
use client::{Client, Options};
use wire::ticket::{Signer, Ticket};

use crate::cluster::{join, within};
use crate::process::{Process, addr_after};

/// What a wrong clock is noticed by.
const WARNING: &str = "the clock of this machine stands before this program was made";

/// A role ten years ago. Only the wall clock lies: the monotonic one is what a machine with a wrong date has right.
fn ten_years_ago(role: &str, sets: &[String]) -> Process {
    let mut command = Command::new("faketime");
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("NO_FAKE_STAT", "1");
    command.args(["-f", "-10y", env!("CARGO_BIN_EXE_linkstead"), role, "--profile", "dev"]);
    let always = ["node.insecure=true", "node.cluster=test", "node.ops=127.0.0.1:0"].map(str::to_owned);
    for set in always.iter().chain(sets) {
        command.args(["--set", set]);
    }
    Process::spawn_with_log(command)
}

/// Both say so in their logs. A ticket of today is refused, and a lease of three seconds outlives three times that.
///
/// Holds: BI-119, H-12.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_ten_years_back_refuses_tickets_and_ends_no_lease() {
    let mut directory = ten_years_ago("service-manager", &["service_manager.listen=127.0.0.1:0".to_owned()]);
    directory.wait_for(WARNING);
    let at = addr_after(&directory.wait_for("service-manager ready"), "ready on ");
    let dir = tempfile::tempdir().unwrap();
    let signer = Signer::new(1, &[8; 32]);
    let key = dir.path().join("key");
    std::fs::write(&key, signer.public().to_string()).unwrap();
    let sets = [
        "linkd.listen=127.0.0.1:0".to_owned(),
        "linkd.ws_listen=off".to_owned(),
        "linkd.provider_listen=127.0.0.1:0".to_owned(),
        "linkd.auth=ticket".to_owned(),
        "linkd.ticket.replay=local".to_owned(),
        format!("linkd.ticket.keys=[{key:?}]"),
        "node.id=linkd-1".to_owned(),
        format!("node.directory=[\"{at}\"]"),
    ];
    let mut linkd = ten_years_ago("linkd", &sets);
    linkd.wait_for(WARNING);
    let players = addr_after(&linkd.wait_for("linkd ready"), "clients on ");

    let (_, watcher, cancel) = join(at.parse().unwrap(), "watcher", "provider");
    let _gone = cancel.drop_guard();
    let is_listed = async || {
        let listed = watcher.nodes().await.into_iter().find(|node| node.node.as_str() == "linkd-1");
        listed.map(|node| node.epoch)
    };
    within(watcher.epoch()).await.unwrap();
    let (began, epoch) = (Instant::now(), is_listed().await);
    assert!(epoch.is_some());

    let now = node::clock::unix_seconds();
    let ticket = Ticket {
        kid: 1,
        issued: now,
        not_before: now,
        expires: now + 600,
        id: [7; 16],
        app_main: 0,
        audience: "test".to_owned(),
        account: Account::new("ann").unwrap(),
    };
    let options = Options::new(&players, "ann").token(ticket.sign(&signer).unwrap());
    let refused = within(Client::connect(options)).await.map(|_| ()).unwrap_err();
    assert!(format!("{refused:?}").contains("TICKET_NOT_YET_VALID"), "{refused:?}");

    while began.elapsed() < Duration::from_secs(9) {
        assert_eq!(is_listed().await, epoch, "the lease ended after {:?}", began.elapsed());
        // Sleep: three times the lease must pass by the real clock.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
