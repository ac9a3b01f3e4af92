//! The rooms of one provider and who is in them. Knows nothing of networks: a link is whatever names a session.
//!
//! A member is an account at a link. Entering again from another link moves the member there, and the end of the old
//! link then changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::codes;

/// Members one room may have.
pub const MEMBERS_MAX: usize = 200;
/// Rooms one provider may have at a time. An empty room is gone.
pub const ROOMS_MAX: usize = 1_000;
/// Rooms of one provider that one link may be in.
pub const ROOMS_PER_LINK_MAX: usize = 16;
/// Bytes of a room's name.
pub const NAME_BYTES_MAX: usize = 32;

/// All rooms of one provider.
#[derive(Debug)]
pub struct Hall<L> {
    rooms: BTreeMap<String, Room<L>>,
    /// Where each link is a member, so that its end costs no search.
    links: BTreeMap<L, BTreeSet<String>>,
}

/// One room.
#[derive(Debug)]
struct Room<L> {
    /// By account.
    members: BTreeMap<String, L>,
}

/// What entering a room did.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry<L> {
    /// Everybody in it now, by name.
    pub members: Vec<String>,
    /// Who was there before and is to be told; empty when the account was a member already.
    pub told: Vec<L>,
}

/// A member that is in a room no longer.
#[derive(Debug, PartialEq, Eq)]
pub struct Departure<L> {
    pub room: String,
    pub account: String,
    /// Who stays and is to be told.
    pub told: Vec<L>,
}

impl<L> Default for Hall<L> {
    fn default() -> Self {
        Self { rooms: BTreeMap::new(), links: BTreeMap::new() }
    }
}

impl<L: Ord + Clone> Hall<L> {
    /// Refuses with BAD_ROOM_NAME, ROOM_FULL, NO_MORE_ROOMS or TOO_MANY_ROOMS, and has changed nothing then.
    pub fn enter(&mut self, room: &str, account: &str, link: &L) -> Result<Entry<L>, i32> {
        if !(1..=NAME_BYTES_MAX).contains(&room.len()) || room.chars().any(char::is_control) {
            return Err(codes::BAD_ROOM_NAME);
        }
        let here = self.links.get(link).is_some_and(|rooms| rooms.contains(room));
        let before = self.rooms.get(room).and_then(|room| room.members.get(account)).cloned();
        match self.rooms.get(room) {
            Some(room) if before.is_none() && room.members.len() >= MEMBERS_MAX => {
                return Err(codes::ROOM_FULL);
            }
            None if self.rooms.len() >= ROOMS_MAX => return Err(codes::NO_MORE_ROOMS),
            _ => {}
        }
        if !here && self.links.get(link).is_some_and(|rooms| rooms.len() >= ROOMS_PER_LINK_MAX) {
            return Err(codes::TOO_MANY_ROOMS);
        }
        let told = if before.is_none() { self.links_in(room) } else { Vec::new() };
        if let Some(old) = before.filter(|old| old != link) {
            self.forget(&old, room);
        }
        self.links.entry(link.clone()).or_default().insert(room.to_owned());
        let entered = self.rooms.entry(room.to_owned()).or_insert_with(|| Room { members: BTreeMap::new() });
        entered.members.insert(account.to_owned(), link.clone());
        Ok(Entry { members: entered.members.keys().cloned().collect(), told })
    }

    /// Refuses with NOT_IN_ROOM.
    pub fn leave(&mut self, room: &str, account: &str, link: &L) -> Result<Departure<L>, i32> {
        if !self.is_member(room, account, link) {
            return Err(codes::NOT_IN_ROOM);
        }
        self.forget(link, room);
        Ok(self.remove(room, account))
    }

    /// Whom a member's words reach, the speaker included. Refuses with NOT_IN_ROOM.
    pub fn audience(&self, room: &str, account: &str, link: &L) -> Result<Vec<L>, i32> {
        if !self.is_member(room, account, link) {
            return Err(codes::NOT_IN_ROOM);
        }
        Ok(self.links_in(room))
    }

    /// Everybody in the room, by name; nobody when there is no such room.
    pub fn who(&self, room: &str) -> Vec<String> {
        self.rooms.get(room).map(|room| room.members.keys().cloned().collect()).unwrap_or_default()
    }

    /// The link has ended: it leaves every room that it is still the link of.
    pub fn broken(&mut self, account: &str, link: &L) -> Vec<Departure<L>> {
        let rooms = self.links.remove(link).unwrap_or_default();
        rooms.iter().map(|room| self.remove(room, account)).collect()
    }

    pub fn rooms(&self) -> usize {
        self.rooms.len()
    }

    fn is_member(&self, room: &str, account: &str, link: &L) -> bool {
        self.rooms.get(room).and_then(|room| room.members.get(account)) == Some(link)
    }

    fn links_in(&self, room: &str) -> Vec<L> {
        self.rooms.get(room).map(|room| room.members.values().cloned().collect()).unwrap_or_default()
    }

