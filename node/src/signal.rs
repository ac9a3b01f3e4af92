//! SIGTERM and SIGINT: the first begins the graceful stop, the second skips its waits and still saves. SIGHUP: key files
//! are read anew.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::shutdown::Shutdown;

/// Takes both signals over from now on. Without it they kill the process at once.
pub fn take_over(shutdown: Shutdown) -> io::Result<JoinHandle<()>> {
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    Ok(tokio::spawn(async move {
        let closed = shutdown.closed();
        loop {
            let name = tokio::select! {
                biased;
                () = closed.cancelled() => return,
                _ = term.recv() => "SIGTERM",
                _ = int.recv() => "SIGINT",
            };
            received(&shutdown, name);
        }
    }))
}

/// When files that may change are looked at: every so often, and at each SIGHUP from now on. Every one hears all of them.
#[derive(Debug)]
pub struct Looks {
    hangups: Option<Signal>,
    tick: Interval,
}

impl Looks {
    /// The first look by time comes after `every`, which is not zero. Where SIGHUP can't be heard, time alone counts.
    pub fn new(every: Duration) -> Self {
        let hangups = match signal(SignalKind::hangup()) {
            Ok(hangups) => Some(hangups),
            Err(error) => {
                tracing::warn!(%error, "SIGHUP can't be heard; files are read again by time only");
                None
            }
        };
        let mut tick = tokio::time::interval_at(Instant::now() + every, every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { hangups, tick }
    }

    /// Waits for the next look. True: an operator asks for it. Cancel-safe.
    pub async fn next(&mut self) -> bool {
        tokio::select! {
            biased;
            Some(()) = async { self.hangups.as_mut()?.recv().await } => true,
            _ = self.tick.tick() => false,
        }
    }
}

fn received(shutdown: &Shutdown, name: &str) {
    if shutdown.statistics().ready {
        tracing::info!(signal = name, "stopping; a second signal skips the waits");
        shutdown.stop();
    } else {
        tracing::warn!(signal = name, "skipping the waits; what must be saved is saved");
        shutdown.hurry();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::lifecycle::{Budgets, State};
    use base::Span;

    /// Holds: G-08, G-09.
    #[tokio::test(start_paused = true)]
    async fn the_first_signal_waits_and_the_second_only_saves() {
        let budgets = Budgets { propagation: Span::secs(5), grace: Span::secs(30), ..Budgets::NONE };
        let shutdown = Shutdown::new(budgets, Clock::start()).unwrap();
        let saved = std::sync::atomic::AtomicU32::new(0);
        let save = || async {
            saved.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            Ok(())
        };
        received(&shutdown, "SIGTERM");
        assert_eq!(shutdown.statistics().state, State::Running);
        received(&shutdown, "SIGTERM");
        let before = tokio::time::Instant::now();
        shutdown.run(|| async {}, save).await.unwrap();
        assert!(before.elapsed() < std::time::Duration::from_secs(1));
        assert_eq!(saved.load(std::sync::atomic::Ordering::SeqCst), 1);
    }
}
