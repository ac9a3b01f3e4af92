//! What a linkd allows of modules, and how many requests of one client it keeps open.

use node::config::BadSetting;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Config;
use crate::router::Narrow;

/// What a linkd allows of one module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Module {
    /// The providers that may serve it here, by node id; `game-*` is every id with that beginning. What others offer of it
    /// is not taken here.
    pub providers: Vec<String>,
}

impl Config {
    pub(super) fn check_modules(&self) -> Result<(), BadSetting> {
        let bad = |key: &str, why: String| Err(BadSetting::new("linkd", key, why));
        if self.in_flight_max == 0 {
            return bad("in_flight_max", "0 would refuse every request".into());
        }
        let no_prefix = |prefix: &&String| !prefix.ends_with('/') || prefix.len() > 200;
        if let Some(prefix) = self.module_prefixes.iter().find(no_prefix) {
            return bad("module_prefixes", format!("{prefix:?} must end in / and be at most 200 bytes"));
        }
        for (name, module) in &self.modules {
            let key = format!("modules.{name}.providers");
            if module.providers.is_empty() {
                return bad(&key, "names nobody; name who serves it, or leave the module out".into());
            }
            let odd = |pattern: &&String| pattern.strip_suffix('*').unwrap_or(pattern).contains('*');
            if let Some(pattern) = module.providers.iter().find(odd) {
                return bad(&key, format!("{pattern:?} may have a * only at its end"));
            }
        }
        Ok(())
    }

    /// Which providers may serve which module.
    pub fn narrow(&self) -> Narrow {
        let named = |(name, module): (&String, &Module)| (name.clone(), module.providers.clone());
        Narrow(self.modules.iter().map(named).collect())
    }
}
