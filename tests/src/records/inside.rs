//! What happens inside a provider's process, and what comes of it: what `tables`' shell does for a cache, and what keeps
//! its session with the arbiter.

use base::lease::Terms;
use base::{Fence, Mono, Span};
use tables::arbiter::session::{self, Welcome};
use tables::backend::{Applied, BackendError};
use tables::{Hear, Heard, sim};

use super::invariants::Seen;
use super::item::{Event, Item};
use super::link::Way;
use super::provider::{Body, Writing};
use super::talk::{ConnId, Down, Place, Up};
use super::world::World;

/// How long a commit may wait to be written, unless somebody waits for it.
const FLUSH: Span = Span::millis(20);
const BEAT: Span = Span::millis(50);
const WRITE_AGAIN: Span = Span::millis(10);
const WRITE_AGAIN_MAX: Span = Span::secs(1);
const STALE: Span = Span::millis(5);

impl World {
    /// Something happens to a process that runs.
    pub fn inside(&mut self, place: Place, event: Event) {
        let provider = &mut self.providers[place.who];
        let clock = provider.clock;
        let Some(mut body) = provider.body.take() else { return };
        body.set_clock(clock.here(self.now));
        self.perform(&mut body, event);
        self.settle(&mut body);
        self.plan_ahead(&mut body);
        self.watch.ledger.minds.insert(place.who, body.mind(&self.keys, clock));
        self.see(&Seen::Minds);
        if body.left {
            return self.left(place);
        }
        self.providers[place.who].body = Some(body);
    }

    fn here(&self, place: Place) -> Mono {
        self.providers[place.who].clock.here(self.now)
    }

    /// After so long by the clock of this process.
    pub fn later(&mut self, place: Place, span: Span, event: Event) {
        let clock = self.providers[place.who].clock;
        let at = clock.there(clock.here(self.now) + span);
        self.queue.push(at.max(self.now), Item::In { place, event });
    }

    fn perform(&mut self, body: &mut Body, event: Event) {
        let place = body.place;
        match event {
            Event::Dial => self.dial(body),
            Event::Down { conn, down } => {
                if body.conn == Some(conn) && self.links.carries(conn, Way::Down) {
                    self.hear(body, conn, down);
                }
            }
            Event::Closed { conn } => {
                if body.conn == Some(conn) {
                    self.session(body, session::Event::Closed);
                }
            }
            Event::Loaded { load, result } => {
                let result = if self.storage.refuses(self.now, place.who) {
                    Err(super::storage::failure())
                } else {
                    result
                };
                if let Ok(stored) = &result
                    && tables::sim::is_waited_for(&load)
                {
                    let version = stored.as_ref().map_or(0, |stored| stored.version);
                    let (key, version_min) = (self.keys.of_bytes(load.table, &load.key), load.version_min);
                    self.see(&Seen::Loaded { place, key, version, version_min });
                }
                body.cache.loaded(load, result);
            }
            Event::Raised => body.cache.raised(),
            Event::Applied { result } => self.applied(body, result),
            Event::WriteAgain => {
                if let Some(writing) = &body.writing {
                    let batch = writing.batch.clone();
                    let takes = self.storage.takes(self.now, &mut self.rng);
                    self.after(takes, Item::Apply { place, batch });
                }
            }
            Event::Flush => self.write(body),
            Event::Look => body.cache.look(),
            Event::Beat => {
                body.cache.look();
                body.cache.make_room();
                self.later(place, BEAT, Event::Beat);
            }
            Event::Tick => {
                if body.tick.is_some_and(|tick| tick <= body.cache.now()) {
                    body.tick = None;
                    self.session(body, session::Event::Tick);
                }
            }
            Event::Abandon { fence: Some(fence) } => self.session(body, session::Event::Abandon { fence }),
            Event::Abandon { fence: None } => {}
            Event::Work { worker, ticket } => self.work(body, worker, ticket),
            Event::Stop => {
                body.stopping = true;
                body.cache.stop();
            }
        }
    }

