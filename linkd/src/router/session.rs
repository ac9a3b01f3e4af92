//! Core: the client sessions of one worker, in a slab whose slot is part of the sid.

use std::net::SocketAddr;

use base::{Account, AppVersion, LinkSid, ModuleId, Mono, Role, hash};

use super::ProviderRef;
use super::auth::Authing;
use super::owed::Owed;
use super::rate::Bucket;

/// Bits of a sid's counter that name its slot: a worker holds at most about a million sessions. The other 36 count
/// the slot's uses, so that a sid is never given twice.
const SLOT_BITS: u32 = 20;
/// A table with room for so many keeps it.
const SLOTS_KEPT: usize = 1_024;

/// The slab slot of a session: the shell keeps its own table by the same index.
pub const fn slot(sid: LinkSid) -> usize {
    (sid.counter() & ((1 << SLOT_BITS) - 1)) as usize
}

/// Shrinks a table of slots that has room for far more than it holds; says whether it did.
pub fn give_back_room<T>(slots: &mut Vec<T>) -> bool {
    let far = slots.capacity() > SLOTS_KEPT && slots.len() < slots.capacity() / 4;
    if far {
        slots.shrink_to(slots.len() * 2);
    }
    far
}

/// One client connection.
#[derive(Debug)]
pub struct Session {
    pub sid: LinkSid,
    pub addr: SocketAddr,
    /// Set once, by login.
    pub account: Option<Account>,
    /// Its Auth is being judged.
    pub authing: Option<Authing>,
    pub account_hash: u64,
    pub role: Option<Role>,
    pub app_version: AppVersion,
    /// CHandshake was answered.
    pub handshake_asked: bool,
    /// CHandshakeDone came.
    pub handshake_done: bool,
    pub unauthed_frames: u8,
    pub heard: Mono,
    /// When its silence is looked at next; its place in the router's order.
    pub silence_due: Mono,
    /// How fast its frames and its bytes come.
    pub frames: Bucket,
    pub bytes: Bucket,
    /// The last broadcast that reached it or that it is not for.
    pub broadcast: u64,
    /// The last Send that reached it: one that names it twice reaches it once.
    pub sent: u64,
    /// When a report about overload or a missing provider was last sent.
    pub reported: Option<Mono>,
    /// Where requests of a module go. Few, so a list beats a map.
    pub binds: Vec<(ModuleId, ProviderRef)>,
    /// Providers that were told of this session and must hear its end.
    pub opened: Vec<ProviderRef>,
    /// Its requests that are not answered yet.
    pub owed: Owed,
}

/// What a choice needs to know of a session.
#[derive(Debug, Clone, Copy)]
pub struct Player {
    pub account_hash: u64,
    pub source_hash: u64,
    pub role: Option<Role>,
    pub app_version: AppVersion,
}

impl Session {
    pub fn player(&self) -> Player {
        let (account_hash, source_hash) = (self.account_hash, self.source_hash());
        Player { account_hash, source_hash, role: self.role, app_version: self.app_version }
    }

    pub fn bound(&self, module: ModuleId) -> Option<ProviderRef> {
        self.binds.iter().find(|(m, _)| *m == module).map(|&(_, to)| to)
    }

    /// The hash of the client's address, port left out; an IPv4-mapped address is its IPv4 one.
    fn source_hash(&self) -> u64 {
        match self.addr.ip().to_canonical() {
            std::net::IpAddr::V4(ip) => hash::bytes(&ip.octets()),
            std::net::IpAddr::V6(ip) => hash::bytes(&ip.octets()),
        }
    }
}

/// All sessions of a worker.
#[derive(Debug)]
pub struct Sessions {
    worker: u8,
    /// The last one is in use.
    slots: Vec<Slot>,
    /// Slots that are free, and some beyond the end, which are passed over.
    free: Vec<u32>,
    live: usize,
    authed: usize,
    sessions_max: usize,
    /// No slot that was given back had more uses: where a slot that takes such a place begins to count.
    uses_given_back: u64,
    /// How many sessions were looked at so far.
    #[cfg(test)]
    pub touched: std::cell::Cell<usize>,
}

#[derive(Debug, Default)]
struct Slot {
    /// Uses of this slot so far; the next sid's upper bits.
    uses: u64,
    session: Option<Box<Session>>,
}

impl Sessions {
    pub fn new(worker: u8, sessions_max: usize) -> Self {
        let sessions_max = sessions_max.min(1 << SLOT_BITS);
        let (slots, free) = (Vec::new(), Vec::new());
        Self {
            worker,
            slots,
            free,
            live: 0,
            authed: 0,
            sessions_max,
            uses_given_back: 0,
            #[cfg(test)]
            touched: Default::default(),
        }
    }

