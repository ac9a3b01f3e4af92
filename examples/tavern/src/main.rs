//! `tavern` runs the provider; `tavern chat NAME` plays it in a terminal.

use std::io::BufRead;

use anyhow::Result;
use clap::Parser;
use tokio::sync::mpsc;

/// Lines that may wait while one is being answered; the reader of the terminal waits then.
const LINES_MAX: usize = 16;

/// Plays the tavern in a terminal, or line by line from a pipe.
#[derive(Debug, Parser)]
#[command(name = "tavern chat")]
struct Chat {
    /// Who to come in as; `keeper` may announce and kick.
    name: String,
    /// A gateway, or several with commas between.
    #[arg(long, default_value = "127.0.0.1:7710")]
    addr: String,
    /// The first room.
    #[arg(long, default_value = "attic")]
    room: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    // Whatever isn't `chat` is the provider's own: its verbs and flags are the framework's.
    let mut args: Vec<String> = std::env::args().collect();
    if args.get(1).is_some_and(|verb| verb == "chat") {
        args.remove(1);
        return chat(Chat::parse_from(args)).await;
    }
    Ok(tavern::provider().run().await?)
}

async fn chat(chat: Chat) -> Result<()> {
    let (sender, mut lines) = mpsc::channel(LINES_MAX);
    // A thread of its own: a terminal can't be read without blocking, and the process must be able to end meanwhile.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    tavern::chat::run(&chat.addr, &chat.name, &chat.room, &mut lines, |line| println!("{line}")).await?;
    Ok(())
}
