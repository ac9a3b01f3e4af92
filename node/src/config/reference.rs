//! The configuration as people read it: what is in effect, and the page of every key.

use std::fmt::Write;

use schemars::Schema;
use serde::Serialize;
use serde_json::Value as Json;

use super::schema::Keys;

/// The whole effective configuration as TOML; secrets print as `***`.
pub fn print_config<T: Serialize>(config: &T) -> Result<String, toml::ser::Error> {
    toml::to_string_pretty(config)
}

/// Every key of a schema as Markdown: a section for each table of the root, in it a row of key, type, default and
/// meaning. `docs/reference/config.md` is written from it.
pub fn reference(schema: &Schema) -> String {
    let root = Keys::root(schema);
    let mut out = String::new();
    for name in root.names() {
        let Some(section) = root.child(name) else { continue };
        let _ = write!(out, "## `[{name}]`\n\n");
        if let Some(text) = description(section) {
            let _ = write!(out, "{text}\n\n");
        }
        out.push_str("| key | type | default | meaning |\n|---|---|---|---|\n");
        let defaults = default(section).cloned();
        rows(&mut out, name, section, defaults.as_ref());
        out.push('\n');
    }
    out
}

fn rows(out: &mut String, path: &str, keys: Keys<'_>, defaults: Option<&Json>) {
    for name in keys.names() {
        let Some(below) = keys.child(name) else { continue };
        let full = format!("{path}.{name}");
        let value = defaults.and_then(|all| all.get(name)).or_else(|| default(below));
        if below.names().is_empty() {
            row(out, &full, below, value);
        } else {
            rows(out, &full, below, value);
        }
    }
    // A map: any key, whose values look alike.
    if keys.names().is_empty()
        && let Some(below) = keys.child("")
    {
        let full = format!("{path}.<name>");
        if below.names().is_empty() {
            row(out, &full, below, default(below));
        } else {
            rows(out, &full, below, default(below));
        }
    }
}

fn row(out: &mut String, path: &str, keys: Keys<'_>, value: Option<&Json>) {
    let value = match value {
        None | Some(Json::Null) => "not set".to_owned(),
        Some(value) => format!("`{value}`"),
    };
    let text = description(keys).unwrap_or_default().replace('|', "\\|");
    let _ = writeln!(out, "| `{path}` | {} | {value} | {text} |", kind(keys));
}

/// One paragraph: the lines of a doc comment joined.
fn description(keys: Keys<'_>) -> Option<String> {
    let text = keys.alternatives().iter().find_map(|at| at.get("description")?.as_str())?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn default<'a>(keys: Keys<'a>) -> Option<&'a Json> {
    keys.alternatives().iter().find_map(|at| at.get("default"))
}

fn kind(keys: Keys<'_>) -> String {
    let alternatives = keys.alternatives();
    let text = |key: &str| alternatives.iter().find_map(|at| at.get(key)?.as_str()).map(str::to_owned);
    let words: Vec<String> = alternatives
        .iter()
        .flat_map(|at| {
            let several = at.get("enum").and_then(Json::as_array).into_iter().flatten();
            several.chain(at.get("const")).map(|word| format!("`{word}`"))
        })
        .collect();
    if !words.is_empty() {
        return words.join(" or ");
    }
    match text("format") {
        Some(format) if matches!(format.as_str(), "time" | "size" | "secret") => return format,
        _ => {}
    }
    let named = |kind: &str| match kind {
        "string" => "text",
        "integer" | "number" => "number",
        "boolean" => "true or false",
        "array" => "list",
        "object" => "table",
        _ => "any",
    };
    let kinds = alternatives.iter().find_map(|at| match at.get("type")? {
        Json::String(kind) if kind != "null" => Some(named(kind)),
        Json::Array(kinds) => kinds.iter().filter_map(Json::as_str).find(|kind| *kind != "null").map(named),
        _ => None,
    });
    kinds.unwrap_or("any").to_owned()
}
