//! A game of records: accounts with coins, bags with items, and a market. Players of one trade are usually at different
//! providers, which hold the same tables.
//!
//! | file | is |
//! |---|---|
//! | [`messages`] | what clients and modules say to each other |
//! | [`codes`] | the bazaar's own refusals |
//! | [`records`] | what it keeps |
//! | [`rules`] | what may be done with it: pure, tested without a network |
//! | [`store`] | its tables |
//! | [`bank`] | module `Bank`: enter, open, balance, transfer |
//! | [`market`] | module `Market`: offer, take, withdraw, list |
//! | [`audit`] | whether coins and items are all there |
//! | [`ledger`] | what bots know of each other's deals |
//! | [`regular`] | the bots that load it |

pub mod audit;
pub mod bank;
pub mod codes;
pub mod ledger;
pub mod market;
pub mod messages;
pub mod records;
pub mod regular;
pub mod rules;
pub mod store;

pub use bank::Bank;
pub use market::Market;
pub use regular::bots;
pub use store::Store;

/// The provider that serves the bazaar, ready to run. Providers that share a storage need an arbiter that they share, too:
/// `records.arbiter = "directory"`.
pub fn provider() -> linkstead::Builder {
    // The modules are made one after another on one thread, and have one store.
    let made = std::sync::Arc::new(std::sync::OnceLock::<Store>::new());
    let again = made.clone();
    linkstead::provider("bazaar")
        .descriptors(messages::DESCRIPTORS)
        .module(move |setup| {
            let store = Store::open(setup)?;
            Ok(Bank(made.get_or_init(|| store).clone()))
        })
        .module(move |setup| match again.get() {
            Some(store) => Ok(Market(store.clone())),
            None => Ok(Market(Store::open(setup)?)),
        })
}
