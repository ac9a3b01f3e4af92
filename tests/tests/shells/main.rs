//! The shells that production runs, on a simulated network: a directory, linkds, providers and players, each on a host
//! of its own in turmoil, with its own clock. Nothing is a double: sockets and time are turmoil's, the rest is real, the
//! directory's tonic included.
//!
//! A seed is a plan of faults and the network's chance. Each is run twice and must write the same trace, byte for byte:
//! packets, logs and what players see. What must hold is in `ledger`.
//!
//! `LINKSTEAD_TURMOIL_SEED=12 cargo turmoil` runs one seed and prints its trace.

mod game;
mod ledger;
mod net;
mod nodes;
mod plan;
mod player;
mod run;
mod trace;
mod twice;

use plan::Theme;
use twice::{VARIABLE, examine};

/// Runs the first seeds of a theme.
fn hold(theme: Theme, seeds: u64) {
    for nth in 0..seeds {
        if let Err(why) = examine(theme.seed(nth)) {
            panic!("{why}");
        }
    }
}

/// Holds: Z-11.
#[test]
fn a_calm_cluster_answers_everything() {
    hold(Theme::Calm, 1);
}

/// What is lost on the link between linkd and provider is told once its silence is noticed, and both find each other
/// again.
#[test]
fn a_cut_between_linkd_and_provider_heals() {
    hold(Theme::CutLink, 2);
}

/// Holds: Z-08, H-09.
#[test]
fn a_lost_provider_comes_back() {
    hold(Theme::LostProvider, 2);
}

/// Holds: H-09.
#[test]
fn a_lost_linkd_comes_back() {
    hold(Theme::LostLinkd, 2);
}

/// Requests go on as if nothing was, for longer than every lease.
/// Holds: Z-23, H-15.
#[test]
fn nobody_notices_that_the_directory_is_lost() {
    hold(Theme::LostDirectory, 2);
}

#[test]
fn a_player_whose_connection_is_cut_comes_back() {
    hold(Theme::CutPlayer, 2);
}

#[test]
fn delays_lose_nothing() {
    hold(Theme::Delays, 2);
}

#[test]
fn storms_pass() {
    hold(Theme::Storm, 3);
}

/// Another seed is another run, also without a fault.
#[test]
fn seeds_differ() {
    let (one, other) = (examine(Theme::Calm.seed(1)), examine(Theme::Calm.seed(2)));
    assert!(one.is_ok() && other.is_ok());
    assert_ne!(one, other);
}

/// Runs one seed once and prints its trace: the named one, or 0.
#[test]
fn one_seed() {
    let seed = std::env::var(VARIABLE).unwrap_or_else(|_| "0".to_owned());
    let outcome = run::run(seed.parse().expect("a seed is a number"));
    println!("{outcome}");
    assert!(outcome.wrong.is_empty(), "a promise is broken");
}
