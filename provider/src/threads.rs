//! The threads of a provider: those that read from linkds and run what ends at once, and the one that looks after them.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use net::dial::Backoff;
use net::inbox::SharedScratch;
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, LocalSet};

use crate::dial::{self, Target};
use crate::hub::Hub;
use crate::linkds::Key;
use crate::table::Table;

/// Targets on their way to a worker. When it is full, the control thread waits: dialling is nobody's hot path.
const ADOPTIONS_MAX: usize = 256;

/// Runs `work` to its end on a thread and a runtime of its own; then `after`, outside of any runtime.
pub(crate) fn own<F: Future<Output = T>, T>(
    name: &str,
    work: impl FnOnce() -> F + Send + 'static,
    after: impl FnOnce(T) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let done = LocalSet::new().block_on(&runtime, async move { work().await });
        drop(runtime);
        after(done);
    })
}

/// An I/O worker: give it targets; it ends when the sender is gone and all its connections are over.
pub(crate) fn io_worker(
    index: usize,
    hub: Arc<Hub>,
    table: Arc<Table>,
    backoff: Backoff,
    ended: mpsc::Sender<Key>,
) -> io::Result<mpsc::Sender<Target>> {
    let (sender, targets) = mpsc::channel(ADOPTIONS_MAX);
    let name = format!("linkstead-io-{index}");
    own(&name, move || io(targets, hub, table, backoff, ended), |()| {})?;
    Ok(sender)
}

async fn io(
    mut targets: mpsc::Receiver<Target>,
    hub: Arc<Hub>,
    table: Arc<Table>,
    backoff: Backoff,
    ended: mpsc::Sender<Key>,
) {
    let scratch = SharedScratch::default();
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            Some(target) = targets.recv() => {
                let (hub, table, scratch) = (hub.clone(), table.clone(), scratch.clone());
                let (backoff, ended) = (backoff.clone(), ended.clone());
                tasks.spawn_local(async move {
                    let key = target.key.clone();
                    dial::keep(target, hub, table, scratch, backoff).await;
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