    /// `None`: full.
    pub fn open(&mut self, now: Mono, addr: SocketAddr) -> Option<LinkSid> {
        if self.live >= self.sessions_max {
            return None;
        }
        let index = self.free_slot().unwrap_or_else(|| {
            self.slots.push(Slot { uses: self.uses_given_back, session: None });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.uses += 1;
        let uses = if base::planted::is("link_sid_reused") { 1 } else { slot.uses };
        let sid = LinkSid::new(self.worker, uses << SLOT_BITS | u64::from(index));
        slot.session = Some(Box::new(Session {
            sid,
            addr,
            account: None,
            authing: None,
            account_hash: 0,
            role: None,
            app_version: AppVersion::default(),
            handshake_asked: false,
            handshake_done: false,
            unauthed_frames: 0,
            heard: now,
            silence_due: now,
            frames: Bucket::default(),
            bytes: Bucket::default(),
            broadcast: 0,
            sent: 0,
            reported: None,
            binds: Vec::new(),
            opened: Vec::new(),
            owed: Owed::default(),
        }));
        self.live += 1;
        Some(sid)
    }

    /// Whatever lies beyond the end is forgotten here, before the table can grow over it.
    fn free_slot(&mut self) -> Option<u32> {
        std::iter::from_fn(|| self.free.pop()).find(|&index| (index as usize) < self.slots.len())
    }

    pub fn get(&self, sid: LinkSid) -> Option<&Session> {
        self.touch();
        self.slots.get(slot(sid))?.session.as_deref().filter(|s| s.sid == sid)
    }

    pub fn get_mut(&mut self, sid: LinkSid) -> Option<&mut Session> {
        self.touch();
        self.slots.get_mut(slot(sid))?.session.as_deref_mut().filter(|s| s.sid == sid)
    }

    /// Counts for tests that nobody looks at sessions without need.
    fn touch(&self) {
        #[cfg(test)]
        self.touched.set(self.touched.get() + 1);
    }

    pub fn remove(&mut self, sid: LinkSid) -> Option<Box<Session>> {
        self.get(sid)?;
        let index = slot(sid);
        let session = self.slots.get_mut(index)?.session.take()?;
        self.free.push(index as u32);
        self.live -= 1;
        self.authed -= usize::from(session.account.is_some());
        self.give_back();
        Some(session)
    }

    /// Gives back the free slots at the end; their sids stay given. Each slot was opened once, so each who leaves pays for
    /// one.
    fn give_back(&mut self) {
        while let Some(last) = self.slots.pop_if(|slot| slot.session.is_none()) {
            if !base::planted::is("slots_forget_their_uses") {
                self.uses_given_back = self.uses_given_back.max(last.uses);
            }
        }
        let used = self.slots.len();
        if give_back_room(&mut self.slots) {
            self.free.retain(|&index| (index as usize) < used);
            self.free.shrink_to_fit();
        }
    }

    /// Logs the session in.
    pub fn set_account(&mut self, sid: LinkSid, account: Account, version: AppVersion) {
        if let Some(session) = self.get_mut(sid) {
            session.account_hash = hash::bytes(account.as_str().as_bytes());
            session.account = Some(account);
            session.app_version = version;
            self.authed += 1;
        }
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The sessions of these slots; slots that were given back have none.
    pub fn range(&self, slots: std::ops::Range<usize>) -> impl Iterator<Item = &Session> {
        let slots = self.slots.get(slots).unwrap_or_default();
        slots.iter().filter_map(|slot| slot.session.as_deref()).inspect(|_| self.touch())
    }

    /// In slot order.
    pub fn iter(&self) -> impl Iterator<Item = &Session> {
        self.slots.iter().filter_map(|slot| slot.session.as_deref()).inspect(|_| self.touch())
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.slots.iter_mut().filter_map(|slot| slot.session.as_deref_mut())
    }

    pub fn len(&self) -> usize {
        self.live
    }

    pub fn authed(&self) -> usize {
        self.authed
    }

    pub fn check(&self) {
        assert_eq!(self.iter().count(), self.live);
        assert_eq!(self.iter().filter(|s| s.account.is_some()).count(), self.authed);
        let free = self.free.iter().filter(|&&index| (index as usize) < self.slots.len()).count();
        assert_eq!(free + self.live, self.slots.len());
        assert!(self.slots.last().is_none_or(|last| last.session.is_some()));
        for (index, slot) in self.slots.iter().enumerate() {
            if let Some(session) = &slot.session {
                assert_eq!(self::slot(session.sid), index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: Z-10, Q20.
    #[test]
    fn a_sid_is_never_given_twice() {
        let mut sessions = Sessions::new(3, 2);
        let addr = "127.0.0.1:1".parse().unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1_000 {
            let sid = sessions.open(Mono::ZERO, addr).unwrap();
            assert!(seen.insert(sid) && sid.worker() == 3);
            sessions.remove(sid);
            assert!(sessions.get(sid).is_none() && sessions.remove(sid).is_none());
        }
        sessions.open(Mono::ZERO, addr).unwrap();
        sessions.open(Mono::ZERO, addr).unwrap();
        assert_eq!(sessions.open(Mono::ZERO, addr), None);
        sessions.check();
    }

    /// After thousands have left, the tables are small again, and no sid of theirs is ever given to another.
    ///
    /// Holds: Z-10, Q20.
    #[test]
    fn a_mass_leave_gives_the_memory_back_and_no_sid() {
        let mut sessions = Sessions::new(3, 100_000);
        let addr = "127.0.0.1:1".parse().unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for round in 0..3 {
            let sids: Vec<_> = (0..20_000).map(|_| sessions.open(Mono::ZERO, addr).unwrap()).collect();
            assert!(sids.iter().all(|&sid| seen.insert(sid)), "round {round}");
            // In either order.
            let mut leaving = sids[10..].to_vec();
            if round == 1 {
                leaving.reverse();
            }
            for sid in leaving {
                sessions.remove(sid);
            }
            sessions.check();
            assert!(sessions.slots.capacity() <= SLOTS_KEPT && sessions.free.capacity() <= SLOTS_KEPT);
            // A broadcast that was under way stands beyond the end.
            assert_eq!(sessions.range(15_000..sessions.slots()).count(), 0);
            for sid in &sids[..10] {
                assert_eq!(sessions.get(*sid).map(|session| session.sid), Some(*sid));
                sessions.remove(*sid);
            }
        }
    }
}
