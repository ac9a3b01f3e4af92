//! The deployment of `examples/configs` as processes: in every order of starting, with kills under load, to the end.

mod arbiter;
mod bazaar;
mod configs;
mod found;
mod order;
mod players;
mod restarts;
mod stop;
mod world;
