//! Core: providers that may not serve one module beside each other, until one of them has given way.

use std::collections::BTreeMap;

use base::{ModuleId, NodeId};

/// Announcements that were refused beside another's. At most one for each module of each connected provider.
#[derive(Debug, Default)]
pub struct Clashes(BTreeMap<(ModuleId, NodeId), String>);

impl Clashes {
    /// Whether this is news: a refused provider asks again and again, and always hears the same.
    pub fn note(&mut self, module: ModuleId, refused: NodeId, text: &str) -> bool {
        let known = self.0.insert((module, refused), text.to_owned());
        known.as_deref() != Some(text)
    }

    /// The provider serves the module now.
    pub fn settled(&mut self, module: ModuleId, node: &NodeId) {
        self.0.remove(&(module, node.clone()));
    }

    /// The provider is gone.
    pub fn gone(&mut self, node: &NodeId) {
        self.0.retain(|(_, refused), _| refused != node);
    }

    /// What was refused, each in words that name both.
    pub fn texts(&self) -> impl Iterator<Item = &String> {
        self.0.values()
    }
}
