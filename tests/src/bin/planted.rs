//! `cargo planted`: plants each fault and demands that a test notices.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use tests::planted::{self, FAULTS, Programs};

#[derive(Parser)]
#[command(name = "cargo planted", about = "Plants faults and demands that tests notice")]
struct Options {
    /// Shows the faults and runs nothing.
    #[arg(long)]
    list: bool,
    /// Only these faults.
    names: Vec<String>,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    if options.list {
        for fault in FAULTS {
            println!("{:<24} {:<16} {:<40} {}", fault.name, fault.package, fault.filter, fault.breaks);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let faults = planted::choose(&options.names)?;
    let programs = Programs::build(&faults)?;
    let (mut passed, mut failed) = (0, 0);
    for fault in &faults {
        let verdict = programs.judge(fault)?;
        if verdict.passed() {
            passed += 1;
        } else {
            failed += 1;
        }
        println!("{:<24} {:<16} {:<38} {}", fault.name, fault.package, verdict.text(), fault.breaks);
    }
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
