//! Configuration: TOML laid over TOML, the environment and flags, in one typed value. All mistakes of all sources come
//! out together, each with its place and what was probably meant; nothing unknown is passed over in silence.
//!
//! The types say which keys exist: the root is composed by the `linkstead` binary out of the sections of each crate.

mod problem;
mod reference;
mod schema;
mod section;
mod source;
mod tree;
mod units;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

pub use problem::{BadSetting, Place, Problem};
pub use reference::{print_config, reference};
pub use schema::schema_of;
pub use section::{Log, LogFormat, NodeConfig, NodeTls, PRESETS, Reconnect, Stop};
pub use source::{ENV_PREFIX, Preset, Sources, environment};
pub use units::{BadUnit, Secret, Size, Time};

/// A configuration, and where each of its values was written.
#[derive(Debug, Clone)]
pub struct Loaded<T> {
    pub config: T,
    tree: tree::Table,
}

impl<T> Loaded<T> {
    /// Where the value of a dotted key was written; of a key nobody wrote, [`Place::Default`].
    pub fn place(&self, key: &str) -> Place {
        let path: Vec<String> = key.split('.').map(str::to_owned).collect();
        tree::find(&self.tree, &path).map_or(Place::Default, |entry| entry.place.clone())
    }

    /// A mistake that only shows when values are looked at together.
    pub fn problem(&self, key: &str, why: impl Into<String>) -> Problem {
        Problem::BadValue { place: self.place(key), key: key.to_owned(), why: why.into() }
    }
}

/// Reads all sources into `T`. On any mistake: all of them, in the order of files, unknown keys, values.
pub fn load<T>(sources: &Sources) -> Result<Loaded<T>, Vec<Problem>>
where
    T: Serialize + DeserializeOwned + Default + JsonSchema,
{
    let schema = schema_of::<T>();
    let keys = schema::Keys::root(&schema);
    let mut problems = Vec::new();
    let mut tree = source::gather(sources, keys, &mut problems);
    schema::take_unknown(&mut tree, keys, "", &mut problems);
    let config = typed(&mut tree, &mut problems);
    match config {
        Some(config) if problems.is_empty() => Ok(Loaded { config, tree }),
        _ => Err(problems),
    }
}

/// Types the tree. Each value that does not fit is noted and taken out, so that the next one is seen too.
fn typed<T: DeserializeOwned>(tree: &mut tree::Table, problems: &mut Vec<Problem>) -> Option<T> {
    loop {
        let error = match serde_path_to_error::deserialize(toml::Value::Table(tree::plain(tree))) {
            Ok(config) => return Some(config),
            Err(error) => error,
        };
        let path: Vec<String> = error.path().iter().filter_map(segment).collect();
        let place = tree::find(tree, &path).map_or(Place::Default, |entry| entry.place.clone());
        let why = error.inner().message().to_owned();
        problems.push(Problem::BadValue { place, key: path.join("."), why });
        if !tree::remove(tree, &path) {
            return None;
        }
    }
}

fn segment(segment: &Segment) -> Option<String> {
    match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.clone()),
        Segment::Enum { .. } | Segment::Unknown => None,
    }
}

#[cfg(test)]
mod tests;
