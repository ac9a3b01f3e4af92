//! A worker over real sockets: what strangers send, what slow readers get, what a provider sees.

mod bad_input;
mod flow;
mod world;
