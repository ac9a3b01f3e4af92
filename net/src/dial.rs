//! Keeping a connection to an address: dial, run, wait longer each time it fails, never in step with others.

use std::future::Future;
use std::time::Duration;

use base::{Span, hash};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::NetIo;

/// Waits that double from `first` to `max`, each drawn between half and the whole of itself, so that a thousand
/// peers of a restarted node don't come back at one instant. Pure: the seed decides every draw.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Span,
    max: Span,
    next: Span,
    seed: u64,
    draws: u64,
}

impl Backoff {
    /// `seed`: anything that differs between peers, such as the hash of the node id.
    pub fn new(first: Duration, max: Duration, seed: u64) -> Self {
        let first = Span::from(first);
        Self { first, max: Span::from(max).max(first), next: first, seed, draws: 0 }
    }

    /// The wait before the next try.
    pub fn wait(&mut self) -> Duration {
        let whole = self.next;
        self.next = whole.times(2).min(self.max);
        self.draws += 1;
        let half = whole.0 / 2;
        let jitter = hash::mix(self.seed.wrapping_add(self.draws)) % (whole.0 - half + 1);
        Span(half + jitter).into()
    }

    /// A connection held: begin again with the first wait.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

/// A connection that lived this long counts as held.
const HELD: Duration = Duration::from_secs(5);

/// Dials `addr` and runs `session` on the stream, again and again, until `cancel`. The session gets a copy of the
/// token and ends by itself when it is cancelled, so that it can say goodbye.
pub async fn keep<N, S, F>(
    io: N,
    addr: String,
    mut backoff: Backoff,
    cancel: CancellationToken,
    mut session: S,
) where
    N: NetIo,
    S: FnMut(N::Stream, CancellationToken) -> F,
    F: Future<Output = ()>,
{
    while !cancel.is_cancelled() {
        let dialled = tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            dialled = io.connect(&addr) => dialled,
        };
        match dialled {
            Ok(stream) => {
                let since = Instant::now();
                session(stream, cancel.clone()).await;
                if since.elapsed() >= HELD {
                    backoff.reset();
                }
            }
            Err(_) if base::planted::is("dial_gives_up") => return,
            Err(error) => tracing::debug!(%addr, %error, "dial failed"),
        }
        let wait = match base::planted::is("redial_by_chance") {
            true => by_chance(),
            false => backoff.wait(),
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// For a planted fault: a wait that no seed decides.
fn by_chance() -> Duration {
    use std::hash::{BuildHasher, RandomState};
    Duration::from_millis(RandomState::new().hash_one(0) % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_with_jitter_up_to_the_limit() {
        let mut a = Backoff::new(Duration::from_millis(100), Duration::from_millis(800), 1);
        let mut b = Backoff::new(Duration::from_millis(100), Duration::from_millis(800), 2);
        let waits: Vec<_> = (0..6).map(|_| (a.wait(), b.wait())).collect();
        for (i, whole) in [100u64, 200, 400, 800, 800, 800].into_iter().enumerate() {
            for wait in [waits[i].0, waits[i].1] {
                assert!(
                    wait >= Duration::from_millis(whole / 2) && wait <= Duration::from_millis(whole),
                    "{wait:?}"
                );
            }
        }
        assert!(waits.iter().any(|(a, b)| a != b));
        a.reset();
        assert!(a.wait() <= Duration::from_millis(100));
    }
}
