//! The bots that load the tavern: regulars who come in, talk in a room of eight, whisper to their neighbour and leave,
//! and check that what they see is what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use client::Error;
use client::bots::{Bot, Failure, Scenario};
use parking_lot::Mutex;

use crate::messages::{Enter, Leave, Login, Said, Say, Whisper, Whispered, Who};
use crate::{Guests, Rooms, Tavern, codes};

/// Bots that share a room.
const PER_ROOM: u32 = 8;
/// What each says in a round.
const SAYS: usize = 3;
/// Logins refused because the cluster takes no more at the moment.
const PATIENCE: u32 = 60;
/// How long a push may take. Generous: the promise is that it comes, and the percentiles say how fast.
const WITHIN: Duration = Duration::from_secs(10);

/// The scenario for [`client::bots::run`].
pub fn bots() -> impl Scenario {
    Regular::default()
}

#[derive(Debug, Default)]
struct Regular {
    ledger: Mutex<Ledger>,
}

/// Which whispers are on their way to whom, so that the one who gets them can tell that none is missing.
#[derive(Debug, Default)]
struct Ledger {
    present: BTreeSet<String>,
    owed: BTreeMap<String, BTreeSet<String>>,
}

impl Ledger {
    /// Notes a whisper that is about to be sent. False: the other is away or about to leave, so send none.
    fn promise(&mut self, to: &str, text: &str) -> bool {
        self.present.contains(to) && self.owed.entry(to.to_owned()).or_default().insert(text.to_owned())
    }

    /// It came, or it was never sent. False: nobody has promised it.
    fn settle(&mut self, to: &str, text: &str) -> bool {
        self.owed.get_mut(to).is_some_and(|owed| owed.remove(text))
    }

    fn owed(&self, to: &str) -> usize {
        self.owed.get(to).map_or(0, BTreeSet::len)
    }
}

/// A bot that whispers may be sent to; gone when it leaves or fails.
struct Presence<'a> {
    ledger: &'a Mutex<Ledger>,
    account: String,
}

impl<'a> Presence<'a> {
    fn new(ledger: &'a Mutex<Ledger>, account: &str) -> Self {
        ledger.lock().present.insert(account.to_owned());
        Self { ledger, account: account.to_owned() }
    }
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        self.ledger.lock().present.remove(&self.account);
    }
}

impl Scenario for Regular {
    async fn run(&self, bot: &mut Bot) -> Result<(), Failure> {
        let me = bot.account().to_owned();
        let welcome = bot.request_patiently(Tavern::LOGIN, Login {}, PATIENCE).await?;
        bot.check(welcome.account == me, format!("welcomed as {:?}", welcome.account))?;
        // Who was let in away from home can't be whispered to: see the README.
        let presence = self.is_at_home(bot, &me).await?.then(|| Presence::new(&self.ledger, &me));

        let room = format!("room-{}", bot.index / PER_ROOM);
        let entered = bot.request(Rooms::ENTER, Enter { room: room.clone() }).await?;
        bot.check(entered.members.contains(&me), format!("not among the members of {room}"))?;
        bot.think().await;
        self.talk(bot, &me, &room).await?;
        bot.think().await;
        self.whisper(bot, &me).await?;

        let left = bot.try_request(Rooms::LEAVE, Leave { room: room.clone() }).await?;
        bot.check(left.is_ok(), format!("was not in {room} any more"))?;
        let members = bot.request(Rooms::WHO, Who { room: room.clone() }).await?.members;
        bot.check(!members.contains(&me), format!("still in {room} after leaving"))?;
        drop(presence);
        self.hear_the_rest(bot, &me).await
    }
}

