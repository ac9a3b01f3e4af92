//! The only crate that opens sockets. Everything above it takes a stream generically, so that a simulated network
//! can stand in for TCP.
//!
//! | module | is |
//! |---|---|
//! | [`io`] | the seam: bind, accept, connect |
//! | [`outbox`] | the sending half: gathers frames, bounded by bytes |
//! | [`inbox`] | the receiving half: a buffer that frames are read from in place |
//! | [`hello`] | who is at the other end: [`Peer`] |
//! | [`calls`] | calls in flight, their deadlines and cancellation |
//! | [`link`] | a node connection: hello, inbox, outbox, calls and pings in one |
//! | [`dial`] | keeps a connection to an address: jittered back-off |
//! | [`proxy`] | the PROXY protocol: whose connection a balancer passes on |
//! | [`ws`] | WebSocket as a byte stream |

pub mod calls;
pub mod dial;
pub mod hello;
pub mod inbox;
pub mod io;
pub mod link;
pub mod outbox;
pub mod proxy;
pub mod ws;

pub use hello::Peer;
pub use io::{NetIo, Tcp};
pub use outbox::Outbox;
