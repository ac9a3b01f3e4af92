//! Where a session's slot is. Answers by key only; whoever needs an order walks the slots.

use base::LinkSid;

use crate::fast::FastMap;

/// Slots by link sid. Remembers the last answer, since one frame asks three times.
#[derive(Debug, Default)]
pub struct Index {
    slots: FastMap<LinkSid, usize>,
    last: std::cell::Cell<Option<(LinkSid, usize)>>,
}

impl Index {
    pub fn get(&self, sid: LinkSid) -> Option<usize> {
        if let Some((_, slot)) = self.last.get().filter(|(last, _)| *last == sid) {
            return Some(slot);
        }
        let slot = *self.slots.get(&sid)?;
        self.last.set(Some((sid, slot)));
        Some(slot)
    }

    pub fn insert(&mut self, sid: LinkSid, slot: usize) {
        self.slots.insert(sid, slot);
    }

    pub fn remove(&mut self, sid: LinkSid) {
        self.slots.remove(&sid);
        self.last.set(None);
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }
}
