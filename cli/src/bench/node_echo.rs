//! The bare echo that the arbiter is compared with: our transport between nodes, a frame of one ask's size in, a frame of
//! one grant's size out, and nothing else. And the load on it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use base::{Epoch, Generation, NodeId, RequestId};
use net::hello::Role;
use net::inbox::SCRATCH_BYTES;
use net::link::{self, Closed, Handler, Link};
use net::{Peer, Tcp};
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use wire::cache::{self, Ask, Grant, mode};
use wire::code;
use wire::node::{Frame, Meta};

use super::load::Measured;
use super::tally::{Pace, Tally};

/// As the arbiter reads.
const SERVER_SCRATCH_BYTES: usize = 64 * 1024;
/// A load that takes so much longer than it is to run has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// One run of the load.
#[derive(Debug, Clone, clap::Args)]
pub struct Plan {
    #[arg(long)]
    pub addr: String,
    #[command(flatten)]
    pub pace: Pace,
    /// Ask again only when everything is answered.
    #[arg(long)]
    pub together: bool,
}

fn link(stream: TcpStream, node: &str, role: Role) -> Result<(Link, tokio::io::ReadHalf<TcpStream>)> {
    stream.set_nodelay(true)?;
    let (read, write) = tokio::io::split(stream);
    let peer = Peer { node: NodeId::new(node)?, role, epoch: Epoch(1), features: 0, worker: 0 };
    Ok((Link::new(peer, Generation(1), write), read))
}

/// Serves until the process ends. Prints the address it listens on.
pub async fn serve(listen: SocketAddr) -> Result<()> {
    let listener = Tcp::listen(listen)?;
    super::process::say_ready(&listener.local_addr()?.to_string());
    let accepting = async {
        loop {
            let (stream, _) = listener.accept().await?;
            let (link, mut read) = link(stream, "load-1", Role::Provider)?;
            tokio::task::spawn_local(async move {
                let mut scratch = vec![0; SERVER_SCRATCH_BYTES];
                link::serve(&link, &mut read, &mut scratch, &mut Echo { link: link.clone() }).await;
            });
        }
    };
    LocalSet::new().run_until(accepting).await
}

struct Echo {
    link: Link,
}

fn bad(error: impl std::fmt::Display) -> Closed {
    Closed::Refused { code: &code::BAD_MESSAGE, text: error.to_string() }
}

impl Handler for Echo {
    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Closed> {
        let request = frame.body.first_chunk().copied().map(u64::from_le_bytes);
        let request = request.ok_or_else(|| bad("a short ask"))?;
        let grant = Grant { request, mode: mode::MODIFY, must_reload: 0, seq: 0, version_min: 0 };
        self.link.push(&Meta::notice(cache::GRANT), &grant.encode(), &[]).map_err(bad)
    }

    fn batch_end(&mut self) {
        self.link.outbox.flush();
    }
}

/// Runs the plan on this thread's runtime.
pub async fn run(plan: &Plan) -> Result<Measured> {
    let (link, mut read) = link(Tcp::dial(&plan.addr).await?, "echo-1", Role::Arbiter)?;
    let now = Instant::now();
    let mut load = Load {
        link: link.clone(),
        plan: plan.clone(),
        tally: Tally::new(&plan.pace)?,
        sent: vec![now; plan.pace.window],
        due: plan.pace.window,
        body: Vec::new(),
    };
    (0..load.window()).try_for_each(|request| load.ask(request, now)).map_err(|error| anyhow!("{error}"))?;
    link.outbox.flush();
    let mut scratch = vec![0; SCRATCH_BYTES];
    let longest = Duration::from_millis(plan.pace.warm_ms + plan.pace.measure_ms) + PATIENCE;
    let serving = link::serve(&link, &mut read, &mut scratch, &mut load);
    let closed = tokio::time::timeout(longest, serving).await.map_err(|_| anyhow!("the echo is silent"))?;
    if !load.tally.is_over(Instant::now()) {
        return Err(anyhow!("the echo has ended: {closed}"));
    }
    Ok(load.tally.measured())
}

struct Load {
    link: Link,
    plan: Plan,
    tally: Tally,
    sent: Vec<Instant>,
    due: usize,
    body: Vec<u8>,
}

impl Load {
    fn window(&self) -> u64 {
        self.plan.pace.window as u64
    }

    fn ask(&mut self, request: u64, now: Instant) -> Result<(), Closed> {
        let slot = (request % self.window()) as usize;
        self.sent[slot] = now;
        self.body.clear();
        let ask = Ask { request: RequestId(request), want: mode::MODIFY, have: 0, key: &[7; 12] };
        ask.encode(&mut self.body);
        self.link.push(&Meta::notice(cache::ACQUIRE), &[], &self.body).map_err(bad)
    }
}

impl Handler for Load {
    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Closed> {
        let now = Instant::now();
        let request = Grant::decode(frame.head).map_err(bad)?.request;
        self.tally.note(self.sent[(request % self.window()) as usize], now);
        if self.tally.is_over(now) {
            return Err(Closed::ByPeer);
        }
        let next = request + self.window();
        if !self.plan.together {
            return self.ask(next, now);
        }
        self.due -= 1;
        if self.due > 0 {
            return Ok(());
        }
        self.due = self.plan.pace.window;
        let first = next - next % self.window();
        (first..first + self.window()).try_for_each(|request| self.ask(request, now))
    }

    fn batch_end(&mut self) {
        self.link.outbox.flush();
    }
}
