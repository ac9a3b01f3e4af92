//! What goes wrong, and how it ends.

use base::Span;

use super::item::{Event, Item};
use super::link::Way;
use super::plan::Fault;
use super::talk::{Place, Up};
use super::world::{Phase, World};

impl World {
    pub fn fault(&mut self, fault: Fault) {
        if self.phase != Phase::Faults {
            return;
        }
        self.say(|| format!("! {fault:?}"));
        self.watch.tally.faults += 1;
        match fault {
            Fault::Pause { who, span } => {
                self.providers[who].paused = true;
                let life = self.providers[who].life;
                self.after(span, Item::Resume { who, life });
            }
            Fault::Crash { who, span } => {
                self.crash(who);
                self.after(span, Item::Start { who });
            }
            Fault::Stop { who } => {
                let place = self.providers[who].place();
                self.after(Span::ZERO, Item::In { place, event: Event::Stop });
            }
            Fault::Cut { who } => self.cut(who),
            Fault::Silence { who, up, down, span } => {
                self.links.weather(who).shut = self.now + span;
                if let Some(conn) = self.conn(who) {
                    for (way, silent) in [(Way::Up, up), (Way::Down, down)] {
                        if silent {
                            self.links.silence(conn, way);
                        }
                    }
                }
            }
            Fault::Slow { who, span, most } => {
                self.links.weather(who).slow = Some((most, self.now + span));
            }
            Fault::Ghost { who } => self.ghost(who),
            Fault::ArbiterCrash { span } => self.court_crash(span),
            Fault::ArbiterPause { span } => {
                self.court_paused = true;
                let life = self.court_life;
                self.after(span, Item::CourtResume { life });
            }
            Fault::Storage { trouble, span } => self.storage.trouble(trouble, self.now + span),
            Fault::StorageCrash => {
                // What was on its way is made and not answered, or answered as a failure and not made.
                let trouble = [super::storage::Trouble::Forgets, super::storage::Trouble::Refuses(None)];
                let which = trouble[self.rng.below(2) as usize];
                let span = self.rng.millis(2, 40);
                self.storage.trouble(which, self.now + span);
            }
        }
    }

    fn conn(&self, who: usize) -> Option<u64> {
        self.providers[who].body.as_ref().and_then(|body| body.conn)
    }

    /// Both ends learn of it, each in its time.
    fn cut(&mut self, who: usize) {
        let Some(conn) = self.conn(who) else { return };
        self.links.silence(conn, Way::Up);
        self.links.silence(conn, Way::Down);
        let place = self.providers[who].place();
        let (up, down) = (self.rng.millis(0, 400), self.rng.millis(0, 400));
        self.after(up, Item::Hung { conn });
        self.after(down, Item::In { place, event: Event::Closed { conn } });
    }

    /// A login of an earlier connection arrives late, from somebody who no longer listens.
    fn ghost(&mut self, who: usize) {
        let provider = &self.providers[who];
        let (place, sent) = (provider.place(), provider.clock.here(self.now));
        if provider.body.is_none() {
            return;
        }
        let Some(court) = &mut self.court else { return };
        let conn = self.links.open(place);
        court.opened(conn);
        self.links.silence(conn, Way::Down);
        let late = self.rng.millis(0, 1_500);
        self.after(late, Item::Up { conn, up: Up::Login { place, sent } });
        let over = late + self.rng.millis(0, 800);
        self.after(over, Item::Hung { conn });
    }

    fn crash(&mut self, who: usize) {
        let provider = &mut self.providers[who];
        let place = provider.place();
        let Some(body) = provider.body.take() else { return };
        provider.backlog.clear();
        provider.paused = false;
        self.watch.ledger.lost(place);
        self.watch.ledger.minds.remove(&who);
        if let Some(conn) = body.conn {
            self.links.silence(conn, Way::Up);
            self.links.silence(conn, Way::Down);
            let wait = self.rng.millis(0, 300);
            self.after(wait, Item::Hung { conn });
        }
    }

    fn court_crash(&mut self, span: Span) {
        if self.court.take().is_none() {
            return;
        }
        for who in 0..self.providers.len() {
            self.cut(who);
        }
        let life = self.court_life;
        self.after(span, Item::CourtStart { life });
    }

    /// A provider has written everything and is gone. It starts again, unless the run is about to end.
    pub fn left(&mut self, place: Place) {
        self.say(|| format!("{place} has left"));
        self.watch.ledger.minds.remove(&place.who);
        self.watch.ledger.lost(place);
        if !matches!(self.phase, Phase::Leaving(_)) {
            let wait = self.rng.millis(1, 1_000);
            self.after(wait, Item::Start { who: place.who });
        }
    }

    /// Nothing goes wrong from now on.
    pub fn heal(&mut self) {
        self.say(|| "all heals".to_owned());
        self.storage.heal();
        self.links.heal();
        if self.court.is_none() {
            self.court_start();
        }
        self.court_resume();
        for who in 0..self.providers.len() {
            let (place, life) = (self.providers[who].place(), self.providers[who].life);
            if self.providers[who].body.is_none() {
                self.after(Span::ZERO, Item::Start { who });
            }
            if self.conn(who).is_some_and(|conn| {
                !(self.links.carries(conn, Way::Up) && self.links.carries(conn, Way::Down))
            }) {
                let conn = self.conn(who).unwrap_or_default();
                self.after(Span::ZERO, Item::In { place, event: Event::Closed { conn } });
            }
            self.after(Span::ZERO, Item::Resume { who, life });
        }
        self.phase = Phase::Healed;
    }
}
