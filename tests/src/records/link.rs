//! Connections between providers and the arbiter: in order, each way by itself. What is under way when one breaks is lost,
//! and a broken one may look whole to either end for long.

use std::collections::BTreeMap;

use base::{Mono, Span};

use crate::sim::Rng;

use super::talk::{ConnId, Place};

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Up,
    Down,
}

/// One connection.
#[derive(Debug)]
pub struct Link {
    pub place: Place,
    /// Nothing passes any more.
    broken: [bool; 2],
    /// When the last message of each way arrives.
    last: [Mono; 2],
}

/// What is wrong with the way of a provider to the arbiter.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weather {
    /// Everything takes up to this much longer until then.
    pub slow: Option<(Span, Mono)>,
    /// Nobody gets through until then.
    pub shut: Mono,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Links {
    links: BTreeMap<ConnId, Link>,
    weather: BTreeMap<usize, Weather>,
    made: ConnId,
}

impl Links {
    pub fn open(&mut self, place: Place) -> ConnId {
        self.made += 1;
        let link = Link { place, broken: [false; 2], last: [Mono::ZERO; 2] };
        self.links.insert(self.made, link);
        self.made
    }

    pub fn get(&self, conn: ConnId) -> Option<&Link> {
        self.links.get(&conn)
    }

    /// Whether what was sent this way still arrives.
    pub fn carries(&self, conn: ConnId, way: Way) -> bool {
        self.links.get(&conn).is_some_and(|link| !link.broken[way as usize])
    }

    /// Nothing passes this way any more, and nobody is told.
    pub fn silence(&mut self, conn: ConnId, way: Way) {
        if let Some(link) = self.links.get_mut(&conn) {
            link.broken[way as usize] = true;
        }
    }

    pub fn close(&mut self, conn: ConnId) -> Option<Link> {
        self.links.remove(&conn)
    }

    /// When a message that is sent now arrives: never before an earlier one.
    pub fn arrives(&mut self, conn: ConnId, way: Way, now: Mono, rng: &mut Rng) -> Option<Mono> {
        let link = self.links.get_mut(&conn)?;
        let slow = self.weather.get(&link.place.who).and_then(|weather| weather.slow);
        let more = slow.filter(|(_, until)| *until > now).map_or(0, |(most, _)| rng.below(most.0));
        // Rarely a packet is lost, and sent again a little later.
        let lost = if rng.one_in(200) { rng.between(20_000, 250_000) } else { 0 };
        let at = now + Span(rng.between(100, 2_000) + more + lost);
        let last = &mut link.last[way as usize];
        *last = (*last).max(at);
        Some(*last)
    }

    pub fn weather(&mut self, who: usize) -> &mut Weather {
        self.weather.entry(who).or_default()
    }

    pub fn is_shut(&self, who: usize, now: Mono) -> bool {
        self.weather.get(&who).is_some_and(|weather| weather.shut > now)
    }

    pub fn heal(&mut self) {
        self.weather.clear();
    }
}
