//! From compiled `.proto` files to plain shapes: names, fields, comments.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
};

use super::{TypesError, last};

/// Every message and enum of a descriptor set, by full name without the leading dot.
#[derive(Debug, Default)]
pub struct Shapes {
    pub messages: BTreeMap<String, Shape>,
    pub enums: BTreeMap<String, Enum>,
}

#[derive(Debug)]
pub struct Shape {
    /// Its name without the package; nested ones joined by `_`.
    pub name: String,
    pub comment: String,
    /// By ascending tag.
    pub fields: Vec<Field>,
    is_map_entry: bool,
}

#[derive(Debug)]
pub struct Enum {
    pub name: String,
    pub comment: String,
    pub values: Vec<(String, i32)>,
}

#[derive(Debug, Clone)]
pub struct Field {
    pub tag: i32,
    /// lowerCamelCase, as the protobuf JSON mapping has it.
    pub name: String,
    pub comment: String,
    pub kind: Kind,
    pub repeated: bool,
    pub packed: bool,
    /// It may be absent.
    pub optional: bool,
    pub oneof: Option<String>,
}

#[derive(Debug, Clone)]
pub enum Kind {
    /// A protobuf scalar type by its name in `.proto` files.
    Scalar(&'static str),
    /// By full name.
    Enum(String),
    /// By full name; a map's entry too.
    Message(String),
}

impl Shapes {
    pub fn read(compiled: &[u8]) -> Result<Self, TypesError> {
        let set =
            FileDescriptorSet::decode(compiled).map_err(|error| TypesError::Unreadable(error.to_string()))?;
        let mut shapes = Self::default();
        for file in &set.file {
            shapes.file(file)?;
        }
        Ok(shapes)
    }

    /// The one message called `name`, whatever package it is in.
    pub fn find(&self, name: &str, protocol: &str) -> Result<&str, TypesError> {
        let found: Vec<&String> = self.messages.keys().filter(|full| last(full) == name).collect();
        let (name, protocol) = (name.to_owned(), protocol.to_owned());
        match found[..] {
            [one] => Ok(one),
            [one, ..] if base::planted::is("types_take_any_of_a_name") => Ok(one),
            [] => Err(TypesError::UnknownMessage { name, protocol }),
            _ => {
                let found = found.iter().map(|full| full.as_str()).collect::<Vec<_>>().join(", ");
                Err(TypesError::Ambiguous { name, protocol, found })
            }
        }
    }

    /// Full names of `roots` and of everything their fields lead to, messages and enums.
    pub fn reachable<'a>(&'a self, roots: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
        let mut seen = BTreeSet::new();
        let mut todo: Vec<&str> = roots.into_iter().collect();
        while let Some(name) = todo.pop() {
            if !seen.insert(name) {
                continue;
            }
            let Some(shape) = self.messages.get(name) else { continue };
            todo.extend(shape.fields.iter().filter_map(|field| match &field.kind {
                Kind::Scalar(_) => None,
                Kind::Enum(name) | Kind::Message(name) => Some(name.as_str()),
            }));
        }
        seen
    }

    /// The two fields of a map's entry, if that is what a message is.
    pub fn entry(&self, name: &str) -> Option<&[Field]> {
        self.messages.get(name).filter(|shape| shape.is_map_entry).map(|shape| &shape.fields[..])
    }

    fn file(&mut self, file: &FileDescriptorProto) -> Result<(), TypesError> {
        if file.syntax() != "proto3" {
            let why = "only `syntax = \"proto3\"` is understood".to_owned();
            return Err(TypesError::Unsupported(file.name().to_owned(), why));
        }
        let comments = Comments::of(file);
        let prefix = if file.package().is_empty() { String::new() } else { format!("{}.", file.package()) };
        for (index, one) in file.enum_type.iter().enumerate() {
            self.enumeration(one, &prefix, "", &comments, vec![5, index as i32]);
        }
        for (index, message) in file.message_type.iter().enumerate() {
            self.message(message, &prefix, "", &comments, &[4, index as i32])?;
        }
        Ok(())
    }

