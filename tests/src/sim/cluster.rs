//! The whole cluster and its one loop: the next thing happens, to whom it happens, until all has come to rest.

use base::{Mono, Span};
use linkstead::LinkRef;
use service_manager::directory::Terms;

use super::client::ClientNode;
use super::directory::DirectoryNode;
use super::disk::Disk;
use super::env::{Env, TICK};
use super::invariants::{Seen, Watch};
use super::linkd::LinkdNode;
use super::member::{Member, News};
use super::network::{ConnId, Network, Place, Side};
use super::plan::{HEAL, Plan, Who};
use super::process::{Node, Slot};
use super::provider::ProviderNode;
use super::queue::{Item, Queue};
use super::rng::Rng;
use super::talk::Talk;
use super::trace::{Keep, Trace};

/// So long after healing every client has logged in and heard from every module.
pub const PROGRESS: Span = Span::secs(60);
/// How long a node may be gone before what it left behind is handed over.
pub const LINGER: Span = Span::secs(8);
/// From the last request to the last look.
const REST: Span = Span::secs(6);
/// What the wall clock says at the start, in microseconds.
const WALL: u64 = 1_700_000_000_000_000;

#[derive(Debug)]
pub struct Cluster {
    pub plan: Plan,
    pub env: Env,
    pub slots: Vec<Slot>,
    pub steps: u64,
    /// By how much the directory's wall clock was set back.
    pub wall_back: Span,
    /// When the run ends, once it is known.
    over: Option<Mono>,
}

impl Cluster {
    pub fn new(plan: Plan, keep: Keep) -> Self {
        let mut slots = vec![Slot::new(Who::Directory, false)];
        slots.extend((0..plan.linkds).map(|n| Slot::new(Who::Linkd(n), false)));
        slots.extend((0..plan.offers.len() as u8).map(|n| Slot::new(Who::Provider(n), false)));
        slots.extend((0..plan.clients).map(|n| Slot::new(Who::Client(n), false)));
        let mut env = Env {
            now: Mono::ZERO,
            rng: Rng::new(base::hash::mix(plan.seed ^ 0x0072_756e)),
            queue: Queue::default(),
            network: Network::default(),
            trace: Trace::new(keep),
            watch: Watch::default(),
            disk: Disk::default(),
            ended: Vec::new(),
            terms: terms(plan.brisk),
            beat: if plan.brisk { Span::millis(1_500) } else { Span::secs(3) },
            healed: false,
            quiet: false,
        };
        for slot in 0..slots.len() {
            let wait = env.rng.millis(0, 1_500);
            env.after(wait, Item::Start(slot));
        }
        for (index, planned) in plan.faults.iter().enumerate() {
            env.queue.push(planned.at, Item::Fault(index));
        }
        env.queue.push(HEAL, Item::Heal);
        Self { plan, env, slots, steps: 0, wall_back: Span::ZERO, over: None }
    }

    /// Runs to the end, or to the first broken promise.
    pub fn run(&mut self) {
        while let Some((at, item)) = self.env.queue.pop() {
            self.env.now = at;
            if self.over.is_some_and(|over| at >= over) || self.env.watch.violation.is_some() {
                return;
            }
            self.steps += 1;
            self.happen(item);
            self.bury();
            self.judge_progress();
        }
    }

    /// When everybody is content: a last quiet while, and the end.
    fn judge_progress(&mut self) {
        if !self.env.healed || self.over.is_some() {
            return;
        }
        let healed = self.env.now.since(HEAL);
        let settled = healed >= self.env.terms.ttl.max(self.env.terms.warming) + REST;
        if healed >= PROGRESS {
            self.over = Some(self.env.now);
        } else if settled && self.clients().all(ClientNode::is_content) && self.is_handed_over() {
            self.env.quiet = true;
            self.over = Some(self.env.now + REST);
        }
    }

    /// Nothing of whoever is gone waits for somebody to go on with it.
    fn is_handed_over(&self) -> bool {
        self.directory().is_some_and(|directory| directory.core.status().left == 0)
    }