    fn remove(&mut self, room: &str, account: &str) -> Departure<L> {
        if let Some(left) = self.rooms.get_mut(room) {
            left.members.remove(account);
            if left.members.is_empty() {
                self.rooms.remove(room);
            }
        }
        Departure { room: room.to_owned(), account: account.to_owned(), told: self.links_in(room) }
    }

    /// The link is no member of this room any more.
    fn forget(&mut self, link: &L, room: &str) {
        if let Some(rooms) = self.links.get_mut(link) {
            rooms.remove(room);
            if rooms.is_empty() {
                self.links.remove(link);
            }
        }
    }

    /// Both tables say the same.
    #[cfg(test)]
    fn check(&self) {
        let by_room =
            self.rooms.iter().flat_map(|(name, room)| room.members.values().map(move |l| (l, name)));
        let by_room: BTreeSet<_> = by_room.map(|(link, name)| (link.clone(), name.clone())).collect();
        let by_link = self.links.iter().flat_map(|(link, rooms)| rooms.iter().map(move |name| (link, name)));
        let by_link: BTreeSet<_> = by_link.map(|(link, name)| (link.clone(), name.clone())).collect();
        assert!(by_room == by_link);
        assert!(
            self.rooms.values().all(|room| !room.members.is_empty() && room.members.len() <= MEMBERS_MAX)
        );
        assert!(self.links.values().all(|rooms| !rooms.is_empty() && rooms.len() <= ROOMS_PER_LINK_MAX));
        assert!(self.rooms.len() <= ROOMS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_enters_is_seen_and_heard_and_missed() {
        let mut hall = Hall::default();
        assert_eq!(
            hall.enter("attic", "alice", &1),
            Ok(Entry { members: vec!["alice".into()], told: vec![] })
        );
        let entry = hall.enter("attic", "bob", &2).unwrap();
        assert_eq!((entry.members, entry.told), (vec!["alice".to_owned(), "bob".to_owned()], vec![1]));
        assert_eq!(hall.audience("attic", "bob", &2), Ok(vec![1, 2]));
        let left = hall.leave("attic", "alice", &1).unwrap();
        assert_eq!(left, Departure { room: "attic".into(), account: "alice".into(), told: vec![2] });
        assert_eq!(hall.audience("attic", "alice", &1), Err(codes::NOT_IN_ROOM));
        assert!(hall.leave("attic", "bob", &2).unwrap().told.is_empty());
        assert_eq!((hall.rooms(), hall.who("attic")), (0, vec![]));
        hall.check();
    }

    #[test]
    fn the_late_end_of_an_old_link_leaves_the_new_one() {
        let mut hall = Hall::default();
        hall.enter("attic", "alice", &1).unwrap();
        hall.enter("cellar", "alice", &1).unwrap();
        let again = hall.enter("attic", "alice", &2).unwrap();
        assert!(again.told.is_empty(), "nobody is told twice that alice is here");
        assert_eq!(
            hall.audience("attic", "alice", &1),
            Err(codes::NOT_IN_ROOM),
            "the old link speaks no more"
        );
        let departures = hall.broken("alice", &1);
        assert_eq!(departures.iter().map(|left| left.room.as_str()).collect::<Vec<_>>(), ["cellar"]);
        assert_eq!(hall.who("attic"), ["alice"]);
        hall.check();
    }

    #[test]
    fn every_bound_refuses_with_its_code() {
        let mut hall = Hall::default();
        for name in ["", "a\nb", &"x".repeat(33)] {
            assert_eq!(hall.enter(name, "alice", &0), Err(codes::BAD_ROOM_NAME), "{name:?}");
        }
        for n in 0..MEMBERS_MAX as u32 {
            hall.enter("attic", &format!("guest-{n}"), &n).unwrap();
        }
        assert_eq!(hall.enter("attic", "late", &9_999), Err(codes::ROOM_FULL));
        assert!(hall.enter("attic", "guest-0", &0).is_ok(), "a member may enter a full room again");
        for n in 1..ROOMS_PER_LINK_MAX {
            hall.enter(&format!("room-{n}"), "guest-0", &0).unwrap();
        }
        assert_eq!(hall.enter("one-more", "guest-0", &0), Err(codes::TOO_MANY_ROOMS));
        for n in hall.rooms() as u32..ROOMS_MAX as u32 {
            hall.enter(&format!("many-{n}"), "someone", &(100_000 + n)).unwrap();
        }
        assert_eq!(hall.enter("one-more", "late", &9_999), Err(codes::NO_MORE_ROOMS));
        hall.check();
    }

    #[test]
    fn both_tables_agree_whatever_happens() {
        for seed in 0..50u64 {
            let mut hall = Hall::default();
            let mut x = seed;
            for step in 0..400 {
                x = base::hash::mix(x.wrapping_add(step));
                let (room, guest, link) =
                    (format!("room-{}", x % 5), format!("guest-{}", x / 5 % 4), x / 20 % 6);
                // A link belongs to one account for ever.
                let link = (guest.clone(), link);
                match x / 120 % 4 {
                    0 | 1 => drop(hall.enter(&room, &guest, &link)),
                    2 => drop(hall.leave(&room, &guest, &link)),
                    _ => drop(hall.broken(&guest, &link)),
                }
                hall.check();
            }
        }
    }
}
