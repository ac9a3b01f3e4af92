//! A configuration before it is typed: values that remember where they were written, laid over one another.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Place, Problem};

pub(super) type Table = BTreeMap<String, Entry>;

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub place: Place,
    pub value: Value,
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    Table(Table),
    Array(Vec<Entry>),
    Leaf(toml::Value),
}

/// Reads TOML and keeps the line of each key.
pub(super) fn parse(text: &str, path: &Path) -> Result<Table, Problem> {
    let path: Arc<Path> = Arc::from(path);
    let syntax = |error: toml::de::Error| {
        let line = error.span().map_or(0, |span| line_of(text, span.start));
        let why = error.message().to_owned();
        Problem::Syntax { place: Place::File { path: path.clone(), line }, why }
    };
    // Parsed twice: once for the values, once for the spans.
    let values: toml::Table = toml::from_str(text).map_err(syntax)?;
    let spans = DeTable::parse(text).map_err(syntax)?;
    Ok(table(values, Some(spans.get_ref()), &|at| Place::File {
        path: path.clone(),
        line: line_of(text, at),
    }))
}

/// A table of which every value comes from one place.
pub(super) fn placed(values: toml::Table, place: &Place) -> Table {
    table(values, None, &|_| place.clone())
}

/// One value at a dotted path.
pub(super) fn single(path: &[String], value: toml::Value, place: &Place) -> Table {
    let mut inner = Entry { place: place.clone(), value: entry(value, None, &|_| place.clone()) };
    for key in path.iter().skip(1).rev() {
        inner = Entry { place: place.clone(), value: Value::Table(Table::from([(key.clone(), inner)])) };
    }
    path.first().map(|key| Table::from([(key.clone(), inner)])).unwrap_or_default()
}

fn table(values: toml::Table, spans: Option<&DeTable<'_>>, place: &dyn Fn(usize) -> Place) -> Table {
    let entry = |(key, value): (String, toml::Value)| {
        let span = spans.and_then(|table| table.get_key_value(key.as_str()));
        let at = span.map_or(0, |(key, _)| key.span().start);
        let value = entry(value, span.map(|(_, value)| value), place);
        (key, Entry { place: place(at), value })
    };
    values.into_iter().map(entry).collect()
}

fn entry(value: toml::Value, span: Option<&Spanned<DeValue<'_>>>, place: &dyn Fn(usize) -> Place) -> Value {
    match value {
        toml::Value::Table(values) => {
            Value::Table(table(values, span.and_then(|value| value.get_ref().as_table()), place))
        }
        toml::Value::Array(values) => {
            let spans = span.and_then(|value| value.get_ref().as_array());
            let item = |(index, value)| {
                let span = spans.and_then(|array| array.get::<usize>(index));
                let at = span.map_or(0, |value| value.span().start);
                Entry { place: place(at), value: entry(value, span, place) }
            };
            Value::Array(values.into_iter().enumerate().map(item).collect())
        }
        leaf => Value::Leaf(leaf),
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1
}

/// Lays `over` over `under`: tables merge key by key, everything else is replaced.
pub(super) fn overlay(under: &mut Table, over: Table) {
    for (key, new) in over {
        match under.get_mut(&key) {
            Some(Entry { value: Value::Table(old), .. }) if matches!(new.value, Value::Table(_)) => {
                if let Value::Table(new) = new.value {
                    overlay(old, new);
                }
            }
            _ => {
                under.insert(key, new);
            }
        }
    }
}

/// The entry at `path`, or the closest one above it.
pub(super) fn find<'a>(table: &'a Table, path: &[String]) -> Option<&'a Entry> {
    let (first, rest) = path.split_first()?;
    let entry = table.get(first)?;
    let below = match &entry.value {
        Value::Table(inner) => find(inner, rest),
        Value::Array(items) => rest.first().and_then(|index| items.get(index.parse::<usize>().ok()?)),
        Value::Leaf(_) => None,
    };
    Some(below.unwrap_or(entry))
}

/// Removes the entry at `path`, or the closest one above it that can be removed by key.
pub(super) fn remove(table: &mut Table, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else { return false };
    if let Some(Entry { value: Value::Table(inner), .. }) = table.get_mut(first)
        && remove(inner, rest)
    {
        return true;
    }
    table.remove(first).is_some()
}

pub(super) fn plain(table: &Table) -> toml::Table {
    table.iter().map(|(key, entry)| (key.clone(), plain_value(&entry.value))).collect()
}

fn plain_value(value: &Value) -> toml::Value {
    match value {
        Value::Table(table) => toml::Value::Table(plain(table)),
        Value::Array(items) => {
            toml::Value::Array(items.iter().map(|item| plain_value(&item.value)).collect())
        }
        Value::Leaf(leaf) => leaf.clone(),
    }
}
