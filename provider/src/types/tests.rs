//! What the printed module says, and what is refused with whose name.

use expect_test::expect;
use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};

use super::TypesError;
use super::js::module;
use super::shapes::Shapes;
use crate::module::{Descriptor, Protocol};

const SAY: Protocol = Protocol {
    id: 5,
    name: "Rooms.say",
    route_by: 0,
    level: wire::Level::Normal,
    parallel: false,
    notify: false,
    request: "Say",
    reply: "",
};

const ROOMS: Descriptor = Descriptor {
    id: 2,
    name: "Rooms",
    choice: "load",
    dynamic: true,
    package: "game",
    protocols: &[SAY],
    pushes: &[("Rooms.Said", -7)],
};

fn field(name: &str, number: i32, ty: Type, label: Label) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.into()),
        number: Some(number),
        r#type: Some(ty.into()),
        label: Some(label.into()),
        ..Default::default()
    }
}

fn message(name: &str, field: Vec<FieldDescriptorProto>) -> DescriptorProto {
    DescriptorProto { name: Some(name.into()), field, ..Default::default() }
}

fn file(package: &str, message_type: Vec<DescriptorProto>) -> FileDescriptorProto {
    FileDescriptorProto {
        name: Some(format!("{package}.proto")),
        package: Some(package.into()),
        syntax: Some("proto3".into()),
        message_type,
        ..Default::default()
    }
}

fn read(file: Vec<FileDescriptorProto>) -> Result<Shapes, TypesError> {
    Shapes::read(&FileDescriptorSet { file }.encode_to_vec())
}

fn say() -> DescriptorProto {
    message(
        "Say",
        vec![
            field("loud", 2, Type::Double, Label::Repeated),
            field("text", 1, Type::String, Label::Optional),
        ],
    )
}

#[test]
fn protocols_and_the_messages_they_use_are_written() {
    let unused = message("Unused", vec![]);
    let shapes = read(vec![file("game", vec![say(), message("Said", vec![]), unused])]).unwrap();
    let text = module(&[ROOMS], &shapes).unwrap();
    let body = text.split_once("Push */\n").unwrap().1;
    assert!(!body.contains("Unused"));
    expect![[r#"

        /**
         * @typedef {object} Said
         */

        /**
         * @typedef {object} Say
         * @property {string} text
         * @property {number[]} loud
         */

        /**
         * The shapes of the messages.
         * @type {Readonly<{
         *   Said: MessageType<Said>,
         *   Say: MessageType<Say>,
         * }>}
         */
        export const messages = Object.freeze({
          Said: { name: "game.Said", fields: [] },
          Say: { name: "game.Say", fields: [
            { tag: 1, name: "text", kind: "string" },
            { tag: 2, name: "loud", kind: "double", repeated: true, packed: true },
          ] },
        });

        /** Which modules there are, and how a gateway picks a provider for them. */
        export const modules = Object.freeze([
          { id: 2, name: "Rooms", choice: "load", dynamic: true },
        ]);

        /** The protocols of module `Rooms`. */
        export const Rooms = Object.freeze({
          /** @type {Rpc<Say, void>} */
          say: { name: "Rooms.say", module: 2, protocol: 5, request: messages.Say, reply: null },
          /** @type {Push<Said>} */
          Said: { name: "Rooms.Said", module: 2, protocol: -7, push: messages.Said },
        });
    "#]]
    .assert_eq(body);
}

#[test]
fn what_cannot_be_described_is_named() {
    let refused = |files: Vec<FileDescriptorProto>, modules: &[Descriptor]| {
        read(files).and_then(|shapes| module(modules, &shapes)).unwrap_err().to_string()
    };
    let said = || message("Said", vec![]);
    let missing = refused(vec![file("game", vec![said()])], &[ROOMS]);
    assert!(missing.starts_with("no `.proto` file has a message `Say`, which Rooms.say uses"), "{missing}");
    let twice = vec![file("a", vec![say(), said()]), file("b", vec![say()])];
    let twice = refused(twice, &[ROOMS]);
    assert!(twice.contains("Rooms.say uses `Say`") && twice.contains("a.Say, b.Say"), "{twice}");
    let group = message("Say", vec![field("old", 1, Type::Group, Label::Optional)]);
    let group = refused(vec![file("game", vec![group, said()])], &[ROOMS]);
    assert!(group.starts_with("`game.Say.old`"), "{group}");
    let named = Descriptor { name: "class", protocols: &[], pushes: &[], ..ROOMS };
    let named = refused(vec![], &[named]);
    assert!(named.starts_with("`class`"), "{named}");
    let proto2 = FileDescriptorProto { syntax: None, ..file("game", vec![]) };
    assert!(refused(vec![proto2], &[]).contains("proto3"));
    let unreadable = Shapes::read(&[0xff]).unwrap_err();
    assert!(matches!(unreadable, TypesError::Unreadable(_)), "{unreadable}");
    assert_eq!(crate::provider("game").types_js(), Err(TypesError::NoDescriptors));
}
