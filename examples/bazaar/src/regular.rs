//! The bots that load the bazaar: traders who come in, offer, take what others offer, give coins away and take offers back,
//! and check everything that they are told.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::Retry;
use client::Error;
use client::bots::{Bot, Failure, Scenario};
use parking_lot::Mutex;
use prost::Message;
use wire::Rpc;

use crate::codes;
use crate::ledger::{Came, Earned, Ledger, Own};
use crate::messages::{
    Balance, Enter, List, Listed, Look, MakeOffer, Open, Received, Sold, Take, Transfer, Withdraw,
};
use crate::rules::{KINDS, OFFERS_MAX};
use crate::{Bank, Market};

/// How often a request is sent again before the bot gives up.
const AGAIN_MAX: u32 = 100;
/// The wait before what may have been done is sent again, under the same number.
const SOON: Duration = Duration::from_millis(200);

/// The scenario for [`client::bots::run`].
pub fn bots() -> impl Scenario {
    Trader::default()
}

#[derive(Debug, Default)]
struct Trader {
    ledger: Mutex<Ledger>,
    /// What each account knows of itself from round to round.
    known: Mutex<BTreeMap<String, Known>>,
}

/// A bot's account as it knows it.
#[derive(Debug, Clone, Default)]
struct Known {
    own: Own,
    /// The number of its next request.
    next: u64,
    coins: u64,
}

impl Known {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// What was sure before something was asked.
struct Before {
    earned: Earned,
    sold: BTreeSet<u64>,
}

impl Scenario for Trader {
    async fn run(&self, bot: &mut Bot) -> Result<(), Failure> {
        let me = bot.account().to_owned();
        let known = self.known.lock().remove(&me);
        let mut known = match known {
            Some(known) => known,
            None => self.begin(bot, &me).await?,
        };
        let kind = KINDS[bot.random.below(KINDS.len() as u64) as usize];
        self.buy(bot, &me, &mut known, kind).await?;
        bot.think().await;
        self.sell(bot, &me, &mut known, kind).await?;
        bot.think().await;
        self.give(bot, &me, &mut known).await?;
        if bot.random.below(3) == 0 {
            self.take_back(bot, &me, &mut known).await?;
        }
        let before = self.before(&me, &known);
        let balance = said(insist(bot, Bank::BALANCE, Look {}).await?, "balance")?;
        self.see(bot, &me, &mut known, &before, Some(balance))?;
        self.hear(bot, &me).await?;
        self.known.lock().insert(me, known);
        Ok(())
    }
}

impl Trader {
    /// Comes in, and takes what it has for given. From then on everything has to be explained.
    async fn begin(&self, bot: &mut Bot, me: &str) -> Result<Known, Failure> {
        let entered = said(insist(bot, Bank::ENTER, Enter {}).await?, "enter")?;
        bot.check(entered.account == me && entered.visits > 0, format!("came in as {entered:?}"))?;
        let before = self.ledger.lock().earned(me);
        let opened = said(insist(bot, Bank::OPEN, Open {}).await?, "open")?;
        let after = self.ledger.lock().earned(me);
        let balance = opened.balance.unwrap_or_default();
        let mut own = Own::new(balance.coins, before, after);
        own.items = balance.items;
        own.offers = self.offers_before(bot, me, &balance.offers).await?;
        Ok(Known { own, next: opened.first_request, coins: balance.coins })
    }

    /// What is in the offers of a run before, as the shelves say. One that is sold before that is not found there, and
    /// nobody asks for it: it is gone from the next balance.
    async fn offers_before(
        &self,
        bot: &mut Bot,
        me: &str,
        open: &[u64],
    ) -> Result<BTreeMap<u64, (String, u64)>, Failure> {
        let mut found: BTreeMap<_, _> =
            open.iter().map(|number| (*number, (KINDS[0].to_owned(), 0))).collect();
        for kind in KINDS.iter().filter(|_| !open.is_empty()) {
            let listing = said(insist(bot, Market::LIST, List { kind: (*kind).to_owned() }).await?, "list")?;
            for offer in listing.offers.into_iter().filter(|offer| offer.seller == me) {
                found.insert(offer.number, (offer.kind, offer.count));
            }
        }
        Ok(found)
    }

