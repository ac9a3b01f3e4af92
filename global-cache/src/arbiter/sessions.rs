//! Core: sessions of providers, from login to eviction, and who was evicted.
//!
//! A session that is over leaves what it held where it stands: its slot says that nobody is there, so that an eviction costs
//! the same whether it held ten records or ten millions. A slot is used again when a sweep has passed every record since.

use std::collections::BTreeMap;

use base::lease::Heard;
use base::{Epoch, Fence, Generation, Mono, NodeId};

use super::Arbiter;
use super::event::{Action, Evicted, Refused, SessionId, Storage};

#[derive(Debug)]
pub(super) struct Session {
    pub number: u64,
    pub node: NodeId,
    epoch: Epoch,
    conn: Generation,
    heard: Heard,
    storages: Vec<Storage>,
    /// Records it holds.
    pub held: usize,
    /// Evictions up to this one were named to it.
    told: u64,
}

#[derive(Debug)]
enum Slot {
    Free,
    Living(Session),
    /// Records may still name it. What it held stays counted nowhere.
    Dead,
}

#[derive(Debug)]
pub(super) struct Sessions {
    slots: Vec<Slot>,
    free: Vec<u16>,
    by_node: BTreeMap<NodeId, u16>,
    slots_max: usize,
    numbers: u64,
    /// Who was evicted, the last time for each node, in the order of the numbers. `None`: everybody before this life.
    evicted: BTreeMap<Option<NodeId>, (u64, Fence)>,
    evictions: u64,
    /// Slots whose sessions ended before the present pass of the sweep began.
    dying: Vec<u16>,
    /// And since.
    dead: Vec<u16>,
    /// The place that the present pass is at.
    sweep: Option<u32>,
}

impl Sessions {
    pub fn new(slots_max: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_node: BTreeMap::new(),
            slots_max,
            numbers: 0,
            evicted: BTreeMap::new(),
            evictions: 0,
            dying: Vec::new(),
            dead: Vec::new(),
            sweep: None,
        }
    }

    pub fn alive(&self) -> usize {
        self.by_node.len()
    }

    pub fn dead(&self) -> usize {
        self.dying.len() + self.dead.len()
    }

    pub fn living(&self, slot: u16) -> Option<&Session> {
        match self.slots.get(usize::from(slot)) {
            Some(Slot::Living(session)) => Some(session),
            _ => None,
        }
    }

    pub fn living_mut(&mut self, slot: u16) -> Option<&mut Session> {
        match self.slots.get_mut(usize::from(slot)) {
            Some(Slot::Living(session)) => Some(session),
            _ => None,
        }
    }

    /// The session itself, not one that came later to its slot.
    pub fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.living_mut(id.slot).filter(|session| session.number == id.number)
    }

    pub fn is_living(&self, id: SessionId) -> bool {
        self.living(id.slot).is_some_and(|session| session.number == id.number)
    }

    pub fn id(&self, slot: u16) -> Option<SessionId> {
        self.living(slot).map(|session| SessionId { slot, number: session.number })
    }

    pub fn expired(&self, now: Mono) -> Vec<u16> {
        let expired = |slot: &u16| self.living(*slot).is_some_and(|session| session.heard.expired(now));
        self.by_node.values().copied().filter(expired).collect()
    }

    /// What this session was not told yet of who was evicted. Nearly always nothing.
    pub fn untold(&mut self, slot: u16) -> Vec<Evicted> {
        let evictions = self.evictions;
        let Some(session) = self.living_mut(slot) else { return Vec::new() };
        let told = std::mem::replace(&mut session.told, evictions);
        if told == evictions || base::planted::is("arbiter_forgets_the_evicted") {
            return Vec::new();
        }
        let new = self.evicted.iter().filter(|(_, (number, _))| *number > told);
        new.map(|(node, (_, below))| Evicted { node: node.clone(), below: *below }).collect()
    }

    pub fn evict_all_before(&mut self, below: Fence) {
        self.evictions += 1;
        self.evicted.insert(None, (self.evictions, below));
    }

    fn begin(&mut self, session: Session) -> Option<SessionId> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < self.slots_max => {
                self.slots.push(Slot::Free);
                u16::try_from(self.slots.len() - 1).ok()?
            }
            None => return None,
        };
        let id = SessionId { slot, number: session.number };
        self.by_node.insert(session.node.clone(), slot);
        self.slots[usize::from(slot)] = Slot::Living(session);
        Some(id)
    }

    /// Ends a session; says which it was.
    fn end(&mut self, slot: u16) -> Option<Session> {
        let place = self.slots.get_mut(usize::from(slot))?;
        let Slot::Living(session) = std::mem::replace(place, Slot::Dead) else { return None };
        self.by_node.remove(&session.node);
        self.dead.push(slot);
        Some(session)
    }

    /// The next place to sweep; `None`: the pass is over, or there is nothing to sweep.
    pub fn sweep_next(&mut self, places: u32) -> Option<u32> {
        let at = match self.sweep {
            Some(at) => at,
            None if self.dead.is_empty() => return None,
            None => {
                self.dying = std::mem::take(&mut self.dead);
                0
            }
        };
        if at < places {
            self.sweep = Some(at + 1);
            return Some(at);
        }
        // Every record was passed since these ended, so none names them.
        self.sweep = None;
        for slot in self.dying.drain(..) {
            self.slots[usize::from(slot)] = Slot::Free;
            self.free.push(slot);
        }
        None
    }

    /// A storage of these that others know by another id.
    fn stranger<'a>(&self, storages: &'a [Storage]) -> Option<&'a Storage> {
        let known = |new: &&Storage| {
            self.by_node
                .values()
                .filter_map(|slot| self.living(*slot))
                .flat_map(|session| &session.storages)
                .any(|old| old.backend == new.backend && old.id != new.id)
        };
        storages.iter().find(known)
    }

    pub fn check(&self) {
        for (node, slot) in &self.by_node {
            let there = self.living(*slot).is_some_and(|session| session.node == *node);
            assert!(there, "{node} has a session in its slot");
        }
        let living = self.slots.iter().filter(|slot| matches!(slot, Slot::Living(_))).count();
        let dead = self.slots.iter().filter(|slot| matches!(slot, Slot::Dead)).count();
        assert_eq!((living, dead), (self.by_node.len(), self.dead()), "slots are counted");
    }
}

