//! What the arbiter says, and what becomes of the session with it.

use base::{Epoch, Fence, Mono};

use super::permit::Event;
use super::{Cache, CellRef};
use crate::arbiter::{Evicted, Hear, Heard, Mode, Word};
use crate::error::Error;

impl Cache {
    /// Everything is dropped: what was committed and is not on its way to the storage is lost.
    pub(super) fn lose(&self) {
        // Nothing is committed from here on that was not under way; whatever was is in the cut that is thrown away, since
        // the cells are visited after it.
        self.pipeline.halt(|| {
            self.lease.next();
        });
        self.counts.losses.add(1);
        for cell in self.index.all() {
            let mut locked = cell.lock();
            if !base::planted::is("flush_outlives_the_session") {
                locked.forget_unwritten();
            }
            self.step_locked(&cell, &mut locked, Event::Lost);
        }
    }

    fn asked_cell(&self, request: u64) -> Option<CellRef> {
        self.asked.lock().remove(&request)
    }

    /// Whatever has no answer is asked again.
    fn ask_again(&self) {
        let cells: Vec<CellRef> = self.asked.lock().values().cloned().collect();
        for cell in cells {
            let mut locked = cell.lock();
            self.step_locked(&cell, &mut locked, Event::AskAgain);
        }
    }

    fn hear(&self, heard: Heard) {
        match heard {
            Heard::Granted { request, mode, seq, must_reload, version_min, evicted } => {
                self.raise(evicted);
                let Some(cell) = self.asked_cell(request) else { return };
                let mut locked = cell.lock();
                let event = Event::Granted { request, mode, seq, must_reload, version_min };
                self.step_locked(&cell, &mut locked, event);
                (locked.term, locked.epoch) = (self.lease.current(), self.pipeline.epoch());
            }
            Heard::Denied { request, code, retry_after } => {
                let Some(cell) = self.asked_cell(request) else { return };
                let mut locked = cell.lock();
                if locked.permit.asked() == Some(request) {
                    self.step_locked(&cell, &mut locked, Event::Denied { request });
                    self.fail(&mut locked, &Error::Denied { code, retry_after });
                }
            }
            Heard::Reduce { record, seq, to, within: _ } => {
                let Some(cell) = self.index.get(record) else {
                    // It was let go, and the word of it was lost with a connection.
                    let mut words = vec![Word::Reduced { record, seq, to: Mode::Invalid, flushed: 0 }];
                    return self.arbiter.say(&mut words);
                };
                let mut locked = cell.lock();
                self.step_locked(&cell, &mut locked, Event::Reduce { seq, to });
            }
            Heard::Reasserted { record, seq } => {
                let Some(cell) = self.index.get(record) else { return };
                let mut locked = cell.lock();
                if seq.is_some() {
                    (locked.term, locked.epoch) = (self.lease.current(), self.pipeline.epoch());
                } else if self.facts(&locked).dirty {
                    // Others may have it, and what was committed in it is on its way together with what was not.
                    drop(locked);
                    self.lose();
                    return self.outward.abandon();
                }
                self.step_locked(&cell, &mut locked, Event::Renumbered { seq });
            }
        }
    }
}

impl Hear for Cache {
    fn heard(&self, words: &mut Vec<Heard>) {
        words.drain(..).for_each(|word| self.hear(word));
        self.arbiter.send();
    }

    fn opened(&self, epoch: Epoch, fence: Fence, until: Mono) {
        tracing::info!(%epoch, %fence, "a session with the arbiter has begun");
        self.pipeline.resume(fence);
        // What an earlier session of ours has on its way is written before this or never.
        self.raise(vec![Evicted { node: Some(self.pipeline.node().clone()), below: fence }]);
        self.ask_again();
        self.extended(until);
        self.arbiter.send();
    }

    fn reopened(&self, epoch: Epoch, fence: Fence) -> Vec<Word> {
        tracing::info!(%epoch, %fence, "the arbiter has restarted; what is held is held on");
        self.lease.next();
        self.pipeline.resume(fence);
        let mut words = Vec::new();
        for cell in self.index.all() {
            let mut locked = cell.lock();
            // What is being given up and is not written yet is nobody else's before it is.
            let mode = if self.facts(&locked).dirty { Mode::Modify } else { locked.permit.held() };
            if mode > Mode::Invalid {
                words.push(Word::Reassert { record: locked.record, mode });
            } else {
                self.step_locked(&cell, &mut locked, Event::Renumbered { seq: None });
            }
        }
        self.ask_again();
        words
    }

    fn resumed(&self) {
        self.ask_again();
        self.arbiter.send();
    }

    fn extended(&self, until: Mono) {
        // The arbiter may renew a session that the storage has refused and that is dropped already: commits in it would
        // never be written.
        self.pipeline.if_writing(|| self.lease.extend(until));
        self.changed.notify_waiters();
    }

    fn released(&self) {
        tracing::warn!("the arbiter does not answer; nothing is committed until it does");
        self.outward.flush(true);
    }

    fn lost(&self) {
        tracing::error!("the session with the arbiter is over; everything is dropped");
        self.lose();
        self.arbiter.send();
    }
}

#[cfg(test)]
mod tests;
