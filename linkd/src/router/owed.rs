//! Core: what a session is owed: its requests that are at a provider and not answered yet. A provider that is lost owes
//! nothing any more, since its gateway answers in its place.

use std::collections::VecDeque;

use base::{Generation, TypeId};

/// The request that an answer belongs to. A client that uses a number twice at once is owed two answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub type_id: TypeId,
    /// The client's RPC session id.
    pub session: i64,
}

/// Room for so many is kept while nothing is open.
const KEPT: usize = 64;

/// The open requests of one session, oldest first. Mostly answered in order, so looking from the front beats a map; it
/// allocates when more are open at once than it has room for.
#[derive(Debug, Default)]
pub struct Owed(VecDeque<(Generation, Request)>);

impl Owed {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// A request goes to this provider's connection.
    pub fn add(&mut self, to: Generation, request: Request) {
        self.0.push_back((to, request));
    }

    /// It was answered, or did not leave. An answer to nothing changes nothing.
    pub fn settle(&mut self, to: Generation, request: Request) {
        if let Some(index) = self.0.iter().position(|open| *open == (to, request)) {
            self.0.remove(index);
            self.give_back();
        }
    }

    /// A session that is calm again doesn't hold the room of its busiest moment.
    fn give_back(&mut self) {
        if self.0.is_empty() && self.0.capacity() > KEPT {
            self.0 = VecDeque::new();
        }
    }

    /// The provider's connection is lost: what it owed.
    pub fn lose(&mut self, to: Generation) -> Vec<Request> {
        let lost = self.0.iter().filter(|(conn, _)| *conn == to).map(|&(_, request)| request).collect();
        self.0.retain(|(conn, _)| *conn != to);
        self.give_back();
        lost
    }

    /// Who owes something.
    pub fn conns(&self) -> impl Iterator<Item = Generation> + '_ {
        self.0.iter().map(|&(conn, _)| conn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(session: i64) -> Request {
        Request { type_id: TypeId(5), session }
    }

    /// Holds: Z-08, Q60.
    #[test]
    fn each_request_is_settled_once_by_whom_it_went_to() {
        let (here, there) = (Generation(1), Generation(2));
        let mut owed = Owed::default();
        for (to, session) in [(here, 1), (there, 2), (here, 3), (here, 3)] {
            owed.add(to, request(session));
        }
        owed.settle(there, request(1));
        assert_eq!(owed.len(), 4);
        owed.settle(here, request(3));
        assert_eq!(owed.lose(here), [request(1), request(3)]);
        assert_eq!(owed.lose(here), []);
        owed.settle(there, request(2));
        owed.settle(there, request(2));
        assert_eq!(owed.len(), 0);
    }

    #[test]
    fn a_burst_leaves_no_room_behind() {
        let mut owed = Owed::default();
        for session in 0..1_000 {
            owed.add(Generation(1), request(session));
        }
        (0..1_000).rev().for_each(|session| owed.settle(Generation(1), request(session)));
        assert!(owed.0.capacity() <= KEPT);
        (0..1_000).for_each(|session| owed.add(Generation(1), request(session)));
        assert_eq!(owed.lose(Generation(1)).len(), 1_000);
        assert!(owed.0.capacity() <= KEPT);
    }
}
