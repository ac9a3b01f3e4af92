//! What keys exist, read from the schema that the types themselves give.

use std::collections::BTreeSet;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value as Json;

use super::problem::Problem;
use super::tree::{Entry, Table, Value};

/// The schema of a root type, with everything in place rather than by reference.
pub fn schema_of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>()
}

/// A place in a schema. Options and enums are looked through: a key is known when any alternative knows it.
#[derive(Clone, Copy)]
pub(super) struct Keys<'a> {
    root: &'a Json,
    at: &'a Json,
}

impl<'a> Keys<'a> {
    pub fn root(schema: &'a Schema) -> Self {
        Self { root: schema.as_value(), at: schema.as_value() }
    }

    /// The schema under `key`; of a map, the schema of its values. `None` when the key is unknown.
    pub fn child(self, key: &str) -> Option<Self> {
        let named = |at: &'a Json| at.get("properties")?.get(key);
        let mapped = |at: &'a Json| at.get("additionalProperties").filter(|any| any.as_bool() != Some(false));
        let alternatives = self.alternatives();
        let found = alternatives.iter().find_map(|at| named(at));
        let found = found.or_else(|| alternatives.iter().find_map(|at| mapped(at)))?;
        Some(Self { root: self.root, at: found })
    }

    /// Of an array: the schema of its items.
    fn item(self) -> Option<Self> {
        let items = self.alternatives().iter().find_map(|at| at.get("items"))?;
        Some(Self { root: self.root, at: items })
    }

    /// Known keys by name; empty for a map.
    pub fn names(self) -> BTreeSet<&'a str> {
        let objects = self.alternatives();
        let properties = objects.iter().filter_map(|at| at.get("properties")?.as_object());
        properties.flat_map(|properties| properties.keys().map(String::as_str)).collect()
    }

    /// Nothing is known of the shape: any key may stand here.
    fn is_open(self) -> bool {
        self.at.as_bool() == Some(true)
            || self.alternatives().iter().all(|at| {
                at.get("properties").is_none()
                    && at.get("additionalProperties").is_none()
                    && at.get("items").is_none()
            }) && self.names().is_empty()
    }

    /// A text stands here and nothing else, so that `7` on a command line means "7".
    pub fn is_text(self) -> bool {
        let kind = |at: &&Json| at.get("type").cloned();
        let mut kinds = Vec::new();
        for kind in self.alternatives().iter().filter_map(kind) {
            match kind {
                Json::Array(several) => kinds.extend(several),
                one => kinds.push(one),
            }
        }
        kinds.contains(&Json::from("string")) && kinds.iter().all(|kind| kind == "string" || kind == "null")
    }

    pub fn alternatives(self) -> Vec<&'a Json> {
        let mut found = Vec::new();
        self.gather(self.at, 0, &mut found);
        found
    }

    /// Schemas may refer to themselves; no configuration of ours nests deeper than this.
    fn gather(self, at: &'a Json, depth: usize, found: &mut Vec<&'a Json>) {
        if depth > 8 {
            return;
        }
        found.push(at);
        if let Some(target) = at.get("$ref").and_then(Json::as_str).and_then(|path| path.strip_prefix('#'))
            && let Some(target) = self.root.pointer(target)
        {
            self.gather(target, depth + 1, found);
        }
        for several in ["allOf", "anyOf", "oneOf"] {
            for one in at.get(several).and_then(Json::as_array).into_iter().flatten() {
                self.gather(one, depth + 1, found);
            }
        }
    }
}

/// Takes unknown keys out of `table` and says where they stood and what was probably meant.
pub(super) fn take_unknown(table: &mut Table, keys: Keys<'_>, path: &str, problems: &mut Vec<Problem>) {
    let all: Vec<String> = table.keys().cloned().collect();
    for key in all {
        let full = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match keys.child(&key) {
            Some(below) => {
                if let Some(entry) = table.get_mut(&key) {
                    look_into(entry, below, &full, problems);
                }
            }
            None if keys.is_open() && !path.is_empty() => {}
            None => {
                if let Some(entry) = table.remove(&key) {
                    let nearest = nearest(&key, path, keys);
                    problems.push(Problem::UnknownKey { place: entry.place, key: full, nearest });
                }
            }
        }
    }
}

fn look_into(entry: &mut Entry, keys: Keys<'_>, path: &str, problems: &mut Vec<Problem>) {
    match &mut entry.value {
        Value::Table(inner) => take_unknown(inner, keys, path, problems),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                if let Some(below) = keys.item() {
                    look_into(item, below, &format!("{path}[{index}]"), problems);
                }
            }
        }
        Value::Leaf(_) => {}
    }
}

/// The known key that looks most like `key`: beside it, or with the same name in another section.
fn nearest(key: &str, path: &str, keys: Keys<'_>) -> Option<String> {
    let full = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let best = keys.names().into_iter().map(|name| (strsim::damerau_levenshtein(key, name), name)).min();
    let root = Keys { root: keys.root, at: keys.root };
    let elsewhere = root.names().into_iter().filter_map(|section| {
        let below = root.child(section)?;
        below.names().contains(key).then(|| format!("{section}.{key}"))
    });
    match best {
        Some((distance, name)) if distance <= key.len() / 2 => Some(full(name)),
        best => elsewhere.min().or_else(|| best.map(|(_, name)| full(name))),
    }
}
