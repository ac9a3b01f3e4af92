//! Whether coins and items are all there. It reads the storage and not what providers have in memory, so it is for when
//! nobody trades: before providers begin, or after they have ended.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use linkstead::{Key, Record};
use serde::Serialize;
use tables::{Backend, BackendError};

use crate::records::{Account, Bag, Offer, Shelf};
use crate::rules::{KINDS, START_COINS, START_ITEMS};

/// Records that are read at once.
const PAGE: usize = 1_000;

/// What there is, and what there should be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Audit {
    pub accounts: u64,
    pub coins: u64,
    pub coins_granted: u64,
    /// By their kinds, in bags and in open offers.
    pub items: BTreeMap<String, u64>,
    /// Of each kind.
    pub items_granted: u64,
    pub offers: u64,
    /// What is not as it should be; empty: all is well.
    pub wrong: Vec<String>,
}

/// Everything that stands at a storage.
#[derive(Debug, Default)]
struct Books {
    accounts: BTreeMap<String, Account>,
    bags: BTreeMap<String, Bag>,
    offers: BTreeMap<(String, u64), Offer>,
    shelves: BTreeMap<String, Shelf>,
}

/// Reads everything and counts it.
///
/// Errors: the storage can't be read.
pub async fn audit(storage: &dyn Backend) -> Result<Audit, BackendError> {
    let books = Books {
        accounts: read(storage).await?,
        bags: read(storage).await?,
        offers: read(storage).await?,
        shelves: read(storage).await?,
    };
    Ok(books.count())
}

async fn read<V: Record>(storage: &dyn Backend) -> Result<BTreeMap<V::Key, V>, BackendError> {
    let damaged = || BackendError::Damaged { what: format!("a record of table {}", V::TABLE) };
    let (mut all, mut last) = (BTreeMap::new(), None::<bytes::Bytes>);
    loop {
        let from = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let page = storage.scan(V::ID, from, PAGE).await?;
        let is_last = page.len() < PAGE;
        last = page.last().map(|(key, _)| key.clone());
        for (key, stored) in page {
            let key = V::Key::decode(&mut &key[..]).ok_or_else(damaged)?;
            all.insert(key, V::decode(stored.value).map_err(|_| damaged())?);
        }
        if is_last {
            return Ok(all);
        }
    }
}

impl Books {
    fn count(&self) -> Audit {
        let accounts = self.accounts.len() as u64;
        let mut audit = Audit {
            accounts,
            coins: self.accounts.values().map(|account| account.coins).sum(),
            coins_granted: accounts * START_COINS,
            items_granted: accounts * START_ITEMS,
            offers: self.offers.len() as u64,
            ..Audit::default()
        };
        let in_bags = self.bags.values().flat_map(|bag| bag.items.iter().map(|(kind, count)| (kind, *count)));
        let offered = self.offers.values().map(|offer| (&offer.kind, offer.count));
        for (kind, count) in in_bags.chain(offered) {
            *audit.items.entry(kind.clone()).or_default() += count;
        }
        audit.wrong = self.wrong(&audit);
        audit
    }

    fn wrong(&self, sums: &Audit) -> Vec<String> {
        let mut wrong = Vec::new();
        if sums.coins != sums.coins_granted {
            wrong.push(format!("{} coins, of which {} were granted", sums.coins, sums.coins_granted));
        }
        for kind in KINDS {
            let count = sums.items.get(kind).copied().unwrap_or_default();
            if count != sums.items_granted {
                wrong.push(format!("{count} of {kind}, of which {} were granted", sums.items_granted));
            }
        }
        if !self.accounts.keys().eq(self.bags.keys()) {
            wrong.push("an account without a bag, or a bag without an account".to_owned());
        }
        let offers: BTreeSet<_> =
            self.offers.iter().map(|(id, offer)| (id.clone(), offer.kind.clone())).collect();
        let on = |(kind, shelf): (&String, &Shelf)| -> Vec<_> {
            shelf.places.iter().map(|place| ((place.seller.clone(), place.number), kind.clone())).collect()
        };
        if self.shelves.iter().flat_map(on).collect::<BTreeSet<_>>() != offers {
            wrong.push("an offer that is on no shelf, or a place on a shelf without an offer".to_owned());
        }
        let of = |(name, account): (&String, &Account)| -> Vec<_> {
            account.offers.iter().map(|number| (name.clone(), *number)).collect()
        };
        let known: BTreeSet<_> = self.accounts.iter().flat_map(of).collect();
        if !known.iter().eq(self.offers.keys()) {
            wrong.push("an offer of which its account does not know, or one that is over".to_owned());
        }
        wrong
    }
}

impl Audit {
    pub fn holds(&self) -> bool {
        self.wrong.is_empty()
    }
}

impl std::fmt::Display for Audit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { accounts, coins, offers, .. } = self;
        write!(f, "{accounts} accounts, {coins} coins, {offers} open offers")?;
        if self.holds() { f.write_str(", all there") } else { write!(f, ": {}", self.wrong.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two accounts, one of which offers two apples.
    fn books() -> Books {
        let mut books = Books::default();
        for name in ["ann", "bob"] {
            books.accounts.insert(name.into(), Account::fresh());
            books.bags.insert(name.into(), Bag::fresh());
        }
        let offer = Offer { kind: "apple".into(), count: 2, price: 5 };
        books.shelves.entry("apple".into()).or_default().add("ann", 7, &offer).unwrap();
        books.bags.get_mut("ann").unwrap().remove("apple", 2).unwrap();
        books.accounts.get_mut("ann").unwrap().add_offer(7).unwrap();
        books.offers.insert(("ann".into(), 7), offer);
        books
    }

    #[test]
    fn what_is_offered_counts() {
        let audit = books().count();
        assert!(audit.holds(), "{audit}");
        assert_eq!((audit.accounts, audit.coins, audit.offers), (2, 200, 1));
        assert_eq!(audit.items["apple"], 20);
        assert_eq!(audit.to_string(), "2 accounts, 200 coins, 1 open offers, all there");
    }

    #[test]
    fn each_thing_that_is_missing_or_too_much_is_noticed() {
        type Break = fn(&mut Books);
        let breaks: [(Break, &str); 7] = [
            (|books| books.accounts.get_mut("bob").unwrap().coins -= 1, "199 coins"),
            (|books| books.accounts.get_mut("bob").unwrap().coins += 1, "201 coins"),
            (|books| books.bags.get_mut("bob").unwrap().add("rug", 1), "21 of rug"),
            (|books| drop(books.bags.remove("bob")), "without a bag"),
            (|books| books.offers.clear(), "place on a shelf"),
            (|books| books.shelves.clear(), "on no shelf"),
            (|books| books.accounts.get_mut("ann").unwrap().offers.clear(), "does not know"),
        ];
        for (spoil, expected) in breaks {
            let mut books = books();
            spoil(&mut books);
            let audit = books.count();
            assert!(!audit.holds() && audit.to_string().contains(expected), "{expected}: {audit}");
        }
    }
}
