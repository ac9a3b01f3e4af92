//! A provider against a scripted linkd, over real sockets on loopback.

mod auth;
mod game;
mod linkd;
mod links;
mod requests;
mod starting;
mod stopping;
mod transactions;
mod ui;
