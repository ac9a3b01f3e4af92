//! The committed inputs, and many near them, hold in every build. No luck is in it: the same inputs each time.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fuzz::{INPUT_BYTES_MAX, TARGETS, Target};

/// Inputs near each committed one that are tried: it cut short, and it with one bit flipped.
const NEIGHBOURS: usize = 300;
/// The same for targets that read a whole configuration each time.
const NEIGHBOURS_OF_SLOW: usize = 20;
/// Files of one target: what the fuzzer finds new is kept only when it says something new to people too.
const FILES_MAX: usize = 24;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The committed inputs of a target, with their names.
fn inputs(target: &Target) -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(corpus().join(target.name)).unwrap_or_else(|error| {
        panic!("fuzz/corpus/{}: {error}; every target begins with an input", target.name)
    });
    let read = |file: std::io::Result<std::fs::DirEntry>| {
        let path = file.unwrap().path();
        (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap())
    };
    let mut inputs: Vec<_> = files.map(read).collect();
    inputs.sort();
    inputs
}

/// Evenly spread over the input, so that short ones are tried whole.
fn neighbours(input: &[u8], most: usize) -> impl Iterator<Item = Vec<u8>> {
    let (bits, cuts) = (input.len() * 8, input.len());
    let flips = (0..bits).step_by((bits / most).max(1)).map(|bit| {
        let mut near = input.to_vec();
        near[bit / 8] ^= 1 << (bit % 8);
        near
    });
    flips.chain((0..cuts).step_by((cuts / most).max(1)).map(|cut| input[..cut].to_vec()))
}

/// Says which input it was, when that breaks something.
struct Shown<'a> {
    target: &'a str,
    near: &'a str,
    input: &'a [u8],
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}, {} or near it: {}", self.target, self.near, self.input.escape_ascii());
        }
    }
}

/// Holds: BI-045, BI-046, Q71.
#[test]
fn the_corpus_and_its_neighbours_hold() {
    for target in TARGETS {
        let most = if target.name.starts_with("config") { NEIGHBOURS_OF_SLOW } else { NEIGHBOURS };
        target.check(&[]);
        for (name, input) in inputs(target) {
            let inputs = std::iter::once(input.clone()).chain(neighbours(&input, most));
            for input in inputs {
                let shown = Shown { target: target.name, near: &name, input: &input };
                target.check(&input);
                drop(shown);
            }
        }
    }
}

#[test]
fn every_target_has_a_small_corpus_and_every_corpus_a_target() {
    let folders = std::fs::read_dir(corpus()).unwrap();
    let folders: BTreeSet<_> =
        folders.map(|folder| folder.unwrap().file_name().into_string().unwrap()).collect();
    let names: BTreeSet<_> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(folders, names);
    assert_eq!(names.len(), TARGETS.len());
    for target in TARGETS {
        let inputs = inputs(target);
        assert!((1..=FILES_MAX).contains(&inputs.len()), "{}: {} files", target.name, inputs.len());
        for (name, input) in inputs {
            assert!(input.len() <= INPUT_BYTES_MAX, "{}/{name}: {} bytes", target.name, input.len());
        }
    }
}
