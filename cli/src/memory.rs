//! What the allocator is told.

use libmimalloc_sys::{mi_option_set, mi_option_t};

/// `mi_option_purge_delay`, which the crate does not name. `bench connections` shows whether it still means that.
const PURGE_DELAY: mi_option_t = 15;
/// A tenth of the wait, in milliseconds, until free memory goes back to the system. The allocator's own is ten seconds,
/// and it looks only when it is used: after players have left, nothing would come back.
const PURGE_DELAY_MS: std::ffi::c_long = 10;

/// Free memory goes back to the system within a tenth of a second.
#[expect(unsafe_code, reason = "the allocator has no safe way to set an option")]
pub fn give_back_soon() {
    // SAFETY: `mi_option_set` takes two numbers, ignores an option out of range, and stores the value in a table of its
    // own; no pointer is involved, and no other thread runs yet.
    unsafe { mi_option_set(PURGE_DELAY, PURGE_DELAY_MS) }
}