impl Regular {
    /// Whether a whisper to this bot finds it: one to itself does, and then must come.
    async fn is_at_home(&self, bot: &mut Bot, me: &str) -> Result<bool, Failure> {
        let text = format!("{me} to itself {}", bot.round);
        match bot.try_request(Guests::WHISPER, Whisper { to: me.to_owned(), text: text.clone() }).await? {
            Ok(()) => {
                let heard: Whispered = bot.push(WITHIN).await?;
                bot.check(
                    heard == Whispered { from: me.to_owned(), text },
                    format!("heard {heard:?} from itself"),
                )?;
                Ok(true)
            }
            Err(refused) => {
                bot.check(is_not_here(&refused), format!("whisper to itself: {refused}"))?;
                Ok(false)
            }
        }
    }

    /// Says several things at once and hears each of them back, in the order they were said.
    async fn talk(&self, bot: &mut Bot, me: &str, room: &str) -> Result<(), Failure> {
        let texts: Vec<_> = (0..SAYS).map(|n| format!("{me} {} {n}", bot.round)).collect();
        let says = texts.iter().map(|text| Say { room: room.to_owned(), text: text.clone() }).collect();
        let heard = bot.request_all(Rooms::SAY, says).await?;
        bot.check(heard.iter().all(|heard| heard.by >= 1), "nobody heard it, not even the speaker")?;
        for text in &texts {
            let said: Said = bot.push_that(WITHIN, |said: &Said| said.from == me).await?;
            bot.check(
                said.text == *text && said.room == room,
                format!("heard {said:?} instead of {text:?}"),
            )?;
        }
        Ok(())
    }

    /// Whispers to the neighbour, if it is there, and hears what has come so far.
    async fn whisper(&self, bot: &mut Bot, me: &str) -> Result<(), Failure> {
        let neighbour = bot.account_of(bot.index ^ 1);
        let text = format!("{me} {}", bot.round);
        if self.ledger.lock().promise(&neighbour, &text) {
            let sent =
                bot.try_request(Guests::WHISPER, Whisper { to: neighbour.clone(), text: text.clone() }).await;
            if !matches!(sent, Ok(Ok(()))) {
                self.ledger.lock().settle(&neighbour, &text);
            }
            if let Err(refused) = sent? {
                // A neighbour that failed meanwhile is away; one that waits for this whisper is not.
                let away = !self.ledger.lock().present.contains(&neighbour);
                bot.check(away && is_not_here(&refused), format!("whisper to {neighbour}: {refused}"))?;
            }
        }
        while let Some(heard) = bot.push_or_none::<Whispered>(Duration::ZERO).await? {
            self.check(bot, me, &heard)?;
        }
        Ok(())
    }

    /// Nobody whispers to this bot any more; what was on its way still comes.
    async fn hear_the_rest(&self, bot: &mut Bot, me: &str) -> Result<(), Failure> {
        let patience = Duration::from_millis(50);
        let mut waited = Duration::ZERO;
        while self.ledger.lock().owed(me) > 0 {
            match bot.push_or_none::<Whispered>(patience).await? {
                Some(heard) => self.check(bot, me, &heard)?,
                None => waited += patience,
            }
            bot.check(waited < WITHIN, "a whisper was sent and never came")?;
        }
        Ok(())
    }

    fn check(&self, bot: &Bot, me: &str, heard: &Whispered) -> Result<(), Failure> {
        let promised = self.ledger.lock().settle(me, &heard.text);
        bot.check(promised && heard.text.starts_with(&heard.from), format!("nobody whispered {heard:?}"))
    }
}

fn is_not_here(refused: &Error) -> bool {
    refused.game_code().is_some_and(|(_, code)| code == codes::NOT_HERE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whisper_is_owed_until_it_comes() {
        let ledger = Mutex::new(Ledger::default());
        assert!(!ledger.lock().promise("bob", "hi"), "bob is away");
        let presence = Presence::new(&ledger, "bob");
        assert!(ledger.lock().promise("bob", "hi"));
        drop(presence);
        assert!(!ledger.lock().promise("bob", "ho"), "bob is leaving");
        assert_eq!(ledger.lock().owed("bob"), 1);
        assert!(ledger.lock().settle("bob", "hi"));
        assert!(!ledger.lock().settle("bob", "hi"), "twice");
        assert_eq!(ledger.lock().owed("bob"), 0);
    }
}
