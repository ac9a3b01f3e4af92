//! What nodes and the directory say to each other.

use base::{Generation, Mono, NodeId, Span};
use node::directory::view::{self, View};
use node::directory::{Instance, Service, by_node};
use prost::Message;
use service_manager::ServiceManagerConfig;
use service_manager::directory::{Action, Directory, Event};
use wire::directory::{self as msg, from_directory::Kind as From, to_directory::Kind as To};

/// Messages that one input may hold.
const MESSAGES_MAX: usize = 64;

/// The messages of an input, each after its length. What can't be read ends it.
fn messages<M: Message + Default + PartialEq + std::fmt::Debug>(mut bytes: &[u8]) -> impl Iterator<Item = M> {
    let next = move || {
        let message = M::decode_length_delimited(&mut bytes).ok()?;
        assert_eq!(M::decode(&message.encode_to_vec()[..]).ok().as_ref(), Some(&message));
        Some(message)
    };
    std::iter::from_fn(next).take(MESSAGES_MAX)
}

/// What nodes say: session 1 is admitted, session 2 is a stranger's, and every second message is either's. Whatever they
/// say, the core keeps its own promises, and a session that is closed is heard no more.
pub fn to(bytes: &[u8]) {
    let config = ServiceManagerConfig::default();
    let (mut now, mut actions) = (Mono::ZERO, Vec::new());
    let mut core = Directory::new(config.settings("dev", 1), now);
    let (ours, theirs) = (Generation(1), Generation(2));
    for session in [ours, theirs] {
        core.step(now, Event::Opened { session, loopback: true }, &mut actions);
    }
    let hello = msg::Hello {
        cluster: "dev".to_owned(),
        node: "linkd-1".to_owned(),
        role: "linkd".to_owned(),
        proto: 1,
        ..msg::Hello::default()
    };
    core.step(now, Event::Said { session: ours, message: To::Hello(hello) }, &mut actions);
    assert!(actions.iter().any(|action| matches!(action, Action::Send { message: From::Welcome(_), .. })));
    let mut closed = Vec::new();
    for (at, message) in messages::<msg::ToDirectory>(bytes).enumerate() {
        let Some(message) = message.kind else { continue };
        let session = if at % 2 == 0 { ours } else { theirs };
        if closed.contains(&session) {
            continue;
        }
        now += Span::millis(50);
        actions.clear();
        core.step(now, Event::Said { session, message }, &mut actions);
        core.check();
        for action in &actions {
            for (session, message) in action.said() {
                assert!(!closed.contains(&session), "{message:?} to {session:?}, which is closed");
                told(message);
            }
            if let Action::Close { session } = action {
                closed.push(*session);
            }
        }
    }
    core.step(now + Span::secs(3_600), Event::Tick, &mut actions);
    core.check();
}

/// What the directory says fits a message that tonic carries.
fn told(message: &From) {
    let message = msg::FromDirectory { kind: Some(message.clone()) };
    assert!(message.encoded_len() < 4 << 20);
}

/// What the directory says, to a node that follows everything.
pub fn from(bytes: &[u8]) {
    let mut view = View::default();
    let mut actions = Vec::new();
    for name in ["/", "module/7"] {
        view.step(Mono::ZERO, view::Event::Follow { name: name.to_owned() }, &mut actions);
    }
    for message in messages::<msg::FromDirectory>(bytes) {
        let event = match message.kind {
            Some(From::Welcome(_)) => view::Event::Connected,
            Some(From::Snapshot(list)) => view::Event::Snapshot {
                name: list.name,
                revision: list.revision,
                warming: list.warming,
                instances: instances(list.instances),
                more: list.more,
            },
            Some(From::Delta(delta)) => view::Event::Delta {
                name: delta.name,
                previous: delta.previous,
                revision: delta.revision,
                added: instances(delta.added),
                removed: delta.removed.into_iter().filter_map(key).collect(),
            },
            Some(From::Warm(_)) => view::Event::Warm,
            _ => continue,
        };
        view.step(Mono::ZERO, event, &mut actions);
        view.check();
        let services = view.services("/");
        let listed: usize = by_node(&services).iter().map(|node| node.services.len()).sum();
        assert!(listed <= services.len());
    }
}

fn instances(list: Vec<msg::Instance>) -> Vec<Instance> {
    let read = |message: msg::Instance| {
        let instance = Instance::from_wire(message)?;
        // Of equal keys the last one counts, so a service is the same once it was read.
        let again: Service = msg::Service::from(&instance.service).into();
        assert_eq!(again, instance.service);
        Some(instance)
    };
    list.into_iter().filter_map(read).collect()
}

fn key(key: msg::Key) -> Option<view::Key> {
    Some((key.name, NodeId::new(&key.node).ok()?))
}
