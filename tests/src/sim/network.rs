//! The network between processes: each connection is an ordered stream each way with delays of its own, and nothing is
//! promised across connections. Connections are cut, stalled or left half-open as the plan says.

use std::collections::BTreeMap;
use std::fmt;

use base::{Mono, Span};

use super::env::Env;
use super::queue::Item;
use super::talk::{Syn, Talk};

/// No wire outside a block delays a message longer than this.
pub const DELAY_MS_MAX: u64 = 300;

/// One connection, counted over the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnId(pub u64);

impl fmt::Display for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "~{}", self.0)
    }
}

/// One start of the process in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub slot: usize,
    pub life: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}.{}", self.slot, self.life)
    }
}

/// 0 dialled, 1 accepted.
pub type Side = usize;

/// A life that no process has: nobody has accepted yet.
const NOBODY: u32 = u32::MAX;

#[derive(Debug)]
struct Wire {
    ends: [End; 2],
    /// Nothing sent or under way arrives any more, and neither end is told.
    cut: bool,
    /// The next change or question that the directory tells here vanishes.
    loses_notice: bool,
    /// It comes twice.
    doubles_notice: bool,
}

#[derive(Debug)]
struct End {
    place: Place,
    open: bool,
    /// Whatever reaches this end next does so no earlier.
    due: Mono,
    heard: Mono,
    asked: bool,
}

#[derive(Debug, Default)]
pub struct Network {
    wires: BTreeMap<ConnId, Wire>,
    /// From slot, to slot: what is sent before then arrives after then.
    blocked: BTreeMap<(usize, usize), Mono>,
    /// When the last fault that touched a slot is over.
    disturbed: BTreeMap<usize, Mono>,
    dialled: u64,
}

impl Network {
    /// Where a message for this end goes. `None`: nobody is there, or it was lost.
    pub fn receiver(&self, conn: ConnId, to: Side) -> Option<Place> {
        let wire = self.wires.get(&conn).filter(|wire| !wire.cut)?;
        wire.ends[to].open.then_some(wire.ends[to].place)
    }

    /// Who is told of the end: also over a cut connection, when its end notices by itself.
    pub fn end(&self, conn: ConnId, to: Side) -> Option<Place> {
        let wire = self.wires.get(&conn)?;
        wire.ends[to].open.then_some(wire.ends[to].place)
    }

    pub fn peer(&self, conn: ConnId, of: Side) -> Option<Place> {
        Some(self.wires.get(&conn)?.ends[1 - of].place)
    }

    pub fn accept(&mut self, conn: ConnId, life: u32) {
        if let Some(wire) = self.wires.get_mut(&conn) {
            wire.ends[1].place.life = life;
        }
    }

    pub fn heard(&mut self, conn: ConnId, at: Side, now: Mono) {
        if let Some(wire) = self.wires.get_mut(&conn) {
            (wire.ends[at].heard, wire.ends[at].asked) = (now, false);
        }
    }

    /// Closes this end without telling the other; a connection without ends is forgotten.
    pub fn shut(&mut self, conn: ConnId, at: Side) {
        if let Some(wire) = self.wires.get_mut(&conn) {
            wire.ends[at].open = false;
            if !wire.ends[1 - at].open {
                self.wires.remove(&conn);
            }
        }
    }

    /// Every connection between two slots.
    pub fn between(&self, a: usize, b: usize) -> Vec<ConnId> {
        let joins = |wire: &Wire| {
            let slots = wire.ends.each_ref().map(|end| end.place.slot);
            slots == [a, b] || slots == [b, a]
        };
        self.wires.iter().filter(|(_, wire)| joins(wire)).map(|(&conn, _)| conn).collect()
    }

    pub fn cut(&mut self, conn: ConnId) {
        if let Some(wire) = self.wires.get_mut(&conn) {
            wire.cut = true;
        }
    }

    pub fn lose_notice(&mut self, conn: ConnId) {
        if let Some(wire) = self.wires.get_mut(&conn) {
            wire.loses_notice = true;
        }
    }

    pub fn double_notice(&mut self, conn: ConnId) {
        if let Some(wire) = self.wires.get_mut(&conn) {
            wire.doubles_notice = true;
        }
    }

    pub fn block(&mut self, from: usize, to: usize, until: Mono) {
        self.blocked.insert((from, to), until);
    }

    /// Nothing new is held up or lost. Cut connections stay cut: their ends must notice.
    pub fn heal(&mut self) {
        self.blocked.clear();
        self.wires.values_mut().for_each(|wire| (wire.loses_notice, wire.doubles_notice) = (false, false));
    }

    /// A fault touches this slot until then.
    pub fn disturb(&mut self, slot: usize, until: Mono) {
        let known = self.disturbed.entry(slot).or_default();
        *known = until.max(*known);
    }

    /// Nothing has touched this connection or its ends for so long that whatever was asked there is answered.
    pub fn is_healthy(&self, conn: ConnId, now: Mono) -> bool {
        let Some(wire) = self.wires.get(&conn).filter(|wire| !wire.cut) else { return false };
        wire.ends.iter().all(|end| end.open && self.is_calm(end.place.slot, now))
    }

