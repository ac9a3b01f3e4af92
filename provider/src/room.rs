//! Back-pressure toward a linkd that reads slowly: replies wait for room, and while much waits nothing more is read
//! from it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use net::Outbox;
use net::outbox::NotQueued;
use tokio::io::{AsyncRead, ReadBuf};

use crate::hub::Hub;

/// While this much waits to be sent, nothing is read. The other half of the outbox takes what the requests already here
/// still send.
pub const PAUSE_BYTES: usize = net::link::OUTBOX_BYTES_MAX / 2;
/// Reading and waiting replies go on when less than this waits.
const RESUME_BYTES: usize = PAUSE_BYTES / 2;

/// Tries `push` until it is queued or the connection closes.
pub(crate) async fn retry(
    outbox: &Outbox,
    mut push: impl FnMut() -> Result<(), NotQueued>,
) -> Result<(), NotQueued> {
    loop {
        match push() {
            Err(NotQueued::Full { .. }) if !base::planted::is("full_outbox_loses_replies") => {
                outbox.wake();
                outbox.below(RESUME_BYTES).await;
            }
            done => return done,
        }
    }
}

/// The reading half of a connection, which pauses while its sending half is crowded. A linkd that keeps it paused for
/// longer than a peer may be silent is given up.
pub(crate) struct Gate<R> {
    read: R,
    outbox: Outbox,
    hub: Arc<Hub>,
    pause: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<R> Gate<R> {
    pub fn new(read: R, outbox: Outbox, hub: Arc<Hub>) -> Self {
        Self { read, outbox, hub, pause: None }
    }

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.pause.is_none() {
            if self.outbox.queued() < PAUSE_BYTES {
                return Poll::Ready(());
            }
            self.hub.meters.pauses.add(1);
            let outbox = self.outbox.clone();
            self.pause = Some(Box::pin(async move { outbox.below(RESUME_BYTES).await }));
            self.outbox.wake();
        }
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
        }
        self.pause = None;
        Poll::Ready(())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Gate<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_room(cx));
        Pin::new(&mut this.read).poll_read(cx, buf)
    }
}
