//! `cargo run -p tests --bin docs -- PAGE…`: runs the commands of the pages.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use tests::docs::{self, Limits};
use tests::repo;

#[derive(Parser)]
#[command(name = "docs", about = "Runs the commands that pages show")]
struct Options {
    /// Pages, as paths from the root of the repository.
    #[arg(required = true)]
    pages: Vec<String>,
    /// Shows the blocks and runs nothing.
    #[arg(long)]
    list: bool,
    /// Seconds that one block may take, building included.
    #[arg(long, default_value_t = 900)]
    seconds: u64,
    /// Seconds from Ctrl-C to the end.
    #[arg(long, default_value_t = 60)]
    stop_seconds: u64,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let root = repo::root();
    // Of its own: cargo takes the copy's packages for the repository's, since both have the same place in their
    // workspace, and would mix what it built of either.
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from).join("docs");
    let limits = Limits {
        block: Duration::from_secs(options.seconds),
        stop: Duration::from_secs(options.stop_seconds),
    };
    let mut outcomes = Vec::new();
    for page in &options.pages {
        let text = std::fs::read_to_string(root.join(page)).with_context(|| format!("cannot read {page}"))?;
        let blocks = docs::blocks(page, &text)?;
        if blocks.is_empty() {
            bail!("{page} has no block tagged `sh ci`; nothing of it would be tested");
        }
        if options.list {
            blocks.iter().for_each(|block| println!("{}:{} {:?}", block.page, block.line, block.kind));
            continue;
        }
        let folder = docs::copy_repository(&target)?;
        let all = blocks.len();
        let ran = docs::run_page(blocks, &folder, &target, limits)?;
        if ran.len() < all {
            println!("--- {page}: {} of {all} blocks not run after a failure", all - ran.len());
        }
        outcomes.extend(ran);
    }
    let failed = outcomes.iter().filter(|outcome| outcome.failure.is_some()).count();
    for outcome in &outcomes {
        let place = format!("{}:{}", outcome.block.page, outcome.block.line);
        let verdict = outcome.failure.as_deref().unwrap_or("ok");
        println!("{place:<28} {:>6.1} s  {verdict}", outcome.took.as_secs_f64());
    }
    println!("{} passed, {failed} failed", outcomes.len() - failed);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
