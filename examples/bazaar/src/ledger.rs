//! What bots know of each other's deals, so that each can check what it is told although others change what it has.
//! Pure. What somebody is about to do is promised before it is sent, and sure once it is answered: what a bot sees contains
//! everything that was sure before it asked, and nothing that is not promised by the time it is answered.

use std::collections::{BTreeMap, BTreeSet};

/// An offer: its seller, and the number that it has among his.
pub type Id = (String, u64);

/// All deals of a run.
#[derive(Debug, Default)]
pub struct Ledger {
    earned: BTreeMap<String, Earned>,
    /// By offer: who tries to take it, and whether somebody has.
    sales: BTreeMap<Id, Sale>,
}

/// Coins that others have given to an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Earned {
    pub sure: u64,
    /// At least what is sure.
    pub promised: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sale {
    trying: u32,
    done: bool,
}

/// What came of a deal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    Done,
    /// It was refused: nothing has happened.
    Nothing,
}

impl Ledger {
    pub fn earned(&self, account: &str) -> Earned {
        self.earned.get(account).copied().unwrap_or_default()
    }

    /// Coins that are about to go to an account.
    pub fn promise(&mut self, to: &str, coins: u64) {
        self.earned.entry(to.to_owned()).or_default().promised += coins;
    }

    pub fn settle(&mut self, to: &str, coins: u64, came: Came) {
        let earned = self.earned.entry(to.to_owned()).or_default();
        match came {
            Came::Done => earned.sure += coins,
            Came::Nothing => earned.promised -= coins,
        }
    }

    /// An offer that somebody is about to take.
    pub fn try_sale(&mut self, id: &Id) {
        self.sales.entry(id.clone()).or_default().trying += 1;
    }

    /// False: it was sold before.
    pub fn settle_sale(&mut self, id: &Id, came: Came) -> bool {
        let sale = self.sales.entry(id.clone()).or_default();
        sale.trying -= 1;
        let again = came == Came::Done && sale.done;
        sale.done |= came == Came::Done;
        !again
    }

    /// Whether an offer may be sold by now.
    pub fn may_be_sold(&self, id: &Id) -> bool {
        self.sales.get(id).is_some_and(|sale| sale.done || sale.trying > 0)
    }

    pub fn is_sold(&self, id: &Id) -> bool {
        self.sales.get(id).is_some_and(|sale| sale.done)
    }
}

/// What a bot has by its own deals alone, as far as it can know: its coins lie between two bounds, since it can't tell
/// which of the others' deals it has seen.
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// Without what others gave; they may be less than nothing.
    least: i64,
    most: i64,
    pub items: BTreeMap<String, u64>,
    /// Its open offers by their numbers: of what, and how many.
    pub offers: BTreeMap<u64, (String, u64)>,
}

impl Own {
    /// As the first answer says. `before`, `after`: what was earned by then.
    pub fn new(coins: u64, before: Earned, after: Earned) -> Self {
        Self {
            least: signed(coins) - signed(after.promised),
            most: signed(coins) - signed(before.sure),
            ..Self::default()
        }
    }

    pub fn spend(&mut self, coins: u64) {
        self.least -= signed(coins);
        self.most -= signed(coins);
    }

    /// Whether this can be, and what is known by it. `before`: what was earned when it was asked, `after`: when it was
    /// answered.
    pub fn see(&mut self, coins: u64, before: Earned, after: Earned) -> bool {
        let seen = Self::new(coins, before, after);
        self.least = self.least.max(seen.least);
        self.most = self.most.min(seen.most);
        self.least <= self.most
    }

    pub fn give(&mut self, kind: &str, count: u64) {
        if let Some(has) = self.items.get_mut(kind) {
            *has = has.saturating_sub(count);
            if *has == 0 {
                self.items.remove(kind);
            }
        }
    }

    pub fn get(&mut self, kind: &str, count: u64) {
        *self.items.entry(kind.to_owned()).or_default() += count;
    }

    /// Whether these can be its open offers; those that are sold are forgotten. `sold`: the ones that were surely sold
    /// before it asked.
    pub fn see_offers(&mut self, me: &str, open: &[u64], sold: &BTreeSet<u64>, ledger: &Ledger) -> bool {
        let known = open.iter().all(|id| self.offers.contains_key(id) && !sold.contains(id));
        let gone = self.offers.keys().filter(|id| !open.contains(id)).copied().collect::<Vec<_>>();
        let explained = gone.iter().all(|id| ledger.may_be_sold(&(me.to_owned(), *id)));
        self.offers.retain(|id, _| open.contains(id));
        known && explained
    }
}

fn signed(coins: u64) -> i64 {
    i64::try_from(coins).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Earned = Earned { sure: 0, promised: 0 };

    #[test]
    fn what_is_on_its_way_may_be_there_or_not_and_nothing_else() {
        let mut ledger = Ledger::default();
        let mut own = Own::new(100, NOTHING, NOTHING);
        let before = ledger.earned("ann");
        ledger.promise("ann", 7);
        let after = ledger.earned("ann");
        for (coins, can_be) in [(99, false), (100, true), (104, true), (107, true), (108, false)] {
            assert_eq!(own.clone().see(coins, before, after), can_be, "{coins}");
        }
        ledger.settle("ann", 7, Came::Done);
        let sure = ledger.earned("ann");
        assert!(!own.clone().see(100, sure, sure), "what is sure must be there");
        assert!(own.see(107, sure, sure));
        own.spend(50);
        assert!(!own.clone().see(58, sure, sure) && own.see(57, sure, sure));
    }

    #[test]
    fn what_was_refused_is_promised_no_more() {
        let mut ledger = Ledger::default();
        ledger.promise("ann", 7);
        ledger.settle("ann", 7, Came::Nothing);
        assert_eq!(ledger.earned("ann"), NOTHING);
    }

    #[test]
    fn an_offer_is_sold_once() {
        let mut ledger = Ledger::default();
        let [one, two] = [1, 2].map(|number| ("ann".to_owned(), number));
        ledger.try_sale(&one);
        ledger.try_sale(&one);
        assert!(ledger.settle_sale(&one, Came::Done) && ledger.may_be_sold(&one));
        assert!(!ledger.settle_sale(&one, Came::Done));
        ledger.try_sale(&two);
        assert!(ledger.may_be_sold(&two) && ledger.settle_sale(&two, Came::Nothing));
        assert!(!ledger.may_be_sold(&two) && !ledger.is_sold(&two) && ledger.is_sold(&one));
    }

    #[test]
    fn an_open_offer_is_gone_only_when_somebody_may_have_taken_it() {
        let (mut ledger, mut own) = (Ledger::default(), Own::default());
        own.offers = [(1, ("rug".to_owned(), 1)), (2, ("rug".to_owned(), 1))].into();
        let none = BTreeSet::new();
        assert!(own.clone().see_offers("ann", &[1, 2], &none, &ledger));
        assert!(!own.clone().see_offers("ann", &[2], &none, &ledger), "nobody took it");
        assert!(!own.clone().see_offers("ann", &[1, 2, 3], &none, &ledger), "nobody made it");
        ledger.try_sale(&("ann".to_owned(), 1));
        assert!(!own.clone().see_offers("bob", &[2], &none, &ledger), "another's was taken");
        assert!(!own.clone().see_offers("ann", &[1, 2], &[1].into(), &ledger), "it was sold");
        assert!(own.see_offers("ann", &[2], &none, &ledger) && own.offers.len() == 1);
    }
}