    fn before(&self, me: &str, known: &Known) -> Before {
        let ledger = self.ledger.lock();
        let sold = known
            .own
            .offers
            .keys()
            .filter(|number| ledger.is_sold(&(me.to_owned(), **number)))
            .copied()
            .collect();
        Before { earned: ledger.earned(me), sold }
    }

    /// What an answer says the bot has must be what it knows.
    fn see(
        &self,
        bot: &Bot,
        me: &str,
        known: &mut Known,
        before: &Before,
        balance: Option<Balance>,
    ) -> Result<(), Failure> {
        let Balance { coins, items, offers } = balance.unwrap_or_default();
        let ledger = self.ledger.lock();
        let after = ledger.earned(me);
        let was = known.own.clone();
        bot.check(items == known.own.items, format!("{items:?} in the bag and not {:?}", known.own.items))?;
        bot.check(known.own.see(coins, before.earned, after), format!("{coins} coins and not {was:?}"))?;
        let fine = known.own.see_offers(me, &offers, &before.sold, &ledger);
        bot.check(fine, format!("open offers {offers:?} and not {:?}", was.offers))?;
        known.coins = coins;
        Ok(())
    }

    /// Takes what somebody else offers, if the bot can pay for any.
    async fn buy(&self, bot: &mut Bot, me: &str, known: &mut Known, kind: &str) -> Result<(), Failure> {
        let listing = said(insist(bot, Market::LIST, List { kind: kind.to_owned() }).await?, "list")?;
        let coins = known.coins;
        let fits = |offer: &&Listed| offer.seller != me && offer.price <= coins;
        let fitting: Vec<_> = listing.offers.iter().filter(fits).collect();
        if fitting.is_empty() {
            return Ok(());
        }
        let wanted = fitting[bot.random.below(fitting.len() as u64) as usize].clone();
        let id = (wanted.seller.clone(), wanted.number);
        let before = self.before(me, known);
        {
            let mut ledger = self.ledger.lock();
            ledger.promise(&wanted.seller, wanted.price);
            ledger.try_sale(&id);
        }
        let (seller, number) = id.clone();
        let request = Take { request: known.number(), seller, number, kind: kind.to_owned() };
        let took = insist(bot, Market::TAKE, request).await?;
        let came = if took.is_ok() { Came::Done } else { Came::Nothing };
        let once = {
            let mut ledger = self.ledger.lock();
            ledger.settle(&wanted.seller, wanted.price, came);
            ledger.settle_sale(&id, came)
        };
        bot.check(once, format!("offer {id:?} was sold twice"))?;
        match took {
            Ok(taken) => {
                known.own.spend(wanted.price);
                known.own.get(&wanted.kind, wanted.count);
                bot.check(taken.offer.as_ref() == Some(&wanted), format!("took {taken:?} for {wanted:?}"))?;
                self.see(bot, me, known, &before, taken.balance)
            }
            Err(refused) => refused_with(bot, &refused, &[codes::NO_SUCH_OFFER]),
        }
    }

    /// Offers some of a kind, if the bot has any.
    async fn sell(&self, bot: &mut Bot, me: &str, known: &mut Known, kind: &str) -> Result<(), Failure> {
        let has = known.own.items.get(kind).copied().unwrap_or_default();
        if has == 0 || known.own.offers.len() >= OFFERS_MAX {
            return Ok(());
        }
        let count = 1 + bot.random.below(has.min(3));
        let price = 1 + bot.random.below(9);
        let before = self.before(me, known);
        let number = known.number();
        let request = MakeOffer { request: number, kind: kind.to_owned(), count, price };
        match insist(bot, Market::OFFER, request).await? {
            Ok(offered) => {
                known.own.give(kind, count);
                known.own.offers.insert(number, (kind.to_owned(), count));
                self.see(bot, me, known, &before, offered.balance)
            }
            Err(refused) => refused_with(bot, &refused, &[codes::SHELF_FULL]),
        }
    }