    fn dial(&mut self, body: &mut Body) {
        let place = body.place;
        if body.conn.is_some() {
            return;
        }
        if self.court.is_none() || self.links.is_shut(place.who, self.now) {
            let wait = self.rng.millis(30, 200);
            return self.after(wait, Item::In { place, event: Event::Dial });
        }
        let conn = self.links.open(place);
        if let Some(court) = &mut self.court {
            court.opened(conn);
        }
        body.conn = Some(conn);
        self.session(body, session::Event::Connected);
    }

    fn hear(&mut self, body: &mut Body, conn: ConnId, down: Down) {
        match down {
            Down::Welcome { sent, fence } => {
                let welcome = Welcome { sent, fence, terms: Terms::DEFAULT };
                self.session(body, session::Event::Welcome(welcome));
            }
            Down::Renewed { sent } => self.session(body, session::Event::Renewed { sent }),
            Down::Heard(heard) => {
                let reasserted = matches!(heard, Heard::Reasserted { .. });
                body.cache.heard(&mut vec![heard]);
                if reasserted {
                    body.asserting = body.asserting.saturating_sub(1);
                    if body.asserting == 0 {
                        self.session(body, session::Event::Reasserted);
                    }
                }
            }
            Down::Goodbye(code) => {
                self.session(body, session::Event::Refused { code });
                self.links.close(conn);
            }
            Down::Done => body.left |= body.stopping,
        }
    }

    fn session(&mut self, body: &mut Body, event: session::Event) {
        let mut actions = Vec::new();
        body.session.step(self.here(body.place), event, &mut actions);
        body.session.check();
        for action in actions {
            self.obey(body, action);
        }
    }

    fn obey(&mut self, body: &mut Body, action: session::Action) {
        use session::Action;
        let (place, here) = (body.place, self.here(body.place));
        self.say(|| format!("{place}: {action:?}"));
        match action {
            Action::Login => {
                let up = Up::Login { place, sent: here };
                self.up(body, up);
            }
            Action::Renew => self.up(body, Up::Renew { sent: here }),
            Action::Open { fence, until } => {
                body.inside = true;
                self.watch.ledger.opened(place, fence);
                body.cache.opened(fence.epoch, fence, until);
            }
            Action::Reopen { fence } => self.reopen(body, fence),
            Action::Resume => {
                body.inside = true;
                body.cache.resumed();
            }
            Action::Extend { until } => body.cache.extended(until),
            Action::Release => body.cache.released(),
            Action::Lose => {
                body.inside = false;
                body.cache.lost();
            }
            Action::Redial { after, .. } => {
                self.hang_up(body);
                let wait = after + self.rng.millis(1, 30);
                self.later(place, wait, Event::Dial);
            }
            Action::Bye => self.up(body, Up::Bye),
            Action::End | Action::Outlived => body.left = true,
        }
    }

    fn reopen(&mut self, body: &mut Body, fence: Fence) {
        body.inside = true;
        self.watch.ledger.opened(body.place, fence);
        let words = body.cache.reopened(fence.epoch, fence);
        // What it says by itself leaves before what it says for the asking.
        self.settle(body);
        body.asserting = words.len();
        for word in words {
            self.up(body, Up::Word(word));
        }
        if body.asserting == 0 {
            self.session(body, session::Event::Reasserted);
        }
    }

    fn up(&mut self, body: &Body, up: Up) {
        if let Some(conn) = body.conn {
            self.send_up(conn, up);
        }
    }

    /// The connection is cut; the arbiter learns of it sooner or later.
    fn hang_up(&mut self, body: &mut Body) {
        body.inside = false;
        let Some(conn) = body.conn.take() else { return };
        self.links.silence(conn, Way::Up);
        self.links.silence(conn, Way::Down);
        let wait = self.rng.millis(1, 400);
        self.after(wait, Item::Hung { conn });
    }

