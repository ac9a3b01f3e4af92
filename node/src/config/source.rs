//! Reads every source of a configuration and lays them over one another:
//! built-in profile < file < include < `[profile.NAME]` < environment < flag.

use std::path::{Path, PathBuf};

use super::problem::{Place, Problem};
use super::schema::Keys;
use super::tree::{self, Entry, Table, Value};
use crate::files;

/// What environment variables of ours begin with. `__` stands between the parts of a key: `LINKSTEAD_NODE__ID`.
/// Variables without a `__` after it are not configuration.
pub const ENV_PREFIX: &str = "LINKSTEAD_";
/// Files may include files, this deep.
const INCLUDE_DEPTH_MAX: usize = 8;
/// No configuration is larger.
const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The values that a built-in profile brings along, below everything that is written anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    pub profile: &'static str,
    /// TOML, as it would stand in a file.
    pub values: &'static str,
}

/// Where a configuration comes from. Nothing is read but what is named here.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// TOML files; later ones win.
    pub files: Vec<PathBuf>,
    /// `--profile`; wins over `node.profile` of any other source.
    pub profile: Option<String>,
    /// Environment variables by name, usually `std::env::vars()`.
    pub env: Vec<(String, String)>,
    /// `--set key=value`, in order.
    pub set: Vec<String>,
    /// Built-in profiles of the sections in use; keys of unknown sections are passed over.
    pub presets: Vec<Preset>,
    /// Sections of other roles, which may stand in a shared file and are not looked at.
    pub tolerated: Vec<String>,
}

/// This process's environment for [`Sources::env`]. Variables that are not UTF-8 can't be settings of ours.
pub fn environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// All sources in one table, without `include`, `profile` and tolerated sections.
pub(super) fn gather(sources: &Sources, keys: Keys<'_>, problems: &mut Vec<Problem>) -> Table {
    let mut files = Table::new();
    for path in &sources.files {
        tree::overlay(&mut files, file(path, 0, problems));
    }
    let profiles = files.remove("profile");
    let mut outside = Table::new();
    for (name, text) in &sources.env {
        if let Some(path) = env_path(name) {
            let value = guess(text, &path, keys);
            tree::overlay(&mut outside, tree::single(&path, value, &Place::Env(name.clone())));
        }
    }
    for flag in &sources.set {
        let place = Place::Flag(flag.clone());
        match flag.split_once('=') {
            Some((key, text)) if !key.is_empty() => {
                let path: Vec<String> = key.trim().split('.').map(str::to_owned).collect();
                let value = guess(text.trim(), &path, keys);
                tree::overlay(&mut outside, tree::single(&path, value, &place));
            }
            _ => problems.push(Problem::Syntax { place, why: "write key=value".to_owned() }),
        }
    }
    if let Some(name) = &sources.profile {
        let path = ["node".to_owned(), "profile".to_owned()];
        let place = Place::Flag(format!("node.profile={name}"));
        tree::overlay(&mut outside, tree::single(&path, name.clone().into(), &place));
    }
    let mut all = under_profile(sources, keys, &files, &outside, profiles, problems);
    tree::overlay(&mut all, outside);
    for section in &sources.tolerated {
        if keys.child(section).is_none() {
            all.remove(section);
        }
    }
    all
}