    fn happen(&mut self, item: Item) {
        match item {
            Item::Deliver { conn, to, talk } => self.deliver(conn, to, talk),
            Item::Gone { conn, to } => self.gone(conn, to),
            Item::Tick(place) => self.tick(place),
            Item::Worked { at, conn, sid, job } => {
                let slot = &mut self.slots[at.slot];
                if slot.runs(at) && slot.paused {
                    slot.backlog.push_back(Item::Worked { at, conn, sid, job });
                } else if let Some(node) = slot.node.as_mut().filter(|_| slot.life == at.life) {
                    node.worked(&mut self.env, conn, sid, job);
                }
            }
            Item::Saved(place) => {
                let slot = &mut self.slots[place.slot];
                if slot.runs(place) && slot.paused {
                    slot.backlog.push_back(Item::Saved(place));
                } else if let Some(Node::Directory(node)) =
                    slot.node.as_mut().filter(|_| slot.life == place.life)
                {
                    node.saved(&mut self.env);
                }
            }
            Item::Fault(index) => self.begin(index),
            Item::Lift(index) => self.lift(index),
            Item::Start(slot) => self.start(slot),
            Item::Resume(slot) => self.resume(slot),
            Item::Heal => self.heal(),
        }
    }

    fn deliver(&mut self, conn: ConnId, to: Side, talk: Talk) {
        let Some(place) = self.env.network.receiver(conn, to) else { return };
        let Some(slot) = self.slots.get_mut(place.slot) else { return self.env.refuse(conn) };
        if let Talk::Syn(syn) = &talk {
            if !slot.node.as_ref().is_some_and(|node| node.accepts(syn)) {
                return self.env.refuse(conn);
            }
            self.env.network.accept(conn, slot.life);
        } else if !slot.runs(place) {
            return;
        }
        if slot.paused {
            slot.backlog.push_back(Item::Deliver { conn, to, talk });
            return;
        }
        let place = Place { slot: place.slot, life: slot.life };
        self.env.network.heard(conn, to, self.env.now);
        match talk {
            Talk::Ping => return self.env.send(place, conn, Talk::Pong),
            Talk::Pong => return,
            _ => {}
        }
        let who = slot.who;
        self.env.trace.say(self.env.now, || format!("{who} {conn} <- {talk}"));
        let node = slot.node.as_mut();
        if let Some(News::Refused) = node.and_then(|node| node.take(&mut self.env, conn, talk)) {
            self.env.ended.push(place);
        }
    }

    fn gone(&mut self, conn: ConnId, to: Side) {
        let Some(place) = self.env.network.end(conn, to) else { return };
        let Some(slot) = self.slots.get_mut(place.slot) else { return };
        if slot.runs(place) && slot.paused {
            slot.backlog.push_back(Item::Gone { conn, to });
            return;
        }
        // Whoever hears of the end closes its own half.
        self.env.end_told(conn, 1 - to);
        self.env.network.shut(conn, to);
        if let Some(node) = slot.node.as_mut().filter(|_| slot.life == place.life) {
            let who = slot.who;
            self.env.trace.say(self.env.now, || format!("{who} {conn} is over"));
            node.gone(&mut self.env, conn);
        }
    }

    fn tick(&mut self, place: Place) {
        let linkds = self.listening();
        let slot = &mut self.slots[place.slot];
        if slot.runs(place) && slot.paused {
            slot.backlog.push_back(Item::Tick(place));
        } else if let Some(node) = slot.node.as_mut().filter(|_| slot.life == place.life) {
            node.tick(&mut self.env, &linkds);
            self.env.after(TICK, Item::Tick(place));
        }
    }

    /// Where a client could find a linkd: those with an open port, or any when there is none.
    fn listening(&self) -> Vec<usize> {
        let open = |slot: &Slot| matches!(&slot.node, Some(Node::Linkd(linkd)) if linkd.is_open());
        let linkd = |slot: &Slot| matches!(slot.who, Who::Linkd(_));
        let find = |is: &dyn Fn(&Slot) -> bool| -> Vec<usize> {
            self.slots.iter().enumerate().filter(|(_, slot)| is(slot)).map(|(index, _)| index).collect()
        };
        let found = find(&open);
        if found.is_empty() { find(&linkd) } else { found }
    }

