//! The threads of a provider: those that read from linkds and run what ends at once, and the one that looks after them.

use std::io;
use std::sync::Arc;

use net::NetIo;
use net::dial::Backoff;
use net::inbox::SharedScratch;
use node::Home;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::dial::{self, Target};
use crate::hub::Hub;
use crate::linkds::Key;
use crate::table::Table;

/// Targets on their way to a worker. When it is full, the control thread waits: dialling is nobody's hot path.
const ADOPTIONS_MAX: usize = 256;

/// Where handlers go that don't end at once, and how it ends.
pub(crate) struct Pool {
    pub handle: Handle,
    own: Option<Runtime>,
}

impl Pool {
    /// `workers` threads, or the caller's runtime.
    pub fn new(home: Home, workers: usize) -> io::Result<Self> {
        if home == Home::Here {
            return Ok(Self { handle: Handle::current(), own: None });
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers)
            .thread_name("linkstead-pool")
            .enable_all()
            .build()?;
        Ok(Self { handle: runtime.handle().clone(), own: Some(runtime) })
    }

    /// A runtime can't be dropped where others run, so it is let go.
    pub fn end(self) {
        if let Some(runtime) = self.own {
            runtime.shutdown_background();
        }
    }
}

/// What an I/O worker works with.
#[derive(Clone)]
pub(crate) struct Io<N> {
    pub net: N,
    pub hub: Arc<Hub>,
    pub table: Arc<Table>,
    pub backoff: Backoff,
    /// Told of each target whose last connection is over.
    pub ended: mpsc::Sender<Key>,
}

/// An I/O worker: give it targets; it ends when the sender is gone and all its connections are over.
pub(crate) fn io_worker<N: NetIo>(home: Home, index: usize, io: Io<N>) -> io::Result<mpsc::Sender<Target>> {
    let (sender, targets) = mpsc::channel(ADOPTIONS_MAX);
    home.run(&format!("linkstead-io-{index}"), move || work(targets, io), |()| {})?;
    Ok(sender)
}

async fn work<N: NetIo>(mut targets: mpsc::Receiver<Target>, Io { net, hub, table, backoff, ended }: Io<N>) {
    let scratch = SharedScratch::default();
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(target) = targets.recv() => {
                let (hub, table, scratch) = (hub.clone(), table.clone(), scratch.clone());
                let (net, backoff, ended) = (net.clone(), backoff.clone(), ended.clone());
                tasks.spawn_local(async move {
                    let key = target.key.clone();
                    dial::keep(net, target, hub, table, scratch, backoff).await;
                    // The control thread is gone only when everything ends.
                    let _ = ended.send(key).await;
                });
            }
            Some(joined) = tasks.join_next() => {
                if let Err(error) = joined {
                    tracing::error!(%error, "a connection's task panicked");
                }
            }
            else => return,
        }
    }
}
