//! What a directory with a store has on its disk, as `service_manager::server` keeps it: the last word on each fact.
//! It outlives the process.

use std::collections::BTreeMap;

use service_manager::directory::Save;

#[derive(Debug, Default)]
pub struct Disk(BTreeMap<String, Save>);

impl Disk {
    /// One write: all of it is there afterwards.
    pub fn write(&mut self, saves: Vec<Save>) {
        for save in saves {
            let key = match &save {
                Save::Epoch { node, .. } | Save::ForgetEpoch { node } => format!("e{node}"),
                Save::EpochMax { .. } => "m".to_owned(),
                Save::Claim { key, .. } | Save::Unclaim { key } => format!("c{key}"),
                Save::Ids { name, .. } => format!("i{name}"),
                Save::Offline { node, .. } => format!("o{node}"),
            };
            match &save {
                Save::ForgetEpoch { .. } | Save::Unclaim { .. } => drop(self.0.remove(&key)),
                Save::Offline { ids, .. } if ids.is_empty() => drop(self.0.remove(&key)),
                _ => drop(self.0.insert(key, save)),
            }
        }
    }

    /// Everything, for the next life.
    pub fn read(&self) -> Vec<Save> {
        self.0.values().cloned().collect()
    }
}
