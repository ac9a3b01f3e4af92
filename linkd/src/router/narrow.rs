//! Core: which providers may serve a module at this gateway. Configuration may only take away: who is not named here
//! serves what it announces.

use std::collections::BTreeMap;

use base::NodeId;

/// Modules by name, with the node ids that may serve them: whole ones, or beginnings that end in `*`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Narrow(pub BTreeMap<String, Vec<String>>);

impl Narrow {
    pub fn admits(&self, module: &str, node: &NodeId) -> bool {
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => node.as_str().starts_with(beginning),
            None => node.as_str() == pattern,
        };
        self.0.get(module).is_none_or(|patterns| patterns.iter().any(matches))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_is_named_is_served_by_those_named() {
        let patterns = vec!["game-*".to_owned(), "spare".to_owned()];
        let narrow = Narrow(BTreeMap::from([("Rank".to_owned(), patterns)]));
        let admits = |module, node: &str| narrow.admits(module, &NodeId::new(node).unwrap());
        assert!(admits("Rank", "game-1") && admits("Rank", "spare"));
        assert!(!admits("Rank", "shop-1") && !admits("Rank", "spare-2"));
        assert!(admits("Hall", "shop-1"));
    }
}
