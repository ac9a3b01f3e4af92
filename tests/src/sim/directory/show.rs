//! What those who watch are told of a directory: who was let in, given up or given something, once it is said.

use std::collections::BTreeSet;

use base::{Generation, NodeId, Span};
use service_manager::directory::{Action, Cause, Event};
use wire::code;
use wire::directory::{from_directory::Kind as From, to_directory::Kind as To};

use super::super::env::Env;
use super::super::invariants::{Claimed, Seen};
use super::{DirectoryNode, Said};

impl DirectoryNode {
    /// What a session that is not closed asks, as far as anybody watches that.
    pub(super) fn asks(&self, session: Generation, event: &Event) -> Option<(Generation, To)> {
        let Event::Said { message, .. } = event else { return None };
        let open = self.sessions.get(&session).is_some_and(|known| !known.closed);
        let watched = matches!(message, To::Claim(_) | To::OfflineIds(_) | To::OfflineTaken(_));
        (open && watched).then(|| (session, message.clone()))
    }

    /// The nodes that are listed no more. Time alone removes only whom it has heard nothing from.
    pub(super) fn look_for_lost(&mut self, env: &mut Env, by_time: bool) -> Vec<NodeId> {
        let listed: BTreeSet<NodeId> = self.core.nodes().into_iter().map(|info| info.node).collect();
        let gone: Vec<_> = self.starts.extract_if(.., |node, _| !listed.contains(node)).collect();
        for (node, start) in gone.iter().filter(|_| by_time) {
            let healthy = env.network.could_speak(*start, env.now);
            env.see(&Seen::Evicted { node: node.as_str(), healthy });
        }
        gone.into_iter().map(|(node, _)| node).collect()
    }

    pub(super) fn show(&mut self, env: &mut Env, said: &Said) {
        for node in &said.lost {
            env.see(&Seen::Lost { node: node.as_str(), at: said.at });
        }
        if said.warm {
            env.see(&Seen::Warm { directory: self.me });
        }
        self.show_admission(env, said);
        self.show_questions(env, said);
        if let Some((session, asked)) = &said.asked {
            self.show_asked(env, said, *session, asked);
        }
    }

    /// Which start was let in and which one lost its place to it.
    fn show_admission(&mut self, env: &mut Env, said: &Said) {
        let mut loser = None;
        for (session, message) in said.actions.iter().flat_map(Action::said) {
            let Some(known) = self.sessions.get(&session) else { continue };
            match message {
                From::Refused(refused) if refused.code == code::STALE_EPOCH.number => {
                    self.starts
                        .retain(|node, start| node.as_str() != known.node || Some(*start) != known.start);
                    loser = Some(known);
                }
                From::Welcome(welcome) => {
                    let Some(start) = known.start else { continue };
                    let (node, claimed, epoch) = (&known.node, known.claimed, welcome.epoch);
                    let (warming, remembers) = (welcome.warming, self.remembers);
                    self.starts.extend(NodeId::new(node).ok().map(|node| (node, start)));
                    let (directory, at) = (self.me, said.at);
                    let welcome =
                        Seen::Welcome { directory, at, node, start, claimed, epoch, warming, remembers };
                    env.see(&welcome);
                    env.see(&Seen::Met { at: self.me, epoch });
                    let other =
                        |loser: &&super::Session| loser.node == known.node && loser.start != known.start;
                    if let Some(loser) = loser.take().filter(other) {
                        let healthy = env.network.is_healthy(loser.conn, env.now);
                        env.see(&Seen::Superseded { node, claimed, healthy });
                    }
                }
                _ => {}
            }
        }
    }

    /// Who is asked to go on with what somebody left behind.
    fn show_questions(&self, env: &mut Env, said: &Said) {
        for action in &said.actions {
            if let Action::Send { message: From::Offline(question), .. } = action {
                env.see(&Seen::HandedOver { directory: self.me, at: said.at, question });
            }
        }
    }

    fn show_asked(&self, env: &mut Env, said: &Said, session: Generation, asked: &To) {
        let Some(known) = self.sessions.get(&session) else { return };
        let closes =
            |action: &Action| matches!(action, Action::Close { session: closed } if *closed == session);
        if said.actions.iter().any(closes) {
            return;
        }
        match asked {
            To::Claim(claim) => {
                let answer = said.actions.iter().find_map(|action| match action {
                    Action::Send { message: From::Claimed(answer), .. } => Some(answer.code),
                    _ => None,
                });
                // A claim that is said again is answered only when it is refused.
                if answer.unwrap_or(if claim.replay { 0 } else { -1 }) == 0 {
                    let until = said.at + Span::millis(claim.ttl_ms.into());
                    let (directory, remembers) = (self.me, self.remembers);
                    let warming = self.core.status().warming;
                    let claimed = Claimed {
                        directory,
                        remembers,
                        warming,
                        node: &known.node,
                        claim,
                        at: said.at,
                        until,
                    };
                    env.see(&Seen::Claimed(claimed));
                }
            }
            To::OfflineIds(ids) => {
                env.see(&Seen::Named { directory: self.me, node: &known.node, ids: &ids.ids });
            }
            To::OfflineTaken(answer) => {
                let counted = |action: &Action| *action == Action::Count(Cause::TakenOver);
                if said.actions.iter().any(counted) {
                    env.see(&Seen::TakenOver { directory: self.me, seq: answer.seq });
                }
            }
            _ => {}
        }
    }
}
