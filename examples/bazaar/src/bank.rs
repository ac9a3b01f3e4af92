//! Module `Bank`: accounts and their coins.

use linkstead::{Result, Role, Tx, module};

use crate::codes::{self, SAME_ACCOUNT};
use crate::messages::{Balance, Enter, Entered, Look, Open, Opened, Received, Transfer};
use crate::records::{Account, Bag};
use crate::rules;
use crate::store::{Store, who};

pub struct Bank(pub(crate) Store);

#[module(id = 11, choice = "hash_account", pushes(Received))]
impl Bank {
    /// Comes in. What it counts is written with others' commits, and nobody waits for the disk.
    #[handler(level = "critical")]
    async fn enter(&self, tx: &mut Tx, _request: Enter) -> Result<Entered> {
        let account = who(tx);
        // One role, numbered by the name so that every session of the account plays the same.
        tx.set_role(Some(Role(base::hash::bytes(account.as_bytes()))));
        let visits = self.0.visits.get_or_default(tx, &account)?;
        visits.count += 1;
        Ok(Entered { visits: visits.count, account })
    }

    /// Opens the account unless it is open. That it is there is what makes this happen once: no request id is needed.
    #[handler]
    async fn open(&self, tx: &mut Tx, _request: Open) -> Result<Opened> {
        let name = who(tx);
        let fresh = !self.0.accounts.contains(tx, &name)?;
        if fresh {
            self.0.accounts.put(tx, &name, Account::fresh())?;
            self.0.bags.put(tx, &name, Bag::fresh())?;
        }
        let first_request = self.0.account(tx, &name)?.begin();
        let balance = Some(self.0.balance(tx, &name)?);
        Ok(Opened { fresh, first_request, balance })
    }

    #[handler]
    async fn balance(&self, tx: &mut Tx, _request: Look) -> Result<Balance> {
        let name = who(tx);
        self.0.balance(tx, &name)
    }

    #[handler(once = 1)]
    async fn transfer(&self, tx: &mut Tx, request: Transfer) -> Result<Balance> {
        let (from, to) = (who(tx), request.to);
        let coins = rules::amount(request.coins).map_err(codes::refuse)?;
        if from == to {
            return Err(codes::refuse(SAME_ACCOUNT));
        }
        self.0.accounts.want_mut(tx, &[from.clone(), to.clone()])?;
        self.0.account(tx, &from)?.pay(coins).map_err(codes::refuse)?;
        self.0.account(tx, &to)?.earn(coins);
        if let Some(link) = self.0.session(&to) {
            tx.push_to(&link, &Received { from: from.clone(), coins });
        }
        self.0.balance(tx, &from)
    }
}
