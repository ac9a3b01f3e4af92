//! Prints the JavaScript module: comments that editors understand, the shapes of messages, the protocols by module.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};

use super::shapes::{Field, Kind, Shapes};
use super::{TypesError, last, named};
use crate::module::{Descriptor, Protocol};

const HEAD: &str = "\
// @ts-check
// Written by the game's own binary, `types js`, from its modules and its .proto files. Change those, not this.

/** @template T @typedef {import(\"./linkstead.js\").MessageType<T>} MessageType */
/** @template Q, A @typedef {import(\"./linkstead.js\").Rpc<Q, A>} Rpc */
/** @template Q @typedef {import(\"./linkstead.js\").Notify<Q>} Notify */
/** @template T @typedef {import(\"./linkstead.js\").Push<T>} Push */
";

/// What the module itself exports beside the game's modules, and words that JavaScript keeps.
const TAKEN: &[&str] = &[
    "messages",
    "enums",
    "modules",
    "MessageType",
    "Rpc",
    "Notify",
    "Push",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// The whole module. The same modules and descriptors give the same text.
pub fn module(modules: &[Descriptor], shapes: &Shapes) -> Result<String, TypesError> {
    let mut roots = Vec::new();
    for (message, protocol) in named(modules) {
        roots.push(shapes.find(message, protocol)?);
    }
    let reachable = shapes.reachable(roots);
    distinct(shapes, &reachable)?;
    let mut out = HEAD.to_owned();
    let mut write = |text: &dyn Display| {
        // A string takes whatever is written to it.
        let _ = write!(out, "{text}");
    };
    for name in &reachable {
        write(&typedef(shapes, name));
    }
    write(&enums(shapes, &reachable));
    write(&messages(shapes, &reachable));
    write(&"\n/** Which modules there are, and how a gateway picks a provider for them. */\n");
    write(&"export const modules = Object.freeze([\n");
    for module in modules {
        let Descriptor { id, name, choice, dynamic, .. } = module;
        write(&format!("  {{ id: {id}, name: \"{name}\", choice: \"{choice}\", dynamic: {dynamic} }},\n"));
    }
    write(&"]);\n");
    for module in modules {
        write(&protocols(module, shapes)?);
    }
    Ok(out)
}

/// Two packages may have a message of one name; one file can't.
fn distinct(shapes: &Shapes, reachable: &BTreeSet<&str>) -> Result<(), TypesError> {
    let mut seen = BTreeMap::new();
    for full in reachable {
        let Some(shape) = shapes.messages.get(*full) else { continue };
        if let Some(other) = seen.insert(&shape.name, full) {
            let why = format!("`{other}` has the same name in JavaScript; rename one");
            return Err(TypesError::Unsupported((*full).to_owned(), why));
        }
    }
    Ok(())
}

/// What an editor knows of a message.
fn typedef(shapes: &Shapes, full: &str) -> String {
    let Some(shape) = shapes.messages.get(full).filter(|_| shapes.entry(full).is_none()) else {
        return String::new();
    };
    let mut out = String::from("\n/**\n");
    if !shape.comment.is_empty() {
        let _ = writeln!(out, " * {}", comment(&shape.comment));
    }
    let _ = writeln!(out, " * @typedef {{object}} {}", shape.name);
    for field in &shape.fields {
        let (ty, name, about) = (type_of(shapes, field), &field.name, comment(&field.comment));
        let absent = field.optional || (matches!(field.kind, Kind::Message(_)) && !field.repeated);
        let name = if absent { format!("[{name}]") } else { name.clone() };
        let _ = writeln!(out, "{}", format!(" * @property {{{ty}}} {name} {about}").trim_end());
    }
    out.push_str(" */\n");
    out
}

/// A comment can't end the comment it stands in.
fn comment(text: &str) -> String {
    text.replace("*/", "*\\/")
}

fn type_of(shapes: &Shapes, field: &Field) -> String {
    if let Kind::Message(name) = &field.kind
        && let Some([key, value]) = shapes.entry(name)
    {
        return format!("Map<{}, {}>", type_of(shapes, key), type_of(shapes, value));
    }
    let one = match &field.kind {
        Kind::Scalar("string") => "string".into(),
        Kind::Scalar("bytes") => "Uint8Array".into(),
        Kind::Scalar("bool") => "boolean".into(),
        Kind::Scalar(name) if name.ends_with("64") => "bigint".into(),
        Kind::Scalar(_) | Kind::Enum(_) => "number".into(),
        Kind::Message(name) => local(shapes, name),
    };
    if field.repeated { format!("{one}[]") } else { one }
}

/// A message's name in the file.
fn local(shapes: &Shapes, full: &str) -> String {
    shapes.messages.get(full).map_or_else(|| last(full).to_owned(), |shape| shape.name.clone())
}

fn enums(shapes: &Shapes, reachable: &BTreeSet<&str>) -> String {
    let found: Vec<_> = reachable.iter().filter_map(|name| shapes.enums.get(*name)).collect();
    if found.is_empty() {
        return String::new();
    }
    let mut out = String::from("\n/** Names of numbers. */\nexport const enums = Object.freeze({\n");
    for one in found {
        if !one.comment.is_empty() {
            let _ = writeln!(out, "  /** {} */", comment(&one.comment));
        }
        let values: Vec<_> = one.values.iter().map(|(name, number)| format!("{name}: {number}")).collect();
        let _ = writeln!(out, "  {}: Object.freeze({{ {} }}),", one.name, values.join(", "));
    }
    out.push_str("});\n");
    out
}

fn messages(shapes: &Shapes, reachable: &BTreeSet<&str>) -> String {
    let shown: Vec<_> = reachable
        .iter()
        .filter_map(|full| Some((*full, shapes.messages.get(*full)?)))
        .filter(|(full, _)| shapes.entry(full).is_none())
        .collect();
    // The type is written out, because shapes may refer to each other in circles.
    let mut out = String::from("\n/**\n * The shapes of the messages.\n * @type {Readonly<{\n");
    for (_, shape) in &shown {
        let _ = writeln!(out, " *   {0}: MessageType<{0}>,", shape.name);
    }
    out.push_str(" * }>}\n */\nexport const messages = Object.freeze({\n");
    for (full, shape) in shown {
        let _ = write!(out, "  {}: {{ name: \"{full}\", fields: [", shape.name);
        for field in &shape.fields {
            let _ = write!(out, "\n    {},", shape_of(shapes, field));
        }
        out.push_str(if shape.fields.is_empty() { "] },\n" } else { "\n  ] },\n" });
    }
    out.push_str("});\n");
    out
}

fn shape_of(shapes: &Shapes, field: &Field) -> String {
    let mut out = format!("{{ tag: {}, name: \"{}\", ", field.tag, field.name);
    let entry = if let Kind::Message(name) = &field.kind { shapes.entry(name) } else { None };
    let _ = match (&field.kind, entry) {
        (_, Some([key, value])) => {
            write!(out, "kind: \"map\", entry: [{}, {}]", shape_of(shapes, key), shape_of(shapes, value))
        }
        (Kind::Scalar(name), _) => write!(out, "kind: \"{name}\""),
        (Kind::Enum(_), _) => write!(out, "kind: \"enum\""),
        (Kind::Message(name), _) => {
            write!(out, "kind: \"message\", type: () => messages.{}", local(shapes, name))
        }
    };
    let flags = [
        (field.repeated && entry.is_none(), "repeated"),
        (field.packed, "packed"),
        (field.optional, "optional"),
    ];
    for (_, flag) in flags.into_iter().filter(|(set, _)| *set) {
        let _ = write!(out, ", {flag}: true");
    }
    if let Some(oneof) = &field.oneof {
        let _ = write!(out, ", oneof: \"{oneof}\"");
    }
    out.push_str(" }");
    out
}

fn protocols(module: &Descriptor, shapes: &Shapes) -> Result<String, TypesError> {
    let name = module.name.replace('.', "_");
    let fine = name.is_ascii() && !name.starts_with(|c: char| c.is_ascii_digit());
    if !fine || TAKEN.contains(&name.as_str()) {
        return Err(TypesError::Name(module.name.to_owned()));
    }
    let mut out = format!("\n/** The protocols of module `{}`. */\n", module.name);
    let _ = writeln!(out, "export const {name} = Object.freeze({{");
    let local =
        |message: &str, protocol: &str| shapes.find(message, protocol).map(|full| local(shapes, full));
    for protocol in module.protocols {
        let Protocol { id, name, request, reply, notify, .. } = *protocol;
        let request = local(request, name)?;
        let (ty, rest) = if notify {
            (format!("Notify<{request}>"), format!("notify: messages.{request}"))
        } else if reply.is_empty() {
            (format!("Rpc<{request}, void>"), format!("request: messages.{request}, reply: null"))
        } else {
            let reply = local(reply, name)?;
            (
                format!("Rpc<{request}, {reply}>"),
                format!("request: messages.{request}, reply: messages.{reply}"),
            )
        };
        line(&mut out, module.id, name, id, &ty, &rest);
    }
    for &(name, id) in module.pushes {
        let message = local(last(name), name)?;
        line(
            &mut out,
            module.id,
            name,
            id,
            &format!("Push<{message}>"),
            &format!("push: messages.{message}"),
        );
    }
    out.push_str("});\n");
    Ok(out)
}

fn line(out: &mut String, module: i32, name: &str, id: i32, ty: &str, rest: &str) {
    let key = last(name);
    let _ = writeln!(out, "  /** @type {{{ty}}} */");
    let _ = writeln!(out, "  {key}: {{ name: \"{name}\", module: {module}, protocol: {id}, {rest} }},");
}
