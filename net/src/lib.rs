//! The only crate that opens sockets. Everything above it takes a stream generically, so that a simulated network
//! can stand in for TCP.
//!
//! | module | is |
//! |---|---|
//! | [`io`] | the seam: bind, accept, connect |
//! | [`outbox`] | the sending half: gathers frames, bounded by bytes |
//! | [`inbox`] | the receiving half: a buffer that frames are read from in place |
//! | [`tls`] | a stream, plain or inside TLS, and what certificates prove |
//! | [`preface`] | which worker a provider wants, before anything else |
//! | [`strangers`] | how many may be here who have not said who they are |
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
pub mod preface;
pub mod proxy;
pub mod strangers;
pub mod tls;
pub mod ws;

pub use hello::Peer;
pub use io::{NetIo, Tcp};
pub use outbox::Outbox;
pub use tls::{Secured, Security, ServerTls};
