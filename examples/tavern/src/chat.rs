//! The tavern in a terminal: a line is something said, a line with `/` is something done, and whatever comes is
//! printed as it comes. Knows nothing of the terminal itself: lines come in by a channel and go out by a function.

use client::{Client, Error, Event, Events, Options, Push, Reconnect};
use tokio::sync::mpsc;

use crate::messages::{
    Announce, Announced, Enter, Joined, Kick, Leave, Left, Login, Said, Say, Whisper, Whispered, Who,
};
use crate::{Guests, Rooms, Tavern, codes};

const HELP: &str =
    "say something, or: /room NAME, /who, /whisper NAME TEXT, /announce TEXT, /kick NAME, /quit";

/// What a line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Command<'a> {
    Nothing,
    Say(&'a str),
    Room(&'a str),
    Who,
    Whisper { to: &'a str, text: &'a str },
    Announce(&'a str),
    Kick(&'a str),
    Quit,
    Help,
}

fn parse(line: &str) -> Command<'_> {
    let line = line.trim();
    let Some(command) = line.strip_prefix('/') else {
        return if line.is_empty() { Command::Nothing } else { Command::Say(line) };
    };
    let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
    let rest = rest.trim();
    match word {
        "room" if !rest.is_empty() => Command::Room(rest),
        "who" => Command::Who,
        "whisper" => match rest.split_once(' ') {
            Some((to, text)) => Command::Whisper { to, text: text.trim() },
            None => Command::Help,
        },
        "announce" if !rest.is_empty() => Command::Announce(rest),
        "kick" if !rest.is_empty() => Command::Kick(rest),
        "quit" => Command::Quit,
        _ => Command::Help,
    }
}

/// One guest at a terminal.
#[derive(Debug)]
struct Chat<F> {
    client: Client,
    events: Events,
    room: String,
    print: F,
}

/// Plays `name` until the lines end, `/quit`, or the connection ends for good, which is an error. Of the lines that
/// wait, `lines` says how many.
pub async fn run(
    addr: &str,
    name: &str,
    room: &str,
    lines: &mut mpsc::Receiver<String>,
    print: impl FnMut(&str),
) -> Result<(), Error> {
    let options = Options { reconnect: Some(Reconnect::default()), ..Options::new(addr, name) };
    let client = Client::connect(options).await?;
    let mut chat = Chat { events: client.events(), client, room: room.to_owned(), print };
    chat.come_in().await?;
    let end = chat.play(lines).await;
    if end.is_ok() {
        // The room is told at once, not when the gateway notices.
        let _ = chat.client.request(Rooms::LEAVE, Leave { room: chat.room.clone() }).await;
        chat.client.close().await;
        chat.show_what_is_left();
    }
    end
}

impl<F: FnMut(&str)> Chat<F> {
    async fn come_in(&mut self) -> Result<(), Error> {
        let welcome = self.client.request(Tavern::LOGIN, Login {}).await?;
        let at = self.client.addr().unwrap_or_default();
        self.say(&format!(
            "-- {} came in by {at}; guests at this provider: {}",
            welcome.account, welcome.guests
        ));
        self.enter().await
    }

    async fn come_in_again(&mut self) {
        if let Err(error) = self.come_in().await {
            self.say(&format!("-- {}", in_words(&error)));
        }
    }

    async fn enter(&mut self) -> Result<(), Error> {
        let entered = self.client.request(Rooms::ENTER, Enter { room: self.room.clone() }).await?;
        self.say(&format!("-- in {}: {}", self.room, entered.members.join(", ")));
        Ok(())
    }

    async fn play(&mut self, lines: &mut mpsc::Receiver<String>) -> Result<(), Error> {
        loop {
            tokio::select! {
                biased;
                event = self.events.next() => match event {
                    Some(event) => self.show(event).await?,
                    None => return Ok(()),
                },
                line = lines.recv() => {
                    let Some(line) = line else { return Ok(()) };
                    let command = parse(&line);
                    if command == Command::Quit {
                        return Ok(());
                    }
                    if let Err(error) = self.obey(command).await {
                        self.say(&format!("-- {}", in_words(&error)));
                    }
                }
            }
        }
    }

    async fn obey(&mut self, command: Command<'_>) -> Result<(), Error> {
        let (client, room) = (self.client.clone(), self.room.clone());
        match command {
            Command::Nothing | Command::Quit => {}
            Command::Say(text) => {
                client.request(Rooms::SAY, Say { room, text: text.to_owned() }).await?;
            }
            Command::Who => {
                let who = client.request(Rooms::WHO, Who { room }).await?;
                self.say(&format!("-- in {}: {}", self.room, who.members.join(", ")));
            }
            Command::Room(next) => {
                client.request(Rooms::LEAVE, Leave { room }).await?;
                self.room = next.to_owned();
                self.enter().await?;
            }
            Command::Whisper { to, text } => {
                client.request(Guests::WHISPER, Whisper { to: to.to_owned(), text: text.to_owned() }).await?;
                self.say(&format!("-- only {to} hears it"));
            }
            Command::Announce(text) => {
                client.request(Tavern::ANNOUNCE, Announce { text: text.to_owned() }).await?
            }
            Command::Kick(account) => {
                client.request(Guests::KICK, Kick { account: account.to_owned() }).await?;
                self.say(&format!("-- {account} is out"));
            }
            Command::Help => self.say(HELP),
        }
        Ok(())
    }

    async fn show(&mut self, event: Event) -> Result<(), Error> {
        match event {
            Event::Push(push) => {
                if let Some(line) = told(&push) {
                    self.say(&line);
                }
            }
            Event::Lost(cause) => self.say(&format!("-- connection lost ({cause}), dialling again")),
            // To the providers this is a new session.
            Event::Reconnected { .. } => self.come_in_again().await,
            Event::Report(report) => {
                self.say(&format!("-- {}", report.text));
                // The connection lives, but who served it is gone.
                if report.code() == Some(&client::code::PROVIDER_BROKEN) {
                    self.come_in_again().await;
                }
            }
            Event::Closed(cause) => return Err(Error::Closed(cause)),
            _ => {}
        }
        Ok(())
    }

    fn show_what_is_left(&mut self) {
        while let Some(event) = self.events.ready() {
            if let Event::Push(push) = event
                && let Some(line) = told(&push)
            {
                self.say(&line);
            }
        }
    }

    fn say(&mut self, line: &str) {
        (self.print)(line);
    }
}

/// What a push tells; `None` for what this terminal doesn't know.
fn told(push: &Push) -> Option<String> {
    if let Some(Ok(Said { room, from, text })) = push.decode() {
        return Some(format!("[{room}] {from}: {text}"));
    }
    if let Some(Ok(Whispered { from, text })) = push.decode() {
        return Some(format!("({from} whispers) {text}"));
    }
    if let Some(Ok(Joined { room, account })) = push.decode() {
        return Some(format!("[{room}] {account} comes in"));
    }
    if let Some(Ok(Left { room, account })) = push.decode() {
        return Some(format!("[{room}] {account} leaves"));
    }
    if let Some(Ok(Announced { text })) = push.decode() {
        return Some(format!("*** {text}"));
    }
    None
}

fn in_words(error: &Error) -> String {
    match error.game_code() {
        Some((_, code)) => codes::text(code).to_owned(),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_said_and_a_slash_is_done() {
        assert_eq!(parse(" hello there "), Command::Say("hello there"));
        assert_eq!(parse("  "), Command::Nothing);
        assert_eq!(parse("/whisper bob  come here"), Command::Whisper { to: "bob", text: "come here" });
        assert_eq!(parse("/room attic"), Command::Room("attic"));
        assert_eq!((parse("/who"), parse("/quit")), (Command::Who, Command::Quit));
        assert_eq!(parse("/announce closing time"), Command::Announce("closing time"));
        assert_eq!(parse("/kick bob"), Command::Kick("bob"));
        for wrong in ["/", "/dance", "/whisper bob", "/room", "/kick "] {
            assert_eq!(parse(wrong), Command::Help, "{wrong}");
        }
    }
}
