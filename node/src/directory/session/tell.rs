//! What a session says for the handle beside services and claims: loads, offline ids, and who observes.

use std::collections::BTreeSet;

use base::NodeId;
use wire::directory::{self as msg, to_directory::Kind as To};

use super::super::view::View;
use super::{End, Session};

impl Session {
    /// Keeps the loads of whoever still offers something under a name that is observed.
    pub(super) fn forget_loads(&self, view: &View) {
        let board = self.shared.board.lock();
        let offer: BTreeSet<NodeId> = board
            .observed()
            .iter()
            .flat_map(|name| view.services(name).keys().map(|(_, node)| node.clone()).collect::<Vec<_>>())
            .collect();
        board.retain(|node| offer.contains(node));
    }

    pub(super) async fn ask_for(&mut self, name: String) -> Result<(), End> {
        let loads = self.shared.board.lock().observes(&name);
        if loads {
            self.observed.insert(name.clone());
        }
        self.send(To::Subscribe(msg::Subscribe { name, loads })).await
    }

    /// Says what was not said yet: this node's load, what it would leave behind, what it takes over; and observes.
    pub(super) async fn tell(&mut self) -> Result<(), End> {
        let load = self.shared.board.lock().own(&mut self.loads_said);
        if let Some(load) = load {
            self.send(To::Load(load)).await?;
        }
        let names = self.shared.heirs.lock().names(&mut self.heirs_named);
        if let Some(names) = names {
            self.send(To::OfflineIds(names)).await?;
        }
        while let Some(answer) = self.next_answer() {
            self.send(To::OfflineTaken(answer)).await?;
        }
        let observed = self.shared.board.lock().observed();
        for name in observed {
            if !self.observed.contains(&name) {
                self.ask_for(name).await?;
            }
        }
        Ok(())
    }

    pub(super) fn next_ids(&self) -> Option<msg::AllocateIds> {
        self.shared.ids.lock().next_message()
    }

    pub(super) fn next_claim(&self) -> Option<msg::Claim> {
        self.shared.claims.lock().next()
    }

    fn next_answer(&self) -> Option<msg::OfflineTaken> {
        self.shared.heirs.lock().next_answer()
    }
}

/// The directory can't dial what this node offers, or can again.
pub(super) fn say_unreachable(msg::Unreachable { name, address, text }: &msg::Unreachable) {
    if text.is_empty() {
        tracing::info!(service = %name, %address, "the directory can dial this address now");
        return;
    }
    metrics::counter!("linkstead_node_directory_refusals_total", "what" => "unreachable").increment(1);
    tracing::warn!(service = %name, %address, "the directory can't dial what this node offers: {text}; set node.host or the listener's address to one that others reach");
}
