//! From commit to storage: one ordered pipeline, each step of it under the provider's fence.
//!
//! | module | is |
//! |---|---|
//! | [`open`] | the cut that commits join |
//! | [`pipeline`] | cuts become batches, one after another, and durable |

pub mod open;
pub mod pipeline;
