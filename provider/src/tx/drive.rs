//! Runs a handler that is a transaction until it is done: what it says leaves after the commit, and after it is durable if
//! that was asked for; the reply is last.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use parking_lot::Mutex;
use tables::tx::{Attempt, End, Options};

use super::once::{self, Once};
use super::{Inner, Slot, Tx};
use crate::cx::Cx;
use crate::error::{Error, Result};

/// How a handler is run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    /// The request's field that says which request this is, if it is done once.
    pub once: u32,
    pub protocol: &'static str,
}

/// The end of a handler that is a transaction.
pub(crate) enum Ended<A> {
    /// It has run, here and now.
    Ran(Result<A>),
    /// It had run before, and this was its reply, as bytes.
    Before(Vec<u8>),
}

/// Runs `handler` on the request until it is done. `body`: the request, to be decoded for each run.
pub(crate) async fn drive<A, F>(
    cx: &Cx,
    way: Way,
    body: &[u8],
    mut handler: impl FnMut(Tx) -> Result<F, prost::DecodeError>,
) -> Ended<A>
where
    A: prost::Message,
    F: Future<Output = Result<A>>,
{
    let hub = &cx.session().conn.hub;
    let meters = &hub.meters;
    let Some(db) = hub.db.get() else {
        return Ended::Ran(Err(Error::from(tables::Error::Stopping)));
    };
    let once = match once::of(way, cx, body) {
        Ok(once) => once,
        Err(error) => return Ended::Ran(Err(error)),
    };
    let mut attempt = db.attempt(Options::default());
    loop {
        match run(cx, &mut attempt, once.as_ref(), &mut handler).await {
            Run::Again => meters.runs_again.add(1),
            Run::Over(ended) => {
                meters.commits.add(u64::from(matches!(ended, Ended::Ran(Ok(_)))));
                return ended;
            }
        }
    }
}

/// What a run came to.
enum Run<A> {
    Again,
    Over(Ended<A>),
}

async fn run<A, F>(
    cx: &Cx,
    attempt: &mut Attempt,
    once: Option<&Once>,
    handler: &mut impl FnMut(Tx) -> Result<F, prost::DecodeError>,
) -> Run<A>
where
    A: prost::Message,
    F: Future<Output = Result<A>>,
{
    let failed = |error: tables::Error| given_up(cx, error);
    let turn = match attempt.turn().await {
        Ok(turn) => turn,
        Err(error) => return failed(error),
    };
    let mut tx = attempt.begin();
    let before = match once.map(|once| once.look(&mut tx)) {
        Some(Ok(once::Seen::Before(reply))) => Some(Ok(reply)),
        Some(Err(error)) => Some(Err(error)),
        Some(Ok(once::Seen::New)) | None => None,
    };
    if let Some(before) = before {
        // Reading was all, and whether it is true is for the end to say.
        let ended = attempt.end(tx, before.is_ok()).await;
        return match (ended, before) {
            (None, _) => Run::Again,
            (Some(End::Failed(error)), _) => failed(error),
            (Some(End::Over(committed)), Ok(reply)) => match attempt.durable(committed).await {
                Ok(()) => Run::Over(Ended::Before(reply)),
                Err(error) => failed(error),
            },
            (Some(End::Over(_)), Err(error)) => Run::Over(Ended::Ran(Err(error))),
        };
    }
    let slot = Slot::default();
    let ran = match handler(Tx::new(tx, cx.clone(), slot.clone())) {
        Ok(running) => caught(running).await,
        // It was read before, from the same bytes.
        Err(error) => Ok(Err(Error::framework(&crate::code::DECODE_ERROR, error.to_string()))),
    };
    let Some(Inner { tx: Some(mut tx), effects }) = take(&slot) else {
        return Run::Over(Ended::Ran(Err(Error::from(tables::Error::Panicked("it has kept its Tx".into())))));
    };
    let mut succeeded = matches!(ran, Ok(Ok(_)));
    if let (Some(once), Ok(Ok(reply))) = (once, &ran)
        && once.record(&mut tx, reply).is_err()
    {
        succeeded = false;
    }
    let ended = attempt.end(tx, succeeded).await;
    drop(turn);
    match (ended, ran) {
        (None, _) => Run::Again,
        (Some(End::Failed(error)), _) => failed(error),
        // What it had read was true: the panic is its own.
        (Some(End::Over(_)), Err(panic)) => resume_unwind(panic),
        (Some(End::Over(_)), Ok(Err(error))) => Run::Over(Ended::Ran(Err(error))),
        (Some(End::Over(committed)), Ok(Ok(reply))) => match attempt.durable(committed).await {
            Ok(()) => {
                effects.leave(cx);
                Run::Over(Ended::Ran(Ok(reply)))
            }
            Err(error) => failed(error),
        },
    }
}

/// It can't be committed, and who watches the metrics sees for which reasons that is.
fn given_up<A>(cx: &Cx, error: tables::Error) -> Run<A> {
    let meters = &cx.session().conn.hub.meters;
    match error {
        tables::Error::Conflict { .. } => meters.conflicts.add(1),
        tables::Error::Timeout(_) => meters.timeouts.add(1),
        _ => {}
    }
    Run::Over(Ended::Ran(Err(error.into())))
}

fn take(slot: &Arc<Mutex<Option<Inner>>>) -> Option<Inner> {
    slot.lock().take()
}

type Panic = Box<dyn std::any::Any + Send>;

/// A panic as a value. Everything of the run is dropped by then.
async fn caught<F: Future>(future: F) -> Result<F::Output, Panic> {
    let mut future = Some(Box::pin(future));
    std::future::poll_fn(move |cx| {
        let Some(running) = future.as_mut() else { return Poll::Pending };
        let running: Pin<&mut F> = running.as_mut();
        let polled = catch_unwind(AssertUnwindSafe(|| running.poll(cx)));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => {
                future = None;
                Poll::Ready(Ok(output))
            }
            Err(panic) => {
                future = None;
                Poll::Ready(Err(panic))
            }
        }
    })
    .await
}
