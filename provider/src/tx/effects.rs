//! What a transaction says: kept until it is committed, and then sent in order.

use std::future::Future;
use std::pin::Pin;

use base::{Role, TypeId};
use bytes::BytesMut;
use wire::Level;

use crate::broadcast::{self, Audience};
use crate::cx::Cx;
use crate::links::LinkRef;
use crate::meters::Drop;
use crate::{Push, kick, send};

type Task = Box<dyn FnOnce(Cx) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// One thing to be done after the commit.
pub(super) enum Effect {
    Push { links: Vec<LinkRef>, level: Level, frame: BytesMut },
    Broadcast { audience: Audience, level: Level, frame: BytesMut },
    Kick { link: LinkRef, code: i32, text: String },
    Task(Task),
}

/// What one run has said so far.
#[derive(Default)]
pub(super) struct Effects {
    /// The last word on who plays; `Some(None)`: nobody.
    role: Option<Option<Role>>,
    list: Vec<Effect>,
}

/// What a run had said at some moment.
pub(super) type Mark = (Option<Option<Role>>, usize);

impl Effect {
    pub fn push<P: Push>(links: Vec<LinkRef>, push: &P) -> Self {
        Self::Push { links, level: P::LEVEL, frame: frame(P::TYPE_ID, push) }
    }

    pub fn broadcast<P: Push>(audience: Audience, push: &P) -> Self {
        Self::Broadcast { audience, level: P::LEVEL, frame: frame(P::TYPE_ID, push) }
    }
}

fn frame<P: Push>(type_id: TypeId, push: &P) -> BytesMut {
    send::whole(type_id, push)
}

impl Effects {
    pub fn add(&mut self, effect: Effect) {
        self.list.push(effect);
    }

    pub fn set_role(&mut self, role: Option<Role>) {
        self.role = Some(role);
    }

    pub fn role(&self) -> Option<Option<Role>> {
        self.role
    }

    pub fn mark(&self) -> Mark {
        (self.role, self.list.len())
    }

    pub fn back(&mut self, (role, len): Mark) {
        self.role = role;
        self.list.truncate(len);
    }

    /// Sends everything: who plays first, then in the order in which it was said.
    pub fn leave(self, cx: &Cx) {
        let hub = &cx.session().conn.hub;
        if let Some(role) = self.role
            && let Err(error) = cx.set_role(role)
        {
            hub.meters.dropped(Drop::RoleNotSet);
            tracing::debug!(%error, "a role could not be set after a commit");
        }
        for effect in self.list {
            match effect {
                Effect::Push { links, level, frame } => drop(cx.links().send_all(&links, level, &frame)),
                Effect::Broadcast { audience, level, frame } => {
                    broadcast::cast(hub, audience, level, &frame);
                }
                Effect::Kick { link, code, text } => {
                    let there = hub.clone();
                    hub.spawn(async move {
                        if let Err(error) = kick::kick(&there, &link, code, &text).await {
                            tracing::debug!(%link, %error, "a kick after a commit is not confirmed");
                        }
                    });
                }
                Effect::Task(task) => drop(hub.spawn(task(cx.clone()))),
            }
        }
    }
}
