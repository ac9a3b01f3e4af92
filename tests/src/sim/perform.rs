//! What a linkd's actions become on its connections.

use base::LinkSid;
use linkd::router::{Action, ProviderRef};
use wire::link::{LinkBroken, UserState};
use wire::payload::Head;
use wire::{auth, handshake, payload, report};

use super::env::Env;
use super::frames;
use super::input::Input;
use super::linkd::{LinkdNode, Role, own};
use super::network::ConnId;
use super::talk::Talk;

impl LinkdNode {
    pub(super) fn do_one(&mut self, env: &mut Env, worker: usize, input: &Input, action: Action) {
        match action {
            Action::Accept { token, sid } => {
                let conn = ConnId(token);
                self.conns.insert(conn, Role::Client { worker, sid });
                self.workers[worker].clients.insert(sid, conn);
            }
            Action::Forward { sid } => {
                if let Some(frame) = input.forwarded() {
                    self.to_client(env, worker, sid, frame.clone());
                }
            }
            Action::Keep { broadcast } => {
                let frame = input.forwarded().cloned().unwrap_or_default();
                self.workers[worker].kept.insert(broadcast, frame);
            }
            Action::ForwardKept { sid, broadcast } => {
                if let Some(frame) = self.workers[worker].kept.get(&broadcast).cloned() {
                    self.to_client(env, worker, sid, frame);
                }
            }
            Action::Forget { broadcast } => {
                self.workers[worker].kept.remove(&broadcast);
            }
            Action::Refuse { sid, type_id, session, result } => {
                let refusal = own(|out| payload::encode_refusal(out, type_id, session, result));
                self.to_client(env, worker, sid, refusal);
            }
            Action::KeepAlive { sid, session } => {
                self.to_client(env, worker, sid, own(|out| handshake::keep_alive_answer(out, session)));
            }
            Action::ServerHandshake { sid } => {
                self.to_client(env, worker, sid, own(handshake::server_handshake));
            }
            Action::Authed { sid, session } => {
                let answer =
                    frames::whole(auth::AUTH, Head::response(session, 0), |out| out.extend_from_slice(&[0]));
                self.to_client(env, worker, sid, answer);
            }
            Action::Report { sid, from, code, text } => {
                self.to_client(env, worker, sid, own(|out| report::encode(out, from, code, &text)));
            }
            Action::CloseClient { sid, from, code, text } => {
                self.to_client(env, worker, sid, own(|out| report::encode(out, from, code, &text)));
                if let Some(conn) = self.workers[worker].clients.remove(&sid) {
                    self.conns.remove(&conn);
                    env.close(self.me, conn);
                }
            }
            other => self.tell_provider(env, worker, input, other),
        }
    }

    fn tell_provider(&self, env: &mut Env, worker: usize, input: &Input, action: Action) {
        match action {
            Action::Dispatch { to, sid, type_id, .. } => {
                let Input::Frame { bytes, .. } = input else { return };
                // Everything behind the 12 bytes of the header.
                let payload = bytes.slice(wire::frame::HEADER_BYTES..);
                self.to_provider(env, worker, to, Talk::Dispatch { sid, type_id, payload });
            }
            Action::Opened { to, opened } => self.to_provider(env, worker, to, Talk::Opened(opened)),
            Action::UserState { to, sid, role } => {
                self.to_provider(env, worker, to, Talk::UserState(UserState { link_sid: sid, role }));
            }
            Action::LinkBroken { to, sid, cause } => {
                self.to_provider(env, worker, to, Talk::LinkBroken(LinkBroken { link_sid: sid, cause }));
            }
            Action::Answer { conn, call, answer } => {
                if let Some(&conn) = self.workers[worker].providers.get(&conn) {
                    env.send(self.me, conn, Talk::Reply { call, answer });
                }
            }
            Action::Dropped(loss) => *env.watch.tally.lost.entry(loss.as_str()).or_default() += 1,
            _ => {}
        }
    }

    fn to_client(&self, env: &mut Env, worker: usize, sid: LinkSid, frame: bytes::Bytes) {
        if let Some(&conn) = self.workers[worker].clients.get(&sid) {
            env.send(self.me, conn, Talk::Frame(frame));
        }
    }

    fn to_provider(&self, env: &mut Env, worker: usize, to: ProviderRef, talk: Talk) {
        if let Some(&conn) = self.workers[worker].providers.get(&to.conn) {
            env.send(self.me, conn, talk);
        }
    }
}
