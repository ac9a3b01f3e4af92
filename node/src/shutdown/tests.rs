//! The shell under a paused clock and under real threads.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use base::Span;

use super::*;
use crate::lifecycle::State;

fn budgets() -> Budgets {
    let (drain, close) = (Span::secs(10), Span::secs(2));
    Budgets { propagation: Span::secs(5), close, drain, save: Span::secs(5), grace: Span::secs(30) }
}

/// Holds: G-03, G-13, G-14, G-16.
#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_requests_and_saves_once_however_often_it_is_asked_for() {
    let shutdown = Shutdown::new(budgets(), Clock::start()).unwrap();
    let (saves, closed_at) = (AtomicU32::new(0), Mutex::new(None));
    let begun = Instant::now();
    let pass = shutdown.enter().unwrap();
    let request = async {
        shutdown.stopping().cancelled().await;
        assert!(shutdown.enter().is_ok(), "served during propagation");
        tokio::time::sleep(Duration::from_secs(8)).await;
        assert_eq!(shutdown.enter().unwrap_err(), ShuttingDown);
        assert_eq!(shutdown.statistics().in_flight, 1);
        drop(pass);
    };
    let run = || {
        let close = || async { *closed_at.lock() = Some(begun.elapsed()) };
        let save = || async {
            saves.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        shutdown.run(close, save)
    };
    shutdown.stop();
    shutdown.stop();
    let (first, second, ()) = tokio::join!(run(), run(), request);
    assert_eq!((first, second), (Ok(()), Ok(())));
    assert_eq!(begun.elapsed(), Duration::from_secs(8));
    assert_eq!(*closed_at.lock(), Some(Duration::from_secs(5)));
    assert_eq!(saves.load(Ordering::SeqCst), 1);
    let numbers = shutdown.statistics();
    assert_eq!(
        (numbers.state, numbers.started, numbers.finished, numbers.rejected),
        (State::Closed, 2, 2, 1)
    );
    assert!(!numbers.forced && shutdown.closed().is_cancelled());
}

/// Holds: G-06, G-15.
#[tokio::test(start_paused = true)]
async fn hooks_and_requests_that_hang_are_cut_off() {
    let shutdown = Shutdown::new(budgets(), Clock::start()).unwrap();
    let _pass = shutdown.enter().unwrap();
    let begun = Instant::now();
    shutdown.stop();
    let error = shutdown.run(std::future::pending, std::future::pending).await.unwrap_err();
    assert_eq!(begun.elapsed(), Duration::from_secs(5 + 2 + 10 + 5));
    assert!(matches!(error, StopError::DrainTimeout { cut_off: 1, save_error: Some(_) }), "{error}");
    assert!(shutdown.statistics().forced);
}

/// Holds: G-09.
#[tokio::test(start_paused = true)]
async fn hurry_skips_everything_but_the_save() {
    let shutdown = Shutdown::new(budgets(), Clock::start()).unwrap();
    let _pass = shutdown.enter().unwrap();
    let begun = Instant::now();
    let hurry = async {
        shutdown.stop();
        tokio::time::sleep(Duration::from_secs(1)).await;
        shutdown.hurry();
    };
    let save = || async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Err("disk full".to_owned())
    };
    let (ended, ()) = tokio::join!(shutdown.run(std::future::pending, save), hurry);
    let error = ended.unwrap_err().to_string();
    assert_eq!(error, "1 requests were cut off, and the save failed: disk full");
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
}

/// Under real threads: no request is counted once the drain has seen zero.
///
/// Holds: G-12, G-17.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_request_slips_in_after_the_drain_saw_zero() {
    for _ in 0..50 {
        let shutdown = Shutdown::new(Budgets::NONE, Clock::start()).unwrap();
        let drained = Arc::new(AtomicBool::new(false));
        let callers: Vec<_> = (0..4)
            .map(|_| {
                let (shutdown, drained) = (shutdown.clone(), drained.clone());
                tokio::spawn(async move {
                    // Read before: an entry that succeeds began after this and may not follow the drain.
                    loop {
                        let over = drained.load(Ordering::SeqCst);
                        match shutdown.enter() {
                            Ok(_pass) => assert!(!over, "a request was counted after the drain"),
                            Err(ShuttingDown) => return,
                        };
                    }
                })
            })
            .collect();
        tokio::task::yield_now().await;
        shutdown.stop();
        let save = || async {
            drained.store(true, Ordering::SeqCst);
            Ok(())
        };
        // Drain's budget is zero here: whoever is in flight at that instant is cut off, and that is said.
        let _ = shutdown.run(|| async {}, save).await;
        for caller in callers {
            caller.await.unwrap();
        }
        let numbers = shutdown.statistics();
        assert_eq!((numbers.started, numbers.in_flight), (numbers.finished, 0));
    }
}
