//! The steps of a provider's workers, each with its transaction.

use base::Span;

use super::invariants::Seen;
use super::item::{Event, Item};
use super::provider::Body;
use super::work::{Ended, State, Worker};
use super::world::{Phase, World};

impl World {
    pub fn work(&mut self, body: &mut Body, at: usize, ticket: u64) {
        if body.workers[at].ticket != ticket {
            return;
        }
        let mut worker = std::mem::replace(&mut body.workers[at], Worker::new());
        worker.called = false;
        self.step(body, &mut worker, at);
        body.workers[at] = worker;
    }

    fn step(&mut self, body: &mut Body, worker: &mut Worker, at: usize) {
        let place = body.place;
        let mut ended = None;
        if worker.is_idle() {
            let Some(op) = self.next_op(place).filter(|_| !body.stopping) else { return };
            worker.begin(op, self.rng.one_in(6), self.now);
        } else if matches!(worker.state, State::Ran { .. }) {
            let (committed, over) = worker.finish(body, &self.keys);
            ended = over;
            if let Some((run, notes)) = committed {
                self.say(|| format!("{place}: commits {run:?}"));
                self.see(&Seen::Committed { run: &run });
                self.watch.ledger.committed(run);
                self.watch.tally.commits += 1;
                if let Some(count) = notes.scratch {
                    body.scratch += 1;
                    let known = body.scratch;
                    self.see(&Seen::Scratch { place, count, known });
                }
            }
        } else {
            ended = worker.look(body);
        }
        if ended.is_none()
            && !worker.is_idle()
            && !matches!(worker.state, State::Ran { .. })
            && self.now >= worker.until
        {
            ended = Some(Ended::Late);
        }
        if let Some(ended) = ended {
            return self.end(body, worker, at, ended);
        }
        self.go_on(body, worker, at);
    }

    /// The next step of a transaction that is not over.
    fn go_on(&mut self, body: &mut Body, worker: &mut Worker, at: usize) {
        let (place, ticket) = (body.place, worker.ticket);
        let event = Event::Work { worker: at, ticket };
        if worker.waits() {
            let until = worker.until.max(self.now + Span::millis(1));
            return self.queue.push(until, Item::In { place, event });
        }
        if let State::Denied(after) = worker.state {
            self.watch.tally.denied += 1;
            worker.leave(body);
            worker.state = State::Again;
            return self.later(place, after.max(Span::millis(5)), event);
        }
        if matches!(worker.state, State::Again | State::Lease) {
            self.ids += 1;
            worker.run(body, self.ids);
        }
        let slow = if self.rng.one_in(40) { 60_000 } else { 800 };
        let wait = Span::micros(self.rng.between(0, slow));
        self.after(wait, Item::In { place, event });
    }

    fn end(&mut self, body: &mut Body, worker: &mut Worker, at: usize, ended: Ended) {
        let place = body.place;
        worker.end(body);
        self.watch.count(&ended);
        if let Ended::Acked(id) = ended {
            self.see(&Seen::Acked { id });
            if self.phase == Phase::Healed
                && let Some(run) = self.watch.ledger.runs.get(&id)
            {
                run.writes.iter().for_each(|(key, _)| self.changed[place.who][*key] = true);
            }
        } else {
            self.say(|| format!("{place}: {ended:?}"));
        }
        let wait = Span(self.rng.between(500, self.plan.think.0));
        let event = Event::Work { worker: at, ticket: worker.ticket };
        self.after(wait, Item::In { place, event });
    }
}
