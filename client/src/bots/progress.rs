//! A bar on standard error while bots run, only if that is a terminal.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval};

use crate::bots::run::Run;

const REDRAW_EVERY: Duration = Duration::from_millis(250);
const LOOK: &str = "{bar:30} {elapsed} of {len} s  {msg}";

/// The task that draws; it ends and wipes the bar when this is dropped.
pub(crate) struct Progress(Option<(JoinHandle<()>, ProgressBar)>);

impl Progress {
    pub fn start(run: &Arc<Run>) -> Self {
        if !run.plan.progress || !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new(run.plan.seconds);
        if let Ok(style) = ProgressStyle::with_template(LOOK) {
            bar.set_style(style);
        }
        Self(Some((tokio::spawn(draw(run.clone(), bar.clone())), bar)))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((task, bar)) = self.0.take() {
            task.abort();
            bar.finish_and_clear();
        }
    }
}

async fn draw(run: Arc<Run>, bar: ProgressBar) {
    let started = Instant::now();
    let mut redraw = interval(REDRAW_EVERY);
    loop {
        redraw.tick().await;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let tally = &run.tally;
        let failed = get(&tally.errors) + get(&tally.failed_assertions);
        let (logins, requests) = (get(&tally.logins), get(&tally.requests));
        bar.set_position(started.elapsed().as_secs().min(run.plan.seconds));
        bar.set_message(format!("{logins} logins, {requests} requests, {failed} failed"));
    }
}
