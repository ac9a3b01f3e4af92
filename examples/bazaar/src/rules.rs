//! The rules of the bazaar, one record at a time: coins and items are neither made nor lost, except when an account is
//! opened. Pure; a handler that is refused half-way has changed nothing, since its transaction is not committed.

use crate::codes::{
    BAD_AMOUNT, NO_SUCH_KIND, NO_SUCH_OFFER, SHELF_FULL, TOO_FEW_COINS, TOO_FEW_ITEMS, TOO_MANY_OFFERS,
};
use crate::records::{Account, Bag, Offer, Place, Shelf};

/// What is traded. Each kind has a shelf of its own, and who trades in one kind does not get into the way of others.
pub const KINDS: [&str; 12] =
    ["apple", "bell", "candle", "drum", "fig", "horn", "jar", "knife", "lamp", "pearl", "rug", "salt"];
/// What an account begins with.
pub const START_COINS: u64 = 100;
/// And of each kind.
pub const START_ITEMS: u64 = 10;
/// Open offers of one account.
pub const OFFERS_MAX: usize = 8;
/// Open offers of one kind. An offer beyond it is refused: dropping the oldest would take it from its seller unasked.
pub const SHELF_MAX: usize = 64;
/// More than all coins and all items: sums of two stay below the end of the numbers.
const AMOUNT_MAX: u64 = 1 << 40;
/// Requests of one session: numbers of the next one begin behind them.
const SESSION_REQUESTS_BITS: u32 = 32;

type Allowed<T = ()> = Result<T, i32>;

/// Something that is traded here.
pub fn kind(name: &str) -> Allowed {
    if KINDS.contains(&name) { Ok(()) } else { Err(NO_SUCH_KIND) }
}

/// Something, and not more than anybody can have.
pub fn amount(count: u64) -> Allowed<u64> {
    if (1..=AMOUNT_MAX).contains(&count) { Ok(count) } else { Err(BAD_AMOUNT) }
}

impl Account {
    /// As it begins.
    pub fn fresh() -> Self {
        Self { coins: START_COINS, ..Self::default() }
    }

    /// A session begins: the number of its first request, larger than all before.
    pub fn begin(&mut self) -> u64 {
        self.sessions += 1;
        self.sessions << SESSION_REQUESTS_BITS
    }

    pub fn pay(&mut self, coins: u64) -> Allowed {
        self.coins = self.coins.checked_sub(coins).ok_or(TOO_FEW_COINS)?;
        Ok(())
    }

    pub fn earn(&mut self, coins: u64) {
        self.coins += coins;
    }

    pub fn add_offer(&mut self, number: u64) -> Allowed {
        if self.offers.len() >= OFFERS_MAX {
            return Err(TOO_MANY_OFFERS);
        }
        self.offers.push(number);
        Ok(())
    }

    pub fn end_offer(&mut self, number: u64) {
        self.offers.retain(|offer| *offer != number);
    }
}

impl Bag {
    /// As it begins.
    pub fn fresh() -> Self {
        Self { items: KINDS.map(|kind| (kind.to_owned(), START_ITEMS)).into() }
    }

    pub fn remove(&mut self, kind: &str, count: u64) -> Allowed {
        let has = self.items.get_mut(kind).ok_or(TOO_FEW_ITEMS)?;
        *has = has.checked_sub(count).ok_or(TOO_FEW_ITEMS)?;
        if *has == 0 {
            self.items.remove(kind);
        }
        Ok(())
    }

    pub fn add(&mut self, kind: &str, count: u64) {
        *self.items.entry(kind.to_owned()).or_default() += count;
    }
}

impl Shelf {
    /// Puts an offer there.
    pub fn add(&mut self, seller: &str, number: u64, offer: &Offer) -> Allowed {
        if self.places.len() >= SHELF_MAX {
            return Err(SHELF_FULL);
        }
        let (count, price) = (offer.count, offer.price);
        self.places.push(Place { seller: seller.to_owned(), number, count, price });
        Ok(())
    }

    pub fn remove(&mut self, seller: &str, number: u64) -> Allowed {
        let is = |place: &Place| place.seller == seller && place.number == number;
        let at = self.places.iter().position(is).ok_or(NO_SUCH_OFFER)?;
        self.places.remove(at);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(kind: &str) -> Offer {
        Offer { kind: kind.into(), count: 2, price: 5 }
    }

    #[test]
    fn nobody_pays_what_he_has_not() {
        let mut account = Account::fresh();
        assert_eq!(account.pay(START_COINS + 1), Err(TOO_FEW_COINS));
        assert_eq!(account.coins, START_COINS);
        account.pay(START_COINS).unwrap();
        assert_eq!((account.coins, account.pay(1)), (0, Err(TOO_FEW_COINS)));
        account.earn(3);
        assert_eq!(account.coins, 3);
    }

    #[test]
    fn nobody_gives_items_that_he_has_not() {
        let mut bag = Bag::fresh();
        assert_eq!(bag.remove("apple", START_ITEMS + 1), Err(TOO_FEW_ITEMS));
        assert_eq!(bag, Bag::fresh());
        bag.remove("apple", START_ITEMS).unwrap();
        assert!(!bag.items.contains_key("apple"), "an entry of nothing");
        assert_eq!(bag.remove("apple", 1), Err(TOO_FEW_ITEMS));
        bag.add("apple", 2);
        assert_eq!((bag.items["apple"], bag.items["rug"]), (2, START_ITEMS));
    }

    #[test]
    fn a_full_shelf_refuses_and_keeps_what_is_there() {
        let mut shelf = Shelf::default();
        (0..SHELF_MAX as u64).for_each(|number| shelf.add("ann", number, &offer("rug")).unwrap());
        let before = shelf.clone();
        assert_eq!(shelf.add("ann", 100, &offer("rug")), Err(SHELF_FULL));
        assert_eq!(shelf, before);
        assert_eq!(shelf.remove("bob", 7), Err(NO_SUCH_OFFER), "another's of the same number");
        shelf.remove("ann", 7).unwrap();
        assert_eq!(shelf.remove("ann", 7), Err(NO_SUCH_OFFER));
        shelf.add("ann", 100, &offer("rug")).unwrap();
        assert_eq!((shelf.places.len(), shelf.places[7].number), (SHELF_MAX, 8));
    }

    #[test]
    fn only_what_is_known_is_traded() {
        assert!(KINDS.iter().all(|name| kind(name).is_ok()));
        assert_eq!(kind("moon"), Err(NO_SUCH_KIND));
    }

    #[test]
    fn an_account_has_few_open_offers() {
        let mut account = Account::fresh();
        (0..OFFERS_MAX as u64).for_each(|id| account.add_offer(id).unwrap());
        assert_eq!(account.add_offer(100), Err(TOO_MANY_OFFERS));
        account.end_offer(3);
        account.add_offer(100).unwrap();
        assert!(!account.offers.contains(&3) && account.offers.len() == OFFERS_MAX);
    }

    #[test]
    fn amounts_are_something_and_bounded() {
        assert_eq!((amount(0), amount(1)), (Err(BAD_AMOUNT), Ok(1)));
        assert_eq!((amount(AMOUNT_MAX), amount(AMOUNT_MAX + 1)), (Ok(AMOUNT_MAX), Err(BAD_AMOUNT)));
    }

    #[test]
    fn numbers_of_a_later_session_are_larger() {
        let mut account = Account::fresh();
        let first = account.begin();
        assert!(first > 0 && account.begin() > first + u64::from(u32::MAX));
    }
}
