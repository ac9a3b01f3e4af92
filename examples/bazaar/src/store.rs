//! The tables of the bazaar, and what both of its modules do with them.

use linkstead::{LinkRef, OnlineHandle, Result, Setup, Table, Tx};

use crate::codes::{self, NO_ACCOUNT};
use crate::messages::Balance;
use crate::records::{Account, Bag, Offer, Shelf, Visits};

/// All tables, and who is here. Each provider opens them once; its modules have a clone.
#[derive(Clone)]
pub struct Store {
    pub accounts: Table<String, Account>,
    pub bags: Table<String, Bag>,
    pub offers: Table<(String, u64), Offer>,
    pub shelves: Table<String, Shelf>,
    pub visits: Table<String, Visits>,
    online: OnlineHandle,
}

impl Store {
    /// Errors: the storage can't be opened.
    pub fn open(setup: &Setup) -> Result<Self> {
        Ok(Self {
            accounts: setup.table()?,
            bags: setup.table()?,
            offers: setup.table()?,
            shelves: setup.table()?,
            visits: setup.table()?,
            online: setup.online(),
        })
    }

    /// An account that has been opened, to be changed.
    pub fn account<'t>(&self, tx: &'t mut Tx, name: &String) -> Result<&'t mut Account> {
        self.accounts.get_mut(tx, name)?.ok_or_else(|| codes::refuse(NO_ACCOUNT))
    }

    /// Its bag, to be changed.
    pub fn bag<'t>(&self, tx: &'t mut Tx, name: &String) -> Result<&'t mut Bag> {
        self.bags.get_mut(tx, name)?.ok_or_else(|| codes::refuse(NO_ACCOUNT))
    }

    /// What an account has, as this transaction leaves it.
    pub fn balance(&self, tx: &mut Tx, name: &String) -> Result<Balance> {
        let none = || codes::refuse(NO_ACCOUNT);
        let account = self.accounts.get(tx, name)?.ok_or_else(none)?;
        let bag = self.bags.get(tx, name)?.ok_or_else(none)?;
        Ok(Balance { coins: account.coins, items: bag.items.clone(), offers: account.offers.clone() })
    }

    /// Where an account's session is, if it is at this provider. Players of other providers are told nothing: they see it
    /// when they look.
    pub fn session(&self, name: &str) -> Option<LinkRef> {
        let account = linkstead::Account::new(name).ok()?;
        self.online.account(&account)
    }
}

/// Who asks.
pub fn who(tx: &Tx) -> String {
    tx.account().as_str().to_owned()
}
