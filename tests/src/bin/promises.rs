//! `cargo promises`: the promises of the project with the tests that hold them.
//! Fails when a test names a promise that does not exist.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use tests::promises::{self, Book};
use tests::repo;

#[derive(Parser)]
#[command(name = "cargo promises", about = "Lists promises with the tests that name them")]
struct Options {
    /// One JSON object instead of a table.
    #[arg(long)]
    json: bool,
    /// Only the promises owed up to this step that no test names.
    #[arg(long, value_name = "STEP")]
    missing: Option<u32>,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let book = Book::load()?;
    let found = promises::scan(&repo::root(), &book)?;
    match options.missing {
        Some(step) => {
            let missing = promises::missing(&book, &found, step);
            if options.json {
                let ids: Vec<&str> = missing.iter().map(|promise| promise.id.as_str()).collect();
                println!("{}", serde_json::to_string(&ids)?);
            } else {
                for promise in &missing {
                    println!("{:<7} {:<5} {}", promise.id, promise.kinds, promise.text);
                }
                println!("{} promises up to step {step} have no test", missing.len());
            }
        }
        None if options.json => println!("{}", promises::as_json(&book, &found)),
        None => print!("{}", promises::as_table(&book, &found)),
    }
    for unknown in &found.unknown {
        eprintln!("{}:{}: no promise is called `{}`", unknown.path, unknown.line, unknown.word);
    }
    Ok(if found.unknown.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