/// The files' values between what the chosen profile brings along and what its table overrides.
fn under_profile(
    sources: &Sources,
    keys: Keys<'_>,
    files: &Table,
    outside: &Table,
    profiles: Option<Entry>,
    problems: &mut Vec<Problem>,
) -> Table {
    let mut all = Table::new();
    let mut tables = match profiles {
        Some(Entry { value: Value::Table(tables), .. }) => tables,
        Some(Entry { place, .. }) => {
            let why = "profiles are tables: [profile.NAME]; the choice is node.profile".to_owned();
            problems.push(Problem::BadValue { place, key: "profile".to_owned(), why });
            Table::new()
        }
        None => Table::new(),
    };
    let Some((name, place)) = chosen(outside).or_else(|| chosen(files)) else {
        return files.clone();
    };
    let presets = sources.presets.iter().filter(|preset| preset.profile == name);
    let mut known = tables.contains_key(&name);
    for preset in presets {
        known = true;
        let values: toml::Table = toml::from_str(preset.values).unwrap_or_default();
        let mut values = tree::placed(values, &Place::Profile(name.clone()));
        values.retain(|section, _| keys.child(section).is_some());
        tree::overlay(&mut all, values);
    }
    tree::overlay(&mut all, files.clone());
    if !known && !name.is_empty() {
        let mut names: Vec<&str> = sources.presets.iter().map(|preset| preset.profile).collect();
        names.extend(tables.keys().map(String::as_str));
        names.sort_unstable();
        names.dedup();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        problems.push(Problem::UnknownProfile { place, name: name.clone(), known });
    }
    if let Some(Entry { value: Value::Table(over), .. }) = tables.remove(&name) {
        tree::overlay(&mut all, over);
    }
    all
}

fn chosen(table: &Table) -> Option<(String, Place)> {
    let Some(Entry { value: Value::Table(node), .. }) = table.get("node") else { return None };
    match node.get("profile") {
        Some(Entry { place, value: Value::Leaf(toml::Value::String(name)) }) => {
            Some((name.clone(), place.clone()))
        }
        _ => None,
    }
}

fn file(path: &Path, depth: usize, problems: &mut Vec<Problem>) -> Table {
    let mut table = match read(path).and_then(|text| tree::parse(&text, path)) {
        Ok(table) => table,
        Err(problem) => {
            problems.push(problem);
            return Table::new();
        }
    };
    let Some(include) = table.remove("include") else { return table };
    for included in paths(include, path, depth, problems) {
        tree::overlay(&mut table, file(&included, depth + 1, problems));
    }
    table
}

/// The files that `include` names, relative to the file that names them.
fn paths(include: Entry, path: &Path, depth: usize, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let mut complain = |place: Place, why: &str| {
        problems.push(Problem::BadValue { place, key: "include".to_owned(), why: why.to_owned() });
    };
    if depth >= INCLUDE_DEPTH_MAX {
        complain(include.place, "includes go round in a circle or deeper than 8");
        return Vec::new();
    }
    let Value::Array(items) = include.value else {
        complain(include.place, "write a list of files");
        return Vec::new();
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut found = Vec::new();
    for item in items {
        match item.value {
            Value::Leaf(toml::Value::String(name)) => found.push(folder.join(name)),
            _ => complain(item.place, "write file names"),
        }
    }
    found
}

fn read(path: &Path) -> Result<String, Problem> {
    let problem = |why: String| Problem::File { path: path.to_owned(), why };
    let bytes = files::read_any(path, FILE_BYTES_MAX).map_err(|error| problem(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| problem("is not UTF-8 text".to_owned()))?;
    if text.trim().is_empty() {
        return Err(problem("is empty".to_owned()));
    }
    Ok(text)
}

fn env_path(name: &str) -> Option<Vec<String>> {
    let key = name.strip_prefix(ENV_PREFIX)?;
    let path: Vec<String> = key.split("__").map(str::to_ascii_lowercase).collect();
    (path.len() > 1 && path.iter().all(|part| !part.is_empty())).then_some(path)
}

/// A value from outside a file: TOML if it reads as such, else text. Where the schema wants text, `7` is "7".
fn guess(text: &str, path: &[String], keys: Keys<'_>) -> toml::Value {
    let parsed: Option<toml::Value> =
        toml::from_str::<toml::Table>(&format!("v = {text}")).ok().and_then(|mut table| table.remove("v"));
    let target = path.iter().try_fold(keys, |at, key| at.child(key));
    match parsed {
        Some(value) if value.is_str() || !target.is_some_and(Keys::is_text) => value,
        _ => toml::Value::String(text.to_owned()),
    }
}
