//! Every handler of every module of this provider, by the number that stands on a request.

use base::{ModuleId, ProtocolId, TypeId};

use crate::error::Result;
use crate::fast::FastMap;
use crate::module::{Descriptor, Entry, Handlers, Hook, Module};
use crate::start::StartError;

/// The dispatch table. Never changes after the start.
#[derive(Default)]
pub(crate) struct Table {
    entries: FastMap<TypeId, Entry>,
    /// What runs when a session is over, in the order of the modules.
    pub hooks: Vec<(&'static str, Hook)>,
    pub modules: Vec<Descriptor>,
    /// Some handlers are transactions.
    pub transactional: bool,
}

impl Table {
    pub fn get(&self, type_id: TypeId) -> Option<&Entry> {
        self.entries.get(&type_id)
    }

    /// Refuses a second module of the same id or name.
    pub fn add<M: Module>(&mut self, module: M) -> Result<(), StartError> {
        let descriptor = M::DESCRIPTOR;
        let same = |other: &&Descriptor| other.id == descriptor.id || other.name == descriptor.name;
        if let Some(other) = self.modules.iter().find(same) {
            let (name, id) = (descriptor.name, descriptor.id);
            return Err(StartError::DuplicateModule { name, id, other: other.name, other_id: other.id });
        }
        let Handlers { entries, hook, transactional, .. } = Handlers::of(module);
        self.transactional |= transactional;
        for entry in entries {
            self.entries.insert(entry.type_id, entry);
        }
        self.hooks.extend(hook.map(|hook| (descriptor.name, hook)));
        self.modules.push(descriptor);
        Ok(())
    }

    /// Names what `protocols.lock` should hold, sorted.
    pub fn lock(modules: &[Descriptor]) -> Vec<String> {
        let mut lines: Vec<String> = modules.iter().flat_map(Descriptor::lock_lines).collect();
        lines.sort();
        lines
    }

    /// Handlers in all.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

/// The type id of a protocol given as two numbers.
pub const fn type_id(module: i32, protocol: i32) -> TypeId {
    TypeId::new(ModuleId(module), ProtocolId(protocol))
}