    /// This start runs, and nothing has kept it from speaking for a while.
    pub fn could_speak(&self, place: Place, now: Mono) -> bool {
        let mine = |wire: &Wire| wire.ends.iter().any(|end| end.place == place && end.open);
        self.is_calm(place.slot, now) && self.wires.values().any(mine)
    }

    fn is_calm(&self, slot: usize, now: Mono) -> bool {
        self.disturbed.get(&slot).is_none_or(|&over| over + Span::secs(3) < now)
    }

    fn side(&self, conn: ConnId, place: Place) -> Option<Side> {
        let wire = self.wires.get(&conn)?;
        (0..2).find(|&side| wire.ends[side].place == place && wire.ends[side].open)
    }
}

impl Env {
    /// Dials; what is sent at once waits behind the hello.
    pub fn dial(&mut self, from: Place, to: usize, syn: Syn) -> ConnId {
        self.network.dialled += 1;
        let conn = ConnId(self.network.dialled);
        let end = |place| End { place, open: true, due: Mono::ZERO, heard: self.now, asked: false };
        let ends = [end(from), end(Place { slot: to, life: NOBODY })];
        self.network
            .wires
            .insert(conn, Wire { ends, cut: false, loses_notice: false, doubles_notice: false });
        self.send(from, conn, Talk::Syn(syn));
        conn
    }

    pub fn send(&mut self, from: Place, conn: ConnId, talk: Talk) {
        let Some(side) = self.network.side(conn, from) else { return };
        let Some(wire) = self.network.wires.get_mut(&conn).filter(|wire| !wire.cut) else { return };
        if wire.loses_notice && talk.is_notice() {
            wire.loses_notice = false;
            self.trace.say(self.now, || format!("{conn} loses {talk}"));
            return;
        }
        let to = 1 - side;
        if wire.doubles_notice
            && let Some(again) = talk.again()
        {
            wire.doubles_notice = false;
            self.trace.say(self.now, || format!("{conn} doubles {talk}"));
            if let Some(at) = self.due(conn, to) {
                self.queue.push(at, Item::Deliver { conn, to, talk: again });
            }
        }
        if let Some(at) = self.due(conn, to) {
            self.queue.push(at, Item::Deliver { conn, to, talk });
        }
    }

    /// Closes this end; the other learns it behind what was sent before.
    pub fn close(&mut self, from: Place, conn: ConnId) {
        let Some(side) = self.network.side(conn, from) else { return };
        self.end_told(conn, 1 - side);
        self.network.shut(conn, side);
    }

    /// Ends the sending half only: what the other still says is heard until it has noticed and closes.
    pub fn finish(&mut self, from: Place, conn: ConnId) {
        if let Some(side) = self.network.side(conn, from) {
            self.end_told(conn, 1 - side);
        }
    }

    /// Tells the end `to` that the connection is over, in order, unless the connection is cut.
    pub fn end_told(&mut self, conn: ConnId, to: Side) {
        if self.network.receiver(conn, to).is_some()
            && let Some(at) = self.due(conn, to)
        {
            self.queue.push(at, Item::Gone { conn, to });
        }
    }

    /// The process is gone. Killed softly its system closes its connections; hard, nobody says anything.
    pub fn hang_up(&mut self, place: Place, hard: bool) {
        let ends = |(&conn, wire): (&ConnId, &Wire)| {
            (0..2)
                .find(|&side| wire.ends[side].place == place && wire.ends[side].open)
                .map(|side| (conn, side))
        };
        let mine: Vec<_> = self.network.wires.iter().filter_map(ends).collect();
        for (conn, side) in mine {
            if !hard {
                self.end_told(conn, 1 - side);
            }
            self.network.shut(conn, side);
        }
    }

    /// Nobody accepts at the other end.
    pub fn refuse(&mut self, conn: ConnId) {
        self.end_told(conn, 0);
        self.network.shut(conn, 1);
    }

    /// How long this end has heard nothing; asks once when that is long. `None`: the end is closed.
    pub fn silence(&mut self, me: Place, conn: ConnId) -> Option<Span> {
        let side = self.network.side(conn, me)?;
        let end = &mut self.network.wires.get_mut(&conn)?.ends[side];
        let silent = self.now.since(end.heard);
        if silent >= self.beat && !end.asked {
            end.asked = true;
            self.send(me, conn, Talk::Ping);
        }
        Some(silent)
    }

    /// When the next message reaches the end `to`: never before one sent earlier.
    fn due(&mut self, conn: ConnId, to: Side) -> Option<Mono> {
        let delay = match self.rng.below(400) {
            0 => self.rng.millis(80, DELAY_MS_MAX),
            1..20 => self.rng.millis(3, 80),
            _ => Span::micros(self.rng.between(150, 3_000)),
        };
        let wire = self.network.wires.get_mut(&conn)?;
        let (from, slot) = (wire.ends[1 - to].place.slot, wire.ends[to].place.slot);
        let free = self.network.blocked.get(&(from, slot)).copied().unwrap_or_default();
        let end = &mut wire.ends[to];
        end.due = end.due.max(self.now.max(free) + delay);
        Some(end.due)
    }
}