impl Arbiter {
    pub(super) fn login(
        &mut self,
        now: Mono,
        conn: Generation,
        node: NodeId,
        epoch: Epoch,
        storages: Vec<Storage>,
        actions: &mut Vec<Action>,
    ) {
        let known = self.sessions.by_node.get(&node).copied();
        if let Some(slot) = known
            && let Some(session) = self.sessions.living_mut(slot)
        {
            if session.epoch > epoch {
                let newest = session.epoch;
                return actions.push(Action::Refuse { conn, why: Refused::Stale { newest } });
            }
            if session.epoch == epoch {
                return self.resume(now, conn, slot, actions);
            }
            // A later start of the node: what the earlier one held is void, and it may write no more.
            self.evict(slot, actions);
        }
        if let Some(stranger) = self.sessions.stranger(&storages) {
            let backend = stranger.backend.clone();
            return actions.push(Action::Refuse { conn, why: Refused::Storage { backend } });
        }
        self.sessions.numbers += 1;
        let (number, heard) = (self.sessions.numbers, Heard::new(now, self.settings.terms.eviction));
        let session = Session { number, node, epoch, conn, heard, storages, held: 0, told: 0 };
        let Some(session) = self.sessions.begin(session) else {
            return actions.push(Action::Refuse { conn, why: Refused::Sessions });
        };
        let (fence, opens) = (Fence::new(self.settings.epoch, number), self.opens);
        actions.push(Action::Welcome { conn, session, fence, fresh: true, opens });
    }

    /// The same start over another connection: it holds what it held, and hears again what may have been lost.
    fn resume(&mut self, now: Mono, conn: Generation, slot: u16, actions: &mut Vec<Action>) {
        let Some(session) = self.sessions.living_mut(slot) else { return };
        let old = std::mem::replace(&mut session.conn, conn);
        session.heard.renew(now);
        session.told = 0;
        let number = session.number;
        if old != conn {
            actions.push(Action::Close { conn: old });
        }
        let (fence, opens) = (Fence::new(self.settings.epoch, number), self.opens);
        let session = SessionId { slot, number };
        actions.push(Action::Welcome { conn, session, fence, fresh: false, opens });
        self.remind(slot, actions);
    }

    pub(super) fn renew(&mut self, now: Mono, session: SessionId, actions: &mut Vec<Action>) {
        match self.sessions.get_mut(session) {
            Some(known) => {
                known.heard.renew(now);
                actions.push(Action::Renewed { session });
            }
            None => actions.push(Action::Lost { session }),
        }
    }

    /// Not heard of for too long, or replaced by a later start: everything it held is free, and its late writes are refused
    /// by whoever loads next.
    pub(super) fn evict(&mut self, slot: u16, actions: &mut Vec<Action>) {
        let Some(session) = self.sessions.end(slot) else { return };
        self.counts.evicted += 1;
        self.sessions.evictions += 1;
        let below = Fence::new(self.settings.epoch, session.number).next();
        self.sessions.evicted.insert(Some(session.node), (self.sessions.evictions, below));
        actions.push(Action::Lost { session: SessionId { slot, number: session.number } });
        actions.push(Action::Close { conn: session.conn });
        self.drop_session(slot, actions);
    }

    /// It has written everything: nobody need be told.
    pub(super) fn bye(&mut self, session: SessionId, actions: &mut Vec<Action>) {
        if !self.sessions.is_living(session) {
            return actions.push(Action::Lost { session });
        }
        if let Some(ended) = self.sessions.end(session.slot) {
            actions.push(Action::Close { conn: ended.conn });
        }
        self.drop_session(session.slot, actions);
    }

    pub(super) fn holds_one_less(&mut self, slot: u16) {
        if let Some(session) = self.sessions.living_mut(slot) {
            session.held = session.held.saturating_sub(1);
        }
    }
}
