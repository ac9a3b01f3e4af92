//! The table of bad inputs: each is sent to a gateway, a directory or an arbiter that runs as a process, beside a provider and a player who play on.
//! `cargo bad-input` prints it.

mod arbiter;
pub mod client;
mod directory;
mod elsewhere;
mod logins;
mod players;
mod providers;
mod settings;
mod table;
mod world;

use table::Table;
use world::World;

/// Every input gets its answer, leaves its connection as it should, takes no memory worth the name, and the neighbour is
/// answered meanwhile. What is in no row is listed with the place that holds it.
///
/// Holds: BI-001, BI-002, BI-003, BI-004, BI-005, BI-006, BI-007, BI-008, BI-009, BI-010, BI-013, BI-014, BI-015, BI-016,
/// BI-017, BI-018, BI-019, BI-020, BI-021, BI-023, BI-024, BI-025, BI-026, BI-027, BI-028, BI-029, BI-030, BI-031, BI-033,
/// BI-034, BI-041, BI-042, BI-045, BI-046, BI-047, BI-048, BI-050, BI-053, BI-054, BI-055, BI-056, BI-057, BI-058, BI-059,
/// BI-060, BI-061, BI-062, BI-064, BI-065, BI-081, BI-083, BI-084, BI-085, BI-086, BI-087, BI-088, BI-089, BI-090, BI-091, BI-093, BI-094, BI-095, BI-096, BI-108, BI-109, BI-110, BI-111, BI-112, BI-113, BI-114, BI-115,
///
#[tokio::test(flavor = "multi_thread")]
async fn every_bad_input_is_answered_and_harms_nobody() {
    let world = World::start().await;
    let mut table = Table::new(&world).await;
    players::run(&world, &mut table).await;
    logins::run(&world, &mut table).await;
    providers::run(&world, &mut table).await;
    settings::run(&mut table, world.directory());
    directory::run(&mut table).await;
    arbiter::run(&mut table, world.directory()).await;
    table.end();
}
