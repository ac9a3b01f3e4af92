//! `linkstead ticket`: makes keys, and tickets for trying things out. A game's login service makes its own; the format is
//! in docs/guides/authentication.md.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use base::{Account, Secret};
use clap::{Args, Subcommand};
use client::bots::Tokens;
use node::files;
use serde_json::json;
use wire::ticket::{Hex, KEY_FILE_BYTES_MAX, Signer, Ticket};

use crate::Failed;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a key pair: ticket-KID.key for the login service, ticket-KID.pub for every linkd.
    Keygen(Keygen),
    /// Sign a ticket and print it. It is a secret until it is used.
    Issue(Issue),
    /// Print what a ticket says. Does not check its signature.
    Show {
        /// The ticket; `-` reads it from standard input.
        text: String,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct Keygen {
    /// The key's number; each key of a cluster has its own.
    #[arg(long)]
    pub kid: u16,
    /// Where the two files go.
    #[arg(long, default_value = ".")]
    pub dir: PathBuf,
}

#[derive(Debug, Args)]
pub struct Issue {
    /// The private key's file.
    #[arg(long)]
    pub key: PathBuf,
    /// Who may log in with it.
    #[arg(long)]
    pub account: String,
    /// The cluster's name, as in node.cluster.
    #[arg(long, default_value = "linkstead")]
    pub audience: String,
    /// How long it is good; at most 12 hours.
    #[arg(long, default_value_t = LIFE_SECONDS)]
    pub seconds: u64,
    /// The client's main version that it is good for; 0 is any.
    #[arg(long, default_value_t = 0)]
    pub app_main: u16,
    /// One JSON object.
    #[arg(long)]
    pub json: bool,
}

/// How long a login ticket is good unless told otherwise.
const LIFE_SECONDS: u64 = 300;

pub fn run(command: Command) -> Result<(), Failed> {
    match command {
        Command::Keygen(keygen) => make_keys(&keygen),
        Command::Issue(issue) => sign(&issue),
        Command::Show { text, json } => show(text, json),
    }
}

fn make_keys(keygen: &Keygen) -> Result<(), Failed> {
    let signer = new_signer(keygen.kid)?;
    let path = |ending| keygen.dir.join(format!("ticket-{}.{ending}", keygen.kid));
    let (private, public) = (path("key"), path("pub"));
    write_new(&private, 0o600, &signer.secret_file())?;
    write_new(&public, 0o644, &signer.public().to_string())?;
    println!("private key (keep it at the login service): {}", private.display());
    println!("public key (linkd.ticket.keys of every linkd): {}", public.display());
    Ok(())
}

/// Never writes over a key: tickets may still be signed with it.
fn write_new(path: &Path, mode: u32, text: &str) -> Result<(), Failed> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut file = opened.map_err(|error| Failed::Usage(format!("{}: {error}", path.display())))?;
    file.write_all(text.as_bytes()).with_context(|| format!("writing {}", path.display()))?;
    Ok(())
}

fn sign(issue: &Issue) -> Result<(), Failed> {
    let account = Account::new(&issue.account).map_err(|error| Failed::Usage(error.to_string()))?;
    let signer = read_signer(&issue.key)?;
    let (ticket, text) = self::issue(&signer, account, &issue.audience, issue.seconds, issue.app_main)?;
    if issue.json {
        println!(
            "{}",
            json!({ "ticket": text, "id": Hex(&ticket.id).to_string(), "expires": ticket.expires })
        );
    } else {
        println!("{text}");
    }
    Ok(())
}

fn show(text: String, json: bool) -> Result<(), Failed> {
    let mut given = Secret::new(text);
    if given.expose() == b"-" {
        let mut read = String::new();
        std::io::stdin().lock().take(4_096).read_to_string(&mut read).context("standard input")?;
        given = Secret::new(read);
    }
    let text = String::from_utf8_lossy(given.expose());
    let ticket = Ticket::read_unverified(text.trim());
    let ticket = ticket.ok_or_else(|| Failed::Usage("this is not a ticket of this version".into()))?;
    let fields = json!({
        "kid": ticket.kid,
        "id": Hex(&ticket.id).to_string(),
        "account": ticket.account.as_str(),
        "audience": ticket.audience,
        "app_main": ticket.app_main,
        "issued": ticket.issued,
        "not_before": ticket.not_before,
        "expires": ticket.expires,
        "signature": "not checked",
    });
    if json {
        println!("{fields}");
        return Ok(());
    }
    for (name, value) in fields.as_object().into_iter().flatten() {
        println!("{name:<11} {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    Ok(())
}

/// A new key from the system's random source.
pub fn new_signer(kid: u16) -> Result<Signer, Failed> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| anyhow!("the system gives no random numbers: {error}"))?;
    Ok(Signer::new(kid, &secret))
}

/// A private key that only its owner may read.
pub fn read_signer(path: &Path) -> Result<Signer, Failed> {
    let usage = |why: &dyn std::fmt::Display| Failed::Usage(format!("{}: {why}", path.display()));
    let text = files::read_secret(path, KEY_FILE_BYTES_MAX).map_err(|error| usage(&error))?;
    Signer::parse(&String::from_utf8_lossy(text.expose())).map_err(|error| usage(&error))
}

fn issue(
    signer: &Signer,
    account: Account,
    audience: &str,
    seconds: u64,
    app_main: u16,
) -> Result<(Ticket, String), Failed> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|error| anyhow!("the system gives no random numbers: {error}"))?;
    let now = node::clock::unix_seconds();
    let ticket = Ticket {
        kid: signer.kid(),
        issued: now,
        not_before: now,
        expires: now.saturating_add(seconds),
        id,
        app_main,
        audience: audience.to_owned(),
        account,
    };
    let text = ticket.sign(signer).map_err(|error| Failed::Usage(error.to_string()))?;
    Ok((ticket, text))
}

/// Makes tickets of one key for one cluster.
#[derive(Debug, Clone)]
pub struct Booth {
    pub signer: Signer,
    pub audience: String,
}

impl Booth {
    /// A new ticket for `account`, good for one login within five minutes.
    pub fn sell(&self, account: &str) -> Result<String, String> {
        let account = Account::new(account).map_err(|error| error.to_string())?;
        let issued = issue(&self.signer, account, &self.audience, LIFE_SECONDS, 0);
        issued.map(|(_, text)| text).map_err(|error| error.to_string())
    }

    /// A new ticket for each login of a bot.
    pub fn tokens(self) -> Tokens {
        Tokens::new(move |account| self.sell(account))
    }
}
