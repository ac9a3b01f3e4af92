//! What a mailbox is made of.

pub use std::sync::Arc;
pub use std::sync::atomic::{AtomicBool, Ordering, fence};

pub use crossbeam::queue::ArrayQueue as Queue;
pub use tokio::sync::Notify as Bell;
