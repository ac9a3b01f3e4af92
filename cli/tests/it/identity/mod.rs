//! Who may come in where, and certificates that change under load.

mod matrix;
mod rotation;
mod strangers;
pub mod world;