    pub fn start(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if slot.node.is_some() || slot.retired {
            return;
        }
        slot.life += 1;
        let (who, me) = (slot.who, Place { slot: index, life: slot.life });
        let wall = WALL + self.env.now.0 - self.wall_back.0;
        self.env.trace.say(self.env.now, || format!("{who} starts as {me}"));
        slot.node = Some(Node::new(&mut self.env, &self.plan, who, me, wall));
        let phase = self.env.rng.millis(1, TICK.as_millis());
        self.env.after(phase, Item::Tick(me));
    }

    /// The process ends.
    pub fn stop(&mut self, index: usize, hard: bool) {
        let slot = &mut self.slots[index];
        let place = Place { slot: index, life: slot.life };
        if let Some(node) = slot.node.take() {
            if let Node::Directory(mut node) = node {
                node.crash(&mut self.env);
            }
            slot.paused = false;
            slot.backlog.clear();
            let who = slot.who;
            self.env.trace.say(self.env.now, || format!("{who} ends as {place}"));
            self.env.hang_up(place, hard);
            self.env.see(&Seen::Ended { place });
        }
    }

    pub fn resume(&mut self, index: usize) {
        self.slots[index].paused = false;
        while let Some(item) = self.slots[index].backlog.pop_front() {
            self.happen(item);
        }
    }

    /// Processes that ended by themselves are started anew, as a supervisor does.
    fn bury(&mut self) {
        while let Some(place) = self.env.ended.pop() {
            self.stop(place.slot, false);
            if !self.slots[place.slot].twin {
                let wait = self.env.rng.millis(500, 2_500);
                self.env.after(wait, Item::Start(place.slot));
            }
        }
    }

    /// The names of the linkds and providers that run, in order.
    pub fn members(&self) -> Vec<String> {
        let member =
            |slot: &&Slot| matches!(slot.who, Who::Linkd(_) | Who::Provider(_)) && slot.node.is_some();
        let mut names: Vec<_> = self.slots.iter().filter(member).map(|slot| slot.who.to_string()).collect();
        names.sort();
        names
    }

    pub fn directory(&self) -> Option<&DirectoryNode> {
        self.slots.iter().find_map(|slot| match &slot.node {
            Some(Node::Directory(node)) => Some(&**node),
            _ => None,
        })
    }

    pub fn linkds(&self) -> impl Iterator<Item = &LinkdNode> {
        self.slots.iter().filter_map(|slot| match &slot.node {
            Some(Node::Linkd(node)) => Some(&**node),
            _ => None,
        })
    }

    /// Everybody who has a session with the directory.
    pub fn joined(&self) -> impl Iterator<Item = &Member> {
        let linkds = self.linkds().map(|linkd| &linkd.member);
        linkds.chain(self.providers().map(|provider| &provider.member)).filter(|member| member.is_admitted())
    }

    /// Whether the linkd of this session has it.
    pub fn holds(&self, link: &LinkRef) -> bool {
        let its = |linkd: &&LinkdNode| *linkd.name() == link.linkd && linkd.member.epoch == link.epoch;
        self.linkds().filter(its).any(|linkd| linkd.sids().any(|sid| sid == link.sid))
    }

    pub fn providers(&self) -> impl Iterator<Item = &ProviderNode> {
        self.slots.iter().filter_map(|slot| match &slot.node {
            Some(Node::Provider(node)) => Some(&**node),
            _ => None,
        })
    }

    pub fn clients(&self) -> impl Iterator<Item = &ClientNode> {
        self.slots.iter().filter_map(|slot| match &slot.node {
            Some(Node::Client(node)) => Some(&**node),
            _ => None,
        })
    }
}

/// The defaults of `[service_manager]`, or shorter ones in the same proportions.
fn terms(brisk: bool) -> Terms {
    let [heartbeat, ttl, warming] = if brisk { [2, 6, 6] } else { [5, 15, 15] }.map(Span::secs);
    let (probe, hello, offline_linger) = (Span::secs(1), Span::secs(10), LINGER);
    Terms { heartbeat, ttl, warming, probe, hello, offline_linger }
}