    fn message(
        &mut self,
        message: &DescriptorProto,
        prefix: &str,
        outer: &str,
        comments: &Comments,
        path: &[i32],
    ) -> Result<(), TypesError> {
        let full = format!("{prefix}{}", message.name());
        let name = format!("{outer}{}", message.name());
        let below = |kind: i32, index: usize| [path, &[kind, index as i32]].concat();
        let (inner_prefix, inner_outer) = (format!("{full}."), format!("{name}_"));
        for (index, one) in message.enum_type.iter().enumerate() {
            self.enumeration(one, &inner_prefix, &inner_outer, comments, below(4, index));
        }
        for (index, inner) in message.nested_type.iter().enumerate() {
            self.message(inner, &inner_prefix, &inner_outer, comments, &below(3, index))?;
        }
        let mut fields = Vec::new();
        for (index, one) in message.field.iter().enumerate() {
            fields.push(field(one, message, &full, comments.at(&below(2, index)))?);
        }
        fields.sort_by_key(|field| field.tag);
        let is_map_entry = message.options.as_ref().is_some_and(|options| options.map_entry());
        self.messages.insert(full, Shape { name, comment: comments.at(path), fields, is_map_entry });
        Ok(())
    }

    fn enumeration(
        &mut self,
        one: &EnumDescriptorProto,
        prefix: &str,
        outer: &str,
        comments: &Comments,
        path: Vec<i32>,
    ) {
        let values = one.value.iter().map(|value| (value.name().to_owned(), value.number())).collect();
        let (name, comment) = (format!("{outer}{}", one.name()), comments.at(&path));
        self.enums.insert(format!("{prefix}{}", one.name()), Enum { name, comment, values });
    }
}

fn field(
    field: &FieldDescriptorProto,
    message: &DescriptorProto,
    full: &str,
    comment: String,
) -> Result<Field, TypesError> {
    let kind = kind(field)
        .map_err(|why| TypesError::Unsupported(format!("{full}.{}", field.name()), why.to_owned()))?;
    let name = if field.json_name().is_empty() { field.name() } else { field.json_name() };
    if name == "__proto__" {
        let why = "JavaScript keeps that name for itself".to_owned();
        return Err(TypesError::Unsupported(format!("{full}.{}", field.name()), why));
    }
    let repeated = field.label() == Label::Repeated;
    let numeric = match &kind {
        Kind::Scalar(name) => !matches!(*name, "string" | "bytes"),
        Kind::Enum(_) => true,
        Kind::Message(_) => false,
    };
    let packed = field.options.as_ref().and_then(|options| options.packed).unwrap_or(true);
    let group = field.oneof_index.filter(|_| !field.proto3_optional());
    let oneof = group.and_then(|index| message.oneof_decl.get(usize::try_from(index).ok()?));
    Ok(Field {
        tag: field.number(),
        name: name.to_owned(),
        comment,
        repeated,
        packed: repeated && numeric && packed && !base::planted::is("types_forget_packed"),
        optional: field.proto3_optional() || oneof.is_some(),
        oneof: oneof.map(|oneof| oneof.name().to_owned()),
        kind,
    })
}

fn kind(field: &FieldDescriptorProto) -> Result<Kind, &'static str> {
    let other = || field.type_name().trim_start_matches('.').to_owned();
    Ok(match field.r#type() {
        Type::Double => Kind::Scalar("double"),
        Type::Float => Kind::Scalar("float"),
        Type::Int64 => Kind::Scalar("int64"),
        Type::Uint64 => Kind::Scalar("uint64"),
        Type::Int32 => Kind::Scalar("int32"),
        Type::Fixed64 => Kind::Scalar("fixed64"),
        Type::Fixed32 => Kind::Scalar("fixed32"),
        Type::Bool => Kind::Scalar("bool"),
        Type::String => Kind::Scalar("string"),
        Type::Bytes => Kind::Scalar("bytes"),
        Type::Uint32 => Kind::Scalar("uint32"),
        Type::Sfixed32 => Kind::Scalar("sfixed32"),
        Type::Sfixed64 => Kind::Scalar("sfixed64"),
        Type::Sint32 => Kind::Scalar("sint32"),
        Type::Sint64 => Kind::Scalar("sint64"),
        Type::Enum => Kind::Enum(other()),
        Type::Message => Kind::Message(other()),
        Type::Group => return Err("groups are of another age of protobuf"),
    })
}

/// The comments in front of things, by their path in the descriptor.
struct Comments(BTreeMap<Vec<i32>, String>);

impl Comments {
    fn of(file: &FileDescriptorProto) -> Self {
        let places = file.source_code_info.iter().flat_map(|info| &info.location);
        let text = |comment: &str| comment.split_whitespace().collect::<Vec<_>>().join(" ");
        let noted = places.filter(|place| !place.leading_comments().trim().is_empty());
        Self(noted.map(|place| (place.path.clone(), text(place.leading_comments()))).collect())
    }

    fn at(&self, path: &[i32]) -> String {
        self.0.get(path).cloned().unwrap_or_default()
    }
}
