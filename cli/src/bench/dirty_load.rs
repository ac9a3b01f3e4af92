//! The load of `pingpong-dirty-1`: two databases change one record in turn, so that whoever has it must write it first.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use base::NodeId;
use node::Clock;
use tables::arbiter::client::Client;
use tables::{Backend, Db, Settings, Table};

use super::acquire_load::client;
use super::load::Measured;
use super::records::{Purse, Storage, change};
use super::tally::{Pace, Tally};

/// One run of the load.
#[derive(Debug, Clone, clap::Args)]
pub struct Plan {
    /// The arbiter.
    #[arg(long)]
    pub addr: String,
    #[command(flatten)]
    pub pace: Pace,
}

/// Runs the plan.
pub async fn run(plan: &Plan) -> Result<Measured> {
    let (backend, folder) = Storage::Memory.open()?;
    let providers = [open(&plan.addr, "dirty-1", &backend)?, open(&plan.addr, "dirty-2", &backend)?];
    // Both are let in before the time runs.
    for provider in &providers {
        provider.change().await?;
    }
    let mut tally = Tally::new(&plan.pace)?;
    let mut now = Instant::now();
    for provider in providers.iter().cycle() {
        let began = now;
        provider.change().await?;
        now = Instant::now();
        tally.note(began, now);
        if tally.is_over(now) {
            break;
        }
    }
    for provider in &providers {
        provider.db.stop().await;
        provider.client.leave().await;
    }
    drop(folder);
    Ok(tally.measured())
}

struct Provider {
    client: Arc<Client>,
    db: Db,
    purses: Table<u64, Purse>,
}

impl Provider {
    async fn change(&self) -> Result<(), tables::Error> {
        self.db.run(|tx| change(&self.purses, tx, 1)).await
    }
}

fn open(addr: &str, node: &str, backend: &Arc<dyn Backend>) -> Result<Provider> {
    let clock = Clock::start();
    let client = Arc::new(client(addr, node, clock)?);
    let opening = Db::with(Settings::new(NodeId::new(node)?), backend.clone(), client.clone(), clock)?;
    client.start(opening.hear())?;
    let db = opening.done();
    let purses = db.table()?;
    Ok(Provider { client, db, purses })
}
