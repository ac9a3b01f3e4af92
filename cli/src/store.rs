//! `linkstead store`: looks at the folder of a stopped node's store, saves it to a file, makes a new one of a file.

use std::path::{Path, PathBuf};

use ::store::dump::{self, Counted};
use ::store::{Kind, Opened, Options, StoreError};
use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::Failed;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Read every record of a store, or of an export, and check it.
    Verify(Verify),
    /// Write everything that a store holds to one file.
    Export(Export),
    /// Make a new store of an export.
    Import(Import),
}

#[derive(Debug, Args)]
pub struct Verify {
    /// The folder (data_dir) of a node that is stopped, or an exported file.
    pub path: PathBuf,
    /// One JSON object.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Export {
    /// The folder (data_dir) of a node that is stopped.
    pub dir: PathBuf,
    /// The file to write; one that is there is replaced.
    pub file: PathBuf,
    /// One JSON object.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Import {
    /// An exported file.
    pub file: PathBuf,
    /// The folder to make; it must not hold anything.
    pub dir: PathBuf,
    /// Which store to make.
    #[arg(long, value_name = "redb|sled")]
    pub kind: Kind,
    /// One JSON object.
    #[arg(long)]
    pub json: bool,
}

pub fn run(command: Command) -> Result<(), Failed> {
    match command {
        Command::Verify(Verify { path, json }) if path.is_dir() => {
            let opened = open(&path)?;
            let counted = dump::verify(&*opened.store).map_err(failed)?;
            say(json, "good", opened.id, counted)
        }
        Command::Verify(Verify { path, json }) => {
            let (id, counted) = dump::inspect(&path).map_err(failed)?;
            say(json, "good", id, counted)
        }
        Command::Export(Export { dir, file, json }) => {
            let opened = open(&dir)?;
            say(json, "exported", opened.id, dump::export(&opened, &file).map_err(failed)?)
        }
        Command::Import(Import { file, dir, kind, json }) => {
            let counted = dump::import(&file, &dir, kind, &Options::default()).map_err(failed)?;
            say(json, "imported", open(&dir)?.id, counted)
        }
    }
}

/// Opens what is there; makes nothing.
fn open(dir: &Path) -> Result<Opened, Failed> {
    match store::home::kind(dir).map_err(failed)? {
        Some(kind) => store::open(dir, kind, &Options::default()).map_err(failed),
        None => Err(Failed::Usage(format!("{} holds no store", dir.display()))),
    }
}

fn failed(error: StoreError) -> Failed {
    match error {
        StoreError::InUse { .. } | StoreError::OtherKind { .. } => Failed::Usage(error.to_string()),
        error => Failed::Running(error.into()),
    }
}

fn say(json: bool, done: &str, id: store::StoreId, counted: Counted) -> Result<(), Failed> {
    let Counted { records, bytes } = counted;
    if json {
        let line = json!({ "store": id.to_string(), "records": records, "bytes": bytes });
        println!("{}", serde_json::to_string(&line).context("printing")?);
    } else {
        println!("{done}: store {id}, {records} records, {bytes} bytes");
    }
    Ok(())
}
