//! The game of the simulation: three modules, and the client frames that ask for them and answer.

use base::{AppVersion, ModuleId, ProtocolId, TypeId};
use bytes::{BufMut, Bytes, BytesMut};
use wire::auth::{AUTH, Auth};
use wire::frame::{self, Decoded, Frame};
use wire::link::message;
use wire::payload::{self, Family, Head};
use wire::skim::{self, Key};

/// Static, chosen by the account.
pub const HALL: ModuleId = ModuleId(7);
/// Static, chosen by load.
pub const SHOP: ModuleId = ModuleId(8);
/// Dynamic; one of its protocols is routed by a key.
pub const ROOM: ModuleId = ModuleId(9);

const PLAIN: ProtocolId = ProtocolId(1);
/// Passes overload.
const CRITICAL: ProtocolId = ProtocolId(2);
const KEYED: ProtocolId = ProtocolId(3);
/// What providers say unasked.
pub const PUSH: TypeId = TypeId::new(HALL, ProtocolId(9));

/// A way through the cluster; after healing every client must get an answer on each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    Hall,
    Shop,
    Room,
    Key,
}

impl Way {
    pub const ALL: [Way; 4] = [Way::Hall, Way::Shop, Way::Room, Way::Key];

    pub fn module(self) -> ModuleId {
        match self {
            Way::Hall => HALL,
            Way::Shop => SHOP,
            Way::Room | Way::Key => ROOM,
        }
    }

    /// Whether frames of this type go this way.
    pub fn is(self, id: TypeId) -> bool {
        id.module() == self.module() && (self == Way::Key) == (id.protocol() == KEYED)
    }
}

/// A client's request or one-way message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Never given twice in a run.
    pub uid: u64,
    pub way: Way,
    pub critical: bool,
    pub key: Option<String>,
    pub wants_answer: bool,
}

/// What a client's frame says, as far as anybody who watches cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Auth { account: String, version: AppVersion },
    Asked(Asked),
    Other,
}

impl Asked {
    pub fn type_id(&self) -> TypeId {
        let protocol = match self.way {
            Way::Key => KEYED,
            _ if self.critical => CRITICAL,
            _ => PLAIN,
        };
        TypeId::new(self.way.module(), protocol)
    }

    pub fn frame(&self) -> Bytes {
        let head = if self.wants_answer { Head::request(self.uid as i64) } else { Head::PROTOCOL };
        whole(self.type_id(), head, |out| {
            if let Some(key) = &self.key {
                out.put_slice(&[0x0a, key.len() as u8]);
                out.put_slice(key.as_bytes());
            }
            out.put_u8(0x10);
            number(out, self.uid);
        })
    }

    /// Reads a request back: what `payload` of this type asks for.
    pub fn read(type_id: TypeId, payload: &[u8]) -> Option<Self> {
        let (head, body) = payload::decode(payload).ok()?;
        let key = match skim::field(body, 1) {
            Ok(Some(Key::Bytes(key))) => Some(String::from_utf8_lossy(key).into_owned()),
            _ => None,
        };
        let Ok(Some(Key::Number(uid))) = skim::field(body, 2) else { return None };
        let way = match (type_id.module(), type_id.protocol()) {
            (HALL, _) => Way::Hall,
            (SHOP, _) => Way::Shop,
            (ROOM, KEYED) => Way::Key,
            (ROOM, _) => Way::Room,
            _ => return None,
        };
        let (critical, wants_answer) = (type_id.protocol() == CRITICAL, head.family == Family::Request);
        Some(Self { uid, way, critical, key, wants_answer })
    }

    /// The answer of the provider in this slot.
    pub fn answer(&self, by: usize) -> Bytes {
        whole(self.type_id(), Head::response(self.uid as i64, 0), |out| {
            out.put_u8(0x18);
            number(out, by as u64);
        })
    }

    pub fn refusal(&self, result: i64) -> Bytes {
        let mut out = BytesMut::new();
        payload::encode_refusal(&mut out, self.type_id(), self.uid as i64, result);
        out.freeze()
    }
}

/// Which provider's slot an answer's body names.
pub fn answered_by(body: &[u8]) -> Option<u64> {
    match skim::field(body, 3) {
        Ok(Some(Key::Number(by))) => Some(by),
        _ => None,
    }
}

fn number(out: &mut BytesMut, mut n: u64) {
    while n >= 0x80 {
        out.put_u8(n as u8 | 0x80);
        n >>= 7;
    }
    out.put_u8(n as u8);
}

pub fn whole(type_id: TypeId, head: Head, body: impl FnOnce(&mut BytesMut)) -> Bytes {
    let mut out = BytesMut::new();
    payload::encode_frame(&mut out, type_id, head, body);
    out.freeze()
}

pub fn auth(account: &str, version: &str) -> Bytes {
    let auth = Auth { account: account.as_bytes(), app_version: version.as_bytes(), ..Auth::default() };
    whole(AUTH, Head::request(1), |out| auth.encode(out))
}

/// The models send whole frames only, so this never fails for what travels here.
pub fn open(bytes: &[u8]) -> Option<Frame<'_>> {
    match frame::decode(bytes, u32::MAX) {
        Ok(Decoded::Frame(frame)) => Some(frame),
        _ => None,
    }
}

pub fn said(bytes: &[u8]) -> Said {
    let Some(frame) = open(bytes) else { return Said::Other };
    if frame.type_id != AUTH {
        return Asked::read(frame.type_id, frame.payload).map_or(Said::Other, Said::Asked);
    }
    let auth = payload::decode(frame.payload).ok().and_then(|(_, body)| Auth::decode(body).ok());
    auth.map_or(Said::Other, |auth| Said::Auth {
        account: String::from_utf8_lossy(auth.account).into_owned(),
        version: String::from_utf8_lossy(auth.app_version).parse().unwrap_or_default(),
    })
}

/// A frame for the trace.
pub fn show(bytes: &[u8]) -> String {
    let Some(frame) = open(bytes) else { return format!("{} bytes that are no frame", bytes.len()) };
    match payload::decode(frame.payload) {
        Ok((head, _)) => match (said(bytes), head.family) {
            (Said::Asked(asked), Family::Request | Family::Protocol) => {
                let key = asked.key.map_or_else(String::new, |key| format!(" {key}"));
                format!("{:?} {}{key} {:?}", head.family, frame.type_id, asked.uid)
            }
            (Said::Auth { account, version }, Family::Request) => format!("auth {account} {version}"),
            _ => format!("{:?} {} call {} result {}", head.family, frame.type_id, head.session, head.code),
        },
        Err(error) => error.to_string(),
    }
}

/// How a provider wants a module routed.
pub fn spec(module: ModuleId) -> message::Module {
    let (name, choice) = match module {
        HALL => ("Hall", "hash_account"),
        SHOP => ("Shop", "load"),
        _ => ("Room", "hash_account"),
    };
    let dynamic = module == ROOM;
    let protocol = |id: ProtocolId, route_by, level| message::Protocol {
        id: id.0,
        name: format!("p{id}"),
        route_by,
        level,
    };
    let mut protocols = vec![protocol(PLAIN, 0, 2), protocol(CRITICAL, 0, 0)];
    if dynamic {
        protocols.push(protocol(KEYED, 1, 2));
    }
    message::Module {
        id: module.0,
        name: name.into(),
        dynamic,
        choice: choice.into(),
        contract: module.0 as u64,
        protocols,
        queue_max: 0,
    }
}