    /// Gives a coin to the next one, who may not have come in yet.
    async fn give(&self, bot: &mut Bot, me: &str, known: &mut Known) -> Result<(), Failure> {
        let to = bot.account_of((bot.index + 1) % bot.bots());
        if known.coins == 0 || to == me {
            return Ok(());
        }
        let before = self.before(me, known);
        self.ledger.lock().promise(&to, 1);
        let request = Transfer { request: known.number(), to: to.clone(), coins: 1 };
        let gave = insist(bot, Bank::TRANSFER, request).await?;
        self.ledger.lock().settle(&to, 1, if gave.is_ok() { Came::Done } else { Came::Nothing });
        match gave {
            Ok(balance) => {
                known.own.spend(1);
                self.see(bot, me, known, &before, Some(balance))
            }
            Err(refused) => refused_with(bot, &refused, &[codes::NO_ACCOUNT]),
        }
    }

    /// Takes its oldest offer back, unless it is sold.
    async fn take_back(&self, bot: &mut Bot, me: &str, known: &mut Known) -> Result<(), Failure> {
        let oldest = known.own.offers.first_key_value();
        let Some((number, (kind, count))) = oldest.map(|(number, held)| (*number, held.clone())) else {
            return Ok(());
        };
        let before = self.before(me, known);
        let request = Withdraw { request: known.number(), number, kind: kind.clone() };
        match insist(bot, Market::WITHDRAW, request).await? {
            Ok(withdrawn) => {
                let sold = before.sold.contains(&number);
                bot.check(!sold, format!("took {number} back, which was sold"))?;
                known.own.offers.remove(&number);
                known.own.get(&kind, count);
                self.see(bot, me, known, &before, withdrawn.balance)
            }
            Err(refused) => {
                let sold = self.ledger.lock().may_be_sold(&(me.to_owned(), number));
                bot.check(sold, format!("offer {number} is gone, and nobody took it"))?;
                known.own.offers.remove(&number);
                refused_with(bot, &refused, &[codes::NO_SUCH_OFFER])
            }
        }
    }

    /// What others did was told only if they did it.
    async fn hear(&self, bot: &mut Bot, me: &str) -> Result<(), Failure> {
        while let Some(sold) = bot.push_or_none::<Sold>(Duration::ZERO).await? {
            let offer = sold.offer.unwrap_or_default();
            let may_be = self.ledger.lock().may_be_sold(&(offer.seller.clone(), offer.number));
            let real = offer.seller == me && may_be;
            bot.check(real, format!("heard that {offer:?} was sold"))?;
        }
        while let Some(received) = bot.push_or_none::<Received>(Duration::ZERO).await? {
            let some = self.ledger.lock().earned(me).promised >= received.coins;
            bot.check(some, format!("heard of {received:?}"))?;
        }
        Ok(())
    }
}

/// Asks until there is an answer. What may have been done is asked for again under the same number, and so done once.
async fn insist<Q, A>(bot: &mut Bot, rpc: Rpc<Q, A>, message: Q) -> Result<Result<A, Error>, Failure>
where
    Q: Message + Clone,
    A: Message + Default,
{
    for _ in 0..AGAIN_MAX {
        match bot.try_request(rpc, message.clone()).await {
            Err(Failure::Request { error, .. }) if let Some(wait) = again(&error) => {
                bot.think_for(wait / 2..wait).await;
            }
            answered => return answered,
        }
    }
    bot.try_request(rpc, message).await
}

fn again(error: &Error) -> Option<Duration> {
    match error.retry() {
        Retry::After(wait) => Some(wait.into()),
        Retry::Now | Retry::Unknown => Some(SOON),
        Retry::Never => None,
    }
}

/// An answer that the game does not refuse.
fn said<A>(answer: Result<A, Error>, step: &'static str) -> Result<A, Failure> {
    answer.map_err(|error| Failure::Request { step, error })
}

fn refused_with(bot: &Bot, refused: &Error, expected: &[i32]) -> Result<(), Failure> {
    let fine = refused.game_code().is_some_and(|(_, code)| expected.contains(&code));
    bot.check(fine, format!("refused: {refused}"))
}
