//! `kill -9` in the middle of writing: what was acknowledged is there, and no batch is there by half.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use store::{Batch, Durability, Kind, Options};

/// Tells a child of this test where to write; without it the child's test does nothing.
const DIR: &str = "LINKSTEAD_STORE_TEST_DIR";
const KIND: &str = "LINKSTEAD_STORE_TEST_KIND";
const ROUNDS: u64 = 8;
/// Records of one batch, all with the batch's number.
const WIDTH: u8 = 16;

/// Not a test by itself: what the next one kills.
#[test]
fn child() {
    let (Ok(dir), Ok(kind)) = (std::env::var(DIR), std::env::var(KIND)) else { return };
    let opened = store::open(dir.as_ref(), kind.parse().unwrap(), &Options::default()).unwrap();
    let mut number = last(&*opened.store) + 1;
    let mut out = std::io::stdout();
    loop {
        let mut batch = Batch::default();
        for key in 0..WIDTH {
            batch.put([key], number.to_be_bytes());
        }
        batch.put([&[255][..], &number.to_be_bytes()].concat(), vec![0; 100]);
        opened.store.write(&batch, Durability::Durable).unwrap();
        // Its parent may be gone.
        if writeln!(out, "acknowledged {number}").and_then(|()| out.flush()).is_err() {
            return;
        }
        number += 1;
    }
}

/// The batch whose records are there; panics when they are of several.
fn last(store: &dyn store::Store) -> u64 {
    let values: Vec<u64> = (0..WIDTH)
        .map(|key| store.get(&[key]).unwrap().map_or(0, |v| u64::from_be_bytes(v[..].try_into().unwrap())))
        .collect();
    assert!(values.iter().all(|value| *value == values[0]), "a batch is there by half: {values:?}");
    let mut logged = 0;
    store::range_prefix(store, &[255], |key, _| {
        logged += 1;
        assert_eq!(key, u64::to_be_bytes(logged), "a batch is missing");
    })
    .unwrap();
    assert_eq!(logged, values[0]);
    values[0]
}

fn killed(kind: Kind) {
    let dir = tempfile::tempdir().unwrap();
    let mut total = 0;
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture"])
            .env(DIR, dir.path())
            .env(KIND, kind.as_str())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let number =
            |line: String| line.rsplit_once("acknowledged ").and_then(|(_, n)| n.parse::<u64>().ok());
        // A different moment each round.
        let mut acknowledged = lines.by_ref().filter_map(number).nth(3 + 7 * round as usize).unwrap();
        child.kill().unwrap();
        acknowledged = lines.filter_map(number).last().unwrap_or(acknowledged);
        child.wait().unwrap();
        let opened = store::open(dir.path(), kind, &Options::default()).unwrap();
        let found = last(&*opened.store);
        assert!(found >= acknowledged, "round {round}: {acknowledged} was acknowledged, {found} is there");
        assert!(found > total, "round {round} wrote nothing");
        total = found;
    }
}

#[test]
fn what_sled_acknowledged_survives_kill_9() {
    killed(Kind::Sled);
}

#[test]
fn what_redb_acknowledged_survives_kill_9() {
    killed(Kind::Redb);
}
