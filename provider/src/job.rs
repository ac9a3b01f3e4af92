//! One request on its way through: the work that runs it, and what remains to be said if that work breaks.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use wire::code;

use crate::answer::Answer;
use crate::error::{Error, Result};
use crate::session::Session;

/// Runs one request to its answer.
pub(crate) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The payload of the session core.
pub(crate) struct Job {
    pub work: Work,
    pub session: Arc<Session>,
    pub answer: Answer,
}

/// A panic, as far as it says something.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// A handler's result, a panic in it being one more kind of error. The process and the session live on.
pub(crate) async fn contain<T>(handler: impl Future<Output = Result<T>>) -> Result<T> {
    let mut handler = pin!(handler);
    std::future::poll_fn(move |cx| match catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(cx))) {
        Ok(poll) => poll,
        Err(panic) => {
            let text = format!("the handler panicked: {}", panic_text(&*panic));
            Poll::Ready(Err(Error::framework(&code::EXCEPTION, text)))
        }
    })
    .await
}

/// Polls once. A panic outside a handler ends the work like any other end; the text says what it was.
pub(crate) fn poll(work: &mut Work, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
    match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panic_text(&*panic).to_owned())),
    }
}

/// Runs to the end, on the pool.
pub(crate) async fn run(mut work: Work) -> Result<(), String> {
    std::future::poll_fn(move |cx| poll(&mut work, cx)).await
}
