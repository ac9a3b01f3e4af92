//! Turns the router's actions into bytes on connections.

use base::{LinkSid, Mono};
use bytes::{BufMut, Bytes, BytesMut};
use net::outbox::NotQueued;
use wire::link::{self, Dispatch, LinkBroken, UserState};
use wire::node::Meta;
use wire::payload::{self, Head};
use wire::{auth, handshake, report};

use super::state::{Provider, State};
use crate::auth::Begun;
use crate::router::{Action, Answer, Event, Loss, Proof, ProviderRef, Weight};

/// More than any frame that linkd itself writes to a client.
const OWN_FRAME_BYTES: usize = 256;

impl State {
    pub fn perform(&mut self, action: Action, bytes: &[u8]) {
        match action {
            Action::Forward { sid } => self.forward(sid, bytes),
            Action::Keep { broadcast } => {
                self.kept.insert(broadcast, Bytes::copy_from_slice(bytes));
            }
            Action::ForwardKept { sid, broadcast } => {
                let kept = self.kept.get(&broadcast).cloned().unwrap_or_default();
                self.forward(sid, &kept);
            }
            Action::Forget { broadcast } => {
                self.kept.remove(&broadcast);
            }
            Action::Refuse { sid, type_id, session, result } => {
                self.counters.refused(result);
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
                self.counters.closing(code);
                if let Some(client) = self.end_client(sid) {
                    client.outbox.close_with(|out| report::encode(out, from, code, &text));
                    client.ended.notify_one();
                }
            }
            Action::Authenticate { sid, proof } => self.authenticate(sid, *proof),
            Action::AuthFailed { addr, code } => self.gate.failed(addr.ip(), code),
            Action::Dropped(loss) => self.counters.dropped(loss),
            Action::Clash { code, text } => tracing::warn!(code = code.name, "a provider is refused: {text}"),
            // Who opened the connection answers the first two; only a client's frame brings the third.
            Action::Accept { .. } | Action::RefuseClient { .. } | Action::Dispatch { .. } => {}
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
                    Answer::Sent(result) => link.reply(call, &result),
                    Answer::Checked(result) => link.reply(call, &result),
                    Answer::Broadcast(result) => link.reply(call, &result),
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

    /// Queues a client's payload for its provider, if the guard lets it. The hot path: one copy, no allocation.
    pub fn dispatch(
        &mut self,
        now: Mono,
        to: ProviderRef,
        dispatch: Dispatch,
        weight: Weight,
        payload: &[u8],
    ) -> Result<(), Loss> {
        let bounds = self.bounds;
        let provider = self.provider(to).ok_or(Loss::NoProvider)?;
        let fresh = !provider.touched;
        if fresh {
            // Once in a batch: what the batch itself adds, the guard knows.
            provider.guard.observe(now, provider.link.outbox.queued());
            provider.touched = true;
        }
        let admitted = provider.guard.admit(now, bounds, weight).and_then(|()| {
            let (meta, head) = (Meta::notice(link::DISPATCH), dispatch.encode());
            provider.link.push(&meta, &head, payload).map_err(|error| match error {
                NotQueued::Full { .. } => Loss::ProviderFull,
                NotQueued::Closed => Loss::NoProvider,
            })
        });
        if fresh {
            self.touched_providers.push(to.slot);
        }
        admitted.inspect(|()| self.counters.dispatched())
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

    fn forward(&mut self, sid: LinkSid, frame: &[u8]) {
        if self.queue_for_client(sid, frame.len(), |out| out.put_slice(frame)) {
            self.counters.frame_out();
        }
    }

    /// Queues a frame for a client; false: it was not, and that is counted. A client that doesn't read loses its
    /// connection, never a single frame.
    fn queue_for_client(&mut self, sid: LinkSid, len: usize, write: impl FnOnce(&mut BytesMut)) -> bool {
        let Some(client) = self.client(sid) else {
            self.counters.dropped(Loss::SessionGone);
            return false;
        };
        match client.outbox.push(len, write) {
            Ok(()) if client.touched => true,
            Ok(()) => {
                client.touched = true;
                self.touched_clients.push(sid);
                true
            }
            Err(NotQueued::Full { .. }) => {
                self.slow.push(sid);
                self.counters.dropped(Loss::SlowReader);
                false
            }
            Err(NotQueued::Closed) => {
                self.counters.dropped(Loss::SessionGone);
                false
            }
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
