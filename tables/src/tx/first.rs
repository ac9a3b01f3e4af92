//! The first run of a transaction, at once: what nearly every one comes to.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Committed, Finish, Home, Options, Tx};
use crate::cache::Cache;
use crate::error::Error;

/// Nothing comes of the run.
pub(super) fn abort(cache: &Cache, tx: &mut Tx) {
    cache.calls.push(tx.calls.aborted());
    cache.calls.run();
}

/// What a first run came to.
pub enum First<T, E> {
    /// It is over.
    Over(Result<T, E>),
    /// It is committed, and its answer waits.
    Waits(Committed, Result<T, E>),
    /// It was as if it had not run.
    Again,
}

/// Runs `code` once, at once: what nearly every transaction comes to.
pub fn first<T, E: From<Error>>(
    home: Home,
    options: Options,
    code: &mut impl FnMut(&mut Tx) -> Result<T, E>,
) -> First<T, E> {
    if !home.may_begin_now() {
        return First::Again;
    }
    let mut tx = Tx::new(home, options.level);
    tx.require(options.durability);
    let Ok(result) = catch_unwind(AssertUnwindSafe(|| code(&mut tx))) else { return First::Again };
    match tx.finish(result.is_ok()) {
        Finish::Committed(committed) => {
            tx.cache.calls.run();
            if committed.waits { First::Waits(committed, result) } else { First::Over(result) }
        }
        Finish::Aborted => {
            let cache = tx.cache.clone();
            abort(&cache, &mut tx);
            First::Over(result)
        }
        _ => First::Again,
    }
}
