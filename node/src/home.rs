//! Where the parts of a service run: on threads of their own, or all in the caller's, as a simulated network needs it.

use std::future::Future;
use std::io;

use tokio::runtime::Builder;
use tokio::task::LocalSet;

/// Where a service's tasks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// On threads and runtimes of their own.
    Threads,
    /// In the caller's `LocalSet` and current-thread runtime, so that a run under simulated time and a simulated network
    /// is the same each time: no thread is started.
    Here,
}

impl Home {
    /// Runs `work` to its end, in a `LocalSet`; then `after`, outside of the runtime that ran it if that was its own. A
    /// panic of `work` drops `after`. `name` is the thread's. Errors: the system gives no thread.
    pub fn run<F: Future<Output = T> + 'static, T: 'static>(
        self,
        name: &str,
        work: impl FnOnce() -> F + Send + 'static,
        after: impl FnOnce(T) + Send + 'static,
    ) -> io::Result<()> {
        if self == Home::Here {
            tokio::task::spawn_local(async move { after(work().await) });
            return Ok(());
        }
        let runtime = Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let done = LocalSet::new().block_on(&runtime, async move { work().await });
            drop(runtime);
            after(done);
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    /// What `run` was given to do ends in the thread that it says, and `after` hears the result.
    #[tokio::test]
    async fn work_runs_here_or_on_a_thread_of_its_own() {
        let here = || std::thread::current().name().map(str::to_owned);
        let tasks = LocalSet::new();
        let ran = |home: Home| async move {
            let (done, wait) = oneshot::channel();
            let work = move || async move { tokio::task::spawn_local(async move { here() }).await.unwrap() };
            home.run("elsewhere", work, |name| done.send(name).unwrap()).unwrap();
            wait.await.unwrap()
        };
        let names = tasks.run_until(async { (ran(Home::Here).await, ran(Home::Threads).await) }).await;
        assert_eq!(names, (here(), Some("elsewhere".to_owned())));
    }
}
