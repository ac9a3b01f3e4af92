//! One slot of the cluster: the process that runs there now, and what waits while it is paused.

use std::collections::VecDeque;

use base::{LinkSid, NodeId};

use super::client::ClientNode;
use super::directory::DirectoryNode;
use super::env::Env;
use super::invariants::Seen;
use super::linkd::LinkdNode;
use super::member::News;
use super::network::{ConnId, Place};
use super::plan::{Plan, Who};
use super::provider::{Job, ProviderNode};
use super::queue::Item;
use super::talk::{Syn, Talk};

#[derive(Debug)]
pub struct Slot {
    pub who: Who,
    /// A second process of a node id that another slot has.
    pub twin: bool,
    /// Never starts again.
    pub retired: bool,
    /// Counts the starts.
    pub life: u32,
    pub node: Option<Node>,
    pub paused: bool,
    pub backlog: VecDeque<Item>,
}

#[derive(Debug)]
pub enum Node {
    Directory(Box<DirectoryNode>),
    Linkd(Box<LinkdNode>),
    Provider(Box<ProviderNode>),
    Client(Box<ClientNode>),
}

impl Slot {
    pub fn new(who: Who, twin: bool) -> Self {
        Self { who, twin, retired: false, life: 0, node: None, paused: false, backlog: VecDeque::new() }
    }

    /// Whether this start is the one that runs.
    pub fn runs(&self, place: Place) -> bool {
        self.node.is_some() && self.life == place.life
    }
}

impl Node {
    pub fn new(env: &mut Env, plan: &Plan, who: Who, me: Place, wall: u64) -> Self {
        match who {
            Who::Directory => {
                env.see(&Seen::Restarts { at: env.now });
                Node::Directory(Box::new(DirectoryNode::new(env, me, wall, plan.store)))
            }
            Who::Linkd(_) => Node::Linkd(Box::new(LinkdNode::new(me, node_id(who), plan.workers))),
            Who::Provider(n) => {
                let offer = plan.offers[usize::from(n)].clone();
                Node::Provider(Box::new(ProviderNode::new(me, node_id(who), u32::from(n) + 1, offer)))
            }
            Who::Client(n) => Node::Client(Box::new(ClientNode::new(me, n, plan.version(n)))),
        }
    }

    /// Whether somebody who dials is let in.
    pub fn accepts(&self, syn: &Syn) -> bool {
        match (self, syn) {
            (Node::Directory(_), Syn::Member) => true,
            (Node::Linkd(linkd), Syn::Client | Syn::Provider { .. }) => linkd.is_open(),
            _ => false,
        }
    }

    pub fn take(&mut self, env: &mut Env, conn: ConnId, talk: Talk) -> Option<News> {
        match (self, talk) {
            (Node::Directory(directory), Talk::Syn(_)) => directory.opened(env, conn),
            (Node::Directory(directory), Talk::To(message)) => directory.message(env, conn, message),
            (Node::Linkd(linkd), Talk::Syn(syn)) => linkd.opened(env, conn, syn),
            (Node::Linkd(linkd), talk) => return linkd.message(env, conn, talk),
            (Node::Provider(provider), talk) => return provider.message(env, conn, talk),
            (Node::Client(client), Talk::Frame(bytes)) => client.message(env, conn, &bytes),
            _ => {}
        }
        None
    }

    pub fn gone(&mut self, env: &mut Env, conn: ConnId) {
        match self {
            Node::Directory(directory) => directory.gone(env, conn),
            Node::Linkd(linkd) => linkd.gone(env, conn),
            Node::Provider(provider) => provider.gone(env, conn),
            Node::Client(client) => client.gone(env, conn),
        }
    }

    pub fn tick(&mut self, env: &mut Env, linkds: &[usize]) {
        match self {
            Node::Directory(directory) => directory.tick(env),
            Node::Linkd(linkd) => linkd.tick(env),
            Node::Provider(provider) => provider.tick(env),
            Node::Client(client) => client.tick(env, linkds),
        }
    }

    pub fn worked(&mut self, env: &mut Env, conn: ConnId, sid: LinkSid, job: Job) {
        if let Node::Provider(provider) = self {
            provider.worked(env, conn, sid, job);
        }
    }
}

/// The node id of a part; a twin has the same.
fn node_id(who: Who) -> NodeId {
    NodeId::new(&who.to_string()).expect("names of parts are letters, digits and dashes")
}
