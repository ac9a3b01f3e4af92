//! Turns the router's actions into bytes on connections.

use base::LinkSid;
use bytes::{BufMut, BytesMut};
use net::link::OUTBOX_BYTES_MAX;
use net::outbox::NotQueued;
use wire::link::{self, Dispatch, LinkBroken, UserState};
use wire::node::Meta;
use wire::payload::{self, Head};
use wire::{auth, handshake, report};

use super::state::{Provider, State};
use crate::auth::Begun;
use crate::router::{Action, Answer, Event, Loss, Proof, ProviderRef};

/// A provider with this much queued takes no more requests, and clients that send it more are held back.
pub const HIGH_WATER_BYTES: usize = 8 * 1024 * 1024;
/// More than any frame that linkd itself writes to a client.
const OWN_FRAME_BYTES: usize = 256;

impl State {
    pub fn perform(&mut self, action: Action, bytes: &[u8]) {
        match action {
            Action::Forward { sid } => {
                self.counters.frame_out();
                self.queue_for_client(sid, bytes.len(), |out| out.put_slice(bytes));
            }
            Action::Refuse { sid, type_id, session, result } => {
                self.counters.refused();
                self.queue_for_client(sid, OWN_FRAME_BYTES, |out| {
                    payload::encode_refusal(out, type_id, session, result)
                });
            }
            Action::KeepAlive { sid, session } => {
                self.queue_for_client(sid, OWN_FRAME_BYTES, |out| handshake::keep_alive_answer(out, session));
            }
            Action::ServerHandshake { sid } => {
                self.queue_for_client(sid, OWN_FRAME_BYTES, handshake::server_handshake);
            }
            Action::Authed { sid, session } => {
                if let Some(client) = self.client(sid) {
                    client.admission.authed();
                }
                let head = Head::response(session, 0);
                self.queue_for_client(sid, OWN_FRAME_BYTES, |out| {
                    payload::encode_frame(out, auth::AUTH, head, |out| out.put_u8(0));
                });
            }
            Action::Report { sid, from, code, text } => {
                let len = OWN_FRAME_BYTES + text.len();
                self.queue_for_client(sid, len, |out| report::encode(out, from, code, &text));
            }
            Action::CloseClient { sid, from, code, text } => {
                if let Some(client) = self.end_client(sid) {
                    client.outbox.close_with(|out| report::encode(out, from, code, &text));
                    client.ended.notify_one();
                }
            }
            Action::Authenticate { sid, proof } => self.authenticate(sid, *proof),
            Action::AuthFailed { addr, code } => self.gate.failed(addr.ip(), code),
            Action::Dropped(loss) => self.counters.dropped(loss),
            // The shell that opened the connection answers these itself.
            Action::Accept { .. } | Action::RefuseClient { .. } => {}
            // Performed with the frame at hand by `dispatch`.
            Action::Dispatch { to, sid, type_id } => {
                let _ = self.dispatch(to, Dispatch { link_sid: sid, type_id }, bytes);
            }
            other => self.perform_for_provider(other),
        }
    }

    fn perform_for_provider(&mut self, action: Action) {
        match action {
            Action::Opened { to, opened } => {
                let meta = Meta::notice(link::OPENED);
                self.queue_for_provider(to, |provider| provider.link.push_message(&meta, &*opened));
            }
            Action::UserState { to, sid, role } => {
                let head = UserState { link_sid: sid, role }.encode();
                self.queue_for_provider(to, |provider| {
                    provider.link.push(&Meta::notice(link::USER_STATE), &head, &[])
                });
            }
            Action::LinkBroken { to, sid, cause } => {
                let head = LinkBroken { link_sid: sid, cause }.encode();
                self.queue_for_provider(to, |provider| {
                    provider.link.push(&Meta::notice(link::LINK_BROKEN), &head, &[])
                });
            }
            Action::Answer { conn, call, answer } => {
                let Some(provider) = self.providers.iter_mut().flatten().find(|p| p.conn == conn) else {
                    return;
                };
                let link = &provider.link;
                let sent = match answer {
                    Answer::Done => link.reply(call, &()),
                    Answer::Bound(result) => link.reply(call, &result),
                    Answer::Refused { code, text } => link.refuse(call, code, text),
                };
                overflow(provider, sent);
            }
            Action::CloseProvider { conn, code, text } => {
                if let Some(provider) = self.remove_provider(conn) {
                    tracing::warn!(node = %provider.link.peer.node, code = code.name, text, "provider closed");
                    provider.link.goodbye(code, text);
                }
            }
            _ => {}
        }
    }

    /// Judges a proof at once, or lets another node do so and goes on.
    fn authenticate(&mut self, sid: LinkSid, proof: Proof) {
        let by = proof.by.and_then(|to| self.provider(to)).map(|provider| provider.link.clone());
        match self.gate.begin(sid, proof, by) {
            Begun::Judged(judgement) => self.judged.push((sid, judgement)),
            Begun::Waits(pending) => {
                let worker = self.worker.clone();
                tokio::task::spawn_local(async move {
                    let result = pending.await;
                    if let Some(worker) = worker.upgrade() {
                        worker.step(Event::Authenticated { sid, result });
                    }
                });
            }
        }
    }

    /// Queues a client's payload for its provider. The hot path: one copy, no allocation. A request is refused earlier
    /// than a one-way message, because it can be: the client of the latter is held back instead.
    pub fn dispatch(&mut self, to: ProviderRef, dispatch: Dispatch, payload: &[u8]) -> Result<(), NotQueued> {
        let is_request = payload.first().is_some_and(|family| family & 0x1f == 1);
        let bytes_max = if is_request { HIGH_WATER_BYTES } else { OUTBOX_BYTES_MAX };
        let provider = self.provider(to).ok_or(NotQueued::Closed)?;
        provider.link.push_within(bytes_max, &Meta::notice(link::DISPATCH), &dispatch.encode(), payload)?;
        if !provider.touched {
            provider.touched = true;
            self.touched_providers.push(to.slot);
        }
        self.counters.dispatched();
        Ok(())
    }

    /// Queues something a provider must not miss; a connection that can't take it is broken.
    fn queue_for_provider(&mut self, to: ProviderRef, push: impl FnOnce(&Provider) -> Result<(), NotQueued>) {
        let Some(provider) = self.provider(to) else { return };
        let pushed = push(provider);
        overflow(provider, pushed);
        if !provider.touched {
            provider.touched = true;
            self.touched_providers.push(to.slot);
        }
    }

    /// Queues a frame for a client. A client that doesn't read loses its connection, never a single frame.
    fn queue_for_client(&mut self, sid: LinkSid, len: usize, write: impl FnOnce(&mut BytesMut)) {
        let Some(client) = self.client(sid) else {
            self.counters.dropped(Loss::SessionGone);
            return;
        };
        match client.outbox.push(len, write) {
            Ok(()) if client.touched => {}
            Ok(()) => {
                client.touched = true;
                self.touched_clients.push(sid);
            }
            Err(NotQueued::Full { .. }) => self.slow.push(sid),
            Err(NotQueued::Closed) => self.counters.dropped(Loss::SessionGone),
        }
    }
}

/// Session control frames come in order or not at all: when one can't be queued the connection is given up, and the
/// provider learns of every session's end by that.
fn overflow(provider: &Provider, pushed: Result<(), NotQueued>) {
    if let Err(NotQueued::Full { queued, .. }) = pushed {
        tracing::error!(node = %provider.link.peer.node, queued, "a provider doesn't read; its connection is given up");
        provider.link.outbox.abandon();
    }
}
