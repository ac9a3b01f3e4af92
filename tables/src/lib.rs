//! Records: what a game keeps, and where it is kept.

pub mod backend;

pub use backend::{Backend, BackendError, Local};
