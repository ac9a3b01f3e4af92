//! One request on its way through: the work that runs it, and what remains to be said if that work breaks.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use base::fault::panic_text;

use crate::answer::Answer;

/// Runs one request to its answer. It alone keeps its session: what else a request needs goes by the session's sid.
pub(crate) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The payload of the session core.
pub(crate) struct Job {
    pub work: Work,
    pub answer: Answer,
}

/// Polls once. A panic ends the work; the text says what it was. The process and the session live on.
pub(crate) fn poll(work: &mut Work, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
    match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panic_text(&*panic).unwrap_or("no message").to_owned())),
    }
}

/// Runs to the end, on the pool.
pub(crate) async fn run(mut work: Work) -> Result<(), String> {
    std::future::poll_fn(move |cx| poll(&mut work, cx)).await
}