    /// What the cache has said is done, until it says nothing more.
    fn settle(&mut self, body: &mut Body) {
        let place = body.place;
        loop {
            let said = body.hands.take();
            let lost = sim::counts(&body.cache).losses.get();
            if lost != body.losses {
                body.losses = lost;
                self.watch.ledger.lost(place);
            }
            let mut quiet = said.raises.is_empty() && said.loads.is_empty();
            for word in said.words {
                quiet = false;
                self.see(&Seen::Said { place, word: &word });
                if body.inside {
                    self.up(body, Up::Word(word));
                }
            }
            for load in said.loads {
                let wait = if load.stale > 0 { STALE } else { Span::ZERO };
                let takes = wait + self.storage.takes(self.now, &mut self.rng);
                self.after(takes, Item::Load { place, load });
            }
            for evicted in said.raises {
                let takes = self.storage.takes(self.now, &mut self.rng);
                self.after(takes, Item::Raise { place, evicted });
            }
            for at in said.looks {
                let at = self.providers[place.who].clock.there(at);
                self.queue.push(at.max(self.now), Item::In { place, event: Event::Look });
            }
            if let Some(soon) = said.flush {
                self.write_soon(body, soon);
            }
            if said.abandoned {
                let fence = body.session.fence();
                let wait = Span::micros(self.rng.between(0, 3_000));
                self.after(wait, Item::In { place, event: Event::Abandon { fence } });
            }
            if quiet {
                return;
            }
        }
    }

    /// The session's next look at the clock, the steps of workers that need wait no longer, and the last step of a stop.
    fn plan_ahead(&mut self, body: &mut Body) {
        let place = body.place;
        if let Some(next) = body.session.next()
            && body.tick.is_none_or(|tick| next < tick)
        {
            body.tick = Some(next);
            let at = self.providers[place.who].clock.there(next);
            self.queue.push(at.max(self.now), Item::In { place, event: Event::Tick });
        }
        for worker in 0..body.workers.len() {
            if !body.workers[worker].called && body.workers[worker].is_ready(body) {
                body.workers[worker].called = true;
                let ticket = body.workers[worker].ticket;
                let wait = Span::micros(self.rng.between(0, 300));
                self.after(wait, Item::In { place, event: Event::Work { worker, ticket } });
            }
        }
        if body.stopping && !body.left && body.is_written() && body.workers.iter().all(|one| one.is_idle()) {
            self.session(body, session::Event::Leave);
        }
    }

    /// There is something to write; `soon`: somebody waits for it.
    fn write_soon(&mut self, body: &mut Body, soon: bool) {
        if body.writing.is_some() {
            body.more = Some(soon || body.more.unwrap_or_default());
            return;
        }
        let wait = if soon { Span::ZERO } else { FLUSH };
        self.later(body.place, wait, Event::Flush);
    }

    fn write(&mut self, body: &mut Body) {
        if body.writing.is_some() {
            return;
        }
        let Some(cut) = body.cache.take() else { return };
        let (place, batch, commits) = (body.place, cut.batch(), cut.commits);
        self.watch.ledger.taken(place, batch.first.0, commits);
        body.writing = Some(Writing { cut, batch: batch.clone(), wait: WRITE_AGAIN });
        let takes = self.storage.takes(self.now, &mut self.rng);
        self.after(takes, Item::Apply { place, batch });
    }

    fn applied(&mut self, body: &mut Body, result: Result<Applied, BackendError>) {
        let Some(mut writing) = body.writing.take() else { return };
        match result {
            Ok(_) => body.cache.applied(writing.cut.cut),
            Err(BackendError::Busy { .. } | BackendError::Storage(_)) => {
                let wait = writing.wait;
                writing.wait = Span(wait.0 * 2).min(WRITE_AGAIN_MAX);
                body.writing = Some(writing);
                return self.later(body.place, wait, Event::WriteAgain);
            }
            Err(error) => {
                self.watch.tally.refused += 1;
                body.cache.refused(&writing.cut, &error);
            }
        }
        let more = body.more.take();
        if sim::unwritten(&body.cache) > 0 || more.is_some() {
            self.write_soon(body, more.unwrap_or_default());
        }
    }
}
