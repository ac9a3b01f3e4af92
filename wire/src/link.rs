//! What linkd and provider say to each other. The frames of the hot path have fixed heads and no protobuf; the rest
//! are the messages of `proto/link.proto` in the body.
//!
//! | kind | from | head | body |
//! |---|---|---|---|
//! | [`ANNOUNCE`] [`BIND`] [`SUBSCRIBE`] [`UNBIND`] [`DISABLE`] [`KICK`] [`CHECK`] | provider, a call | – | message |
//! | [`LOAD`] | provider | – | message |
//! | [`AUTHENTICATE`] | linkd, a call | – | message |
//! | [`OPENED`] | linkd | – | message |
//! | [`DISPATCH`] | linkd | link sid u64, type id i64 | the client's payload, from the family byte on |
//! | [`SEND`] | provider, also as a call | link sids u64 × n | one whole client frame |
//! | [`BROADCAST`] | provider | app version u64; 0 is everybody | one whole client frame |
//! | [`USER_STATE`] | both | link sid u64, role present u8, role u64 | – |
//! | [`LINK_BROKEN`] | linkd | link sid u64, cause i32 | – |

use base::{LinkSid, Role, TypeId};

use crate::node::Kind;

/// Messages of `proto/link.proto`.
pub mod message {
    #![allow(clippy::pedantic, missing_docs)]
    include!(concat!(env!("OUT_DIR"), "/linkstead.link.rs"));
}

impl std::fmt::Debug for message::Authenticate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Authenticate {{ account: {:?}, token: ***, client_addr: {:?} }}",
            self.account, self.client_addr
        )
    }
}

pub const ANNOUNCE: Kind = Kind(16);
pub const BIND: Kind = Kind(17);
pub const SUBSCRIBE: Kind = Kind(18);
pub const UNBIND: Kind = Kind(19);
pub const LOAD: Kind = Kind(20);
pub const DISABLE: Kind = Kind(21);
pub const OPENED: Kind = Kind(22);
pub const DISPATCH: Kind = Kind(23);
pub const LINK_BROKEN: Kind = Kind(24);
pub const SEND: Kind = Kind(25);
pub const BROADCAST: Kind = Kind(26);
pub const KICK: Kind = Kind(27);
pub const USER_STATE: Kind = Kind(28);
pub const AUTHENTICATE: Kind = Kind(29);
pub const CHECK: Kind = Kind(30);

/// Link sids one Send may name.
pub const SEND_SIDS_MAX: usize = 4_096;
/// Modules one provider may bind.
pub const MODULES_MAX: usize = 1_024;
/// Link sids one Bind, UnBind or Check may name.
pub const BIND_SIDS_MAX: usize = 4_096;

/// A head with the wrong number of bytes. The peer's fault; the connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a head of kind {kind} has {len} bytes")]
pub struct BadHead {
    pub kind: u8,
    pub len: usize,
}

/// Where a client's payload comes from and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dispatch {
    pub link_sid: LinkSid,
    pub type_id: TypeId,
}

impl Dispatch {
    pub fn encode(self) -> [u8; 16] {
        let mut head = [0; 16];
        head[..8].copy_from_slice(&self.link_sid.0.to_le_bytes());
        head[8..].copy_from_slice(&self.type_id.0.to_le_bytes());
        head
    }

    pub fn decode(head: &[u8]) -> Result<Self, BadHead> {
        let head: &[u8; 16] = head.try_into().map_err(|_| BadHead { kind: DISPATCH.0, len: head.len() })?;
        let [s0, s1, s2, s3, s4, s5, s6, s7, t0, t1, t2, t3, t4, t5, t6, t7] = *head;
        Ok(Self {
            link_sid: LinkSid(u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7])),
            type_id: TypeId(i64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7])),
        })
    }
}

/// The sessions a Send names, read in place.
pub fn send_sids(head: &[u8]) -> Result<impl ExactSizeIterator<Item = LinkSid> + '_, BadHead> {
    let (sids, rest) = head.as_chunks::<8>();
    if !rest.is_empty() || sids.is_empty() || sids.len() > SEND_SIDS_MAX {
        return Err(BadHead { kind: SEND.0, len: head.len() });
    }
    Ok(sids.iter().map(|sid| LinkSid(u64::from_le_bytes(*sid))))
}

/// The head of a Broadcast: the app version it is meant for.
pub fn broadcast_version(head: &[u8]) -> Result<u64, BadHead> {
    head.try_into().map(u64::from_le_bytes).map_err(|_| BadHead { kind: BROADCAST.0, len: head.len() })
}

/// The role a session plays now; `None` is logged out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserState {
    pub link_sid: LinkSid,
    pub role: Option<Role>,
}

impl UserState {
    pub fn encode(self) -> [u8; 17] {
        let mut head = [0; 17];
        head[..8].copy_from_slice(&self.link_sid.0.to_le_bytes());
        head[8] = self.role.is_some().into();
        head[9..].copy_from_slice(&self.role.unwrap_or_default().0.to_le_bytes());
        head
    }

    pub fn decode(head: &[u8]) -> Result<Self, BadHead> {
        let bad = BadHead { kind: USER_STATE.0, len: head.len() };
        let (sid, rest) = head.split_first_chunk::<8>().ok_or(bad)?;
        let (&present, role) = rest.split_first().ok_or(bad)?;
        let role = u64::from_le_bytes(role.try_into().map_err(|_| bad)?);
        let link_sid = LinkSid(u64::from_le_bytes(*sid));
        Ok(Self { link_sid, role: (present != 0).then_some(Role(role)) })
    }
}

/// The end of a session, with the code of its cause; 0 is the client's own close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkBroken {
    pub link_sid: LinkSid,
    pub cause: i32,
}

impl LinkBroken {
    pub fn encode(self) -> [u8; 12] {
        let mut head = [0; 12];
        head[..8].copy_from_slice(&self.link_sid.0.to_le_bytes());
        head[8..].copy_from_slice(&self.cause.to_le_bytes());
        head
    }

    pub fn decode(head: &[u8]) -> Result<Self, BadHead> {
        let bad = BadHead { kind: LINK_BROKEN.0, len: head.len() };
        let (sid, cause) = head.split_first_chunk::<8>().ok_or(bad)?;
        let cause = i32::from_le_bytes(cause.try_into().map_err(|_| bad)?);
        Ok(Self { link_sid: LinkSid(u64::from_le_bytes(*sid)), cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn heads_are_frozen() {
        let sid = LinkSid::new(1, 2);
        let dispatch = Dispatch { link_sid: sid, type_id: TypeId(0x1_0000_0005) };
        assert_eq!(dispatch.encode(), [2, 0, 0, 0, 0, 0, 0, 1, 5, 0, 0, 0, 1, 0, 0, 0]);
        let state = UserState { link_sid: sid, role: Some(Role(9)) };
        assert_eq!(state.encode(), [2, 0, 0, 0, 0, 0, 0, 1, 1, 9, 0, 0, 0, 0, 0, 0, 0]);
        let broken = LinkBroken { link_sid: sid, cause: 110 };
        assert_eq!(broken.encode(), [2, 0, 0, 0, 0, 0, 0, 1, 110, 0, 0, 0]);
    }

    /// Holds: BI-059.
    #[test]
    fn a_send_names_between_one_and_the_limit() {
        assert!(send_sids(&[]).is_err());
        assert!(send_sids(&[0; 9]).is_err());
        assert!(send_sids(&vec![0; 8 * (SEND_SIDS_MAX + 1)]).is_err());
        let sids: Vec<_> = send_sids(&[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]).unwrap().collect();
        assert_eq!(sids, [LinkSid(1), LinkSid(2)]);
    }

    proptest! {
        #[test]
        fn heads_come_back(sid: u64, type_id: i64, role: Option<u64>, cause: i32) {
            let link_sid = LinkSid(sid);
            let dispatch = Dispatch { link_sid, type_id: TypeId(type_id) };
            prop_assert_eq!(Dispatch::decode(&dispatch.encode()), Ok(dispatch));
            let state = UserState { link_sid, role: role.map(Role) };
            prop_assert_eq!(UserState::decode(&state.encode()), Ok(state));
            let broken = LinkBroken { link_sid, cause };
            prop_assert_eq!(LinkBroken::decode(&broken.encode()), Ok(broken));
        }

        #[test]
        fn any_bytes_are_answered(bytes: Vec<u8>) {
            let _ = (Dispatch::decode(&bytes), UserState::decode(&bytes), LinkBroken::decode(&bytes));
            let _ = (send_sids(&bytes).is_ok(), broadcast_version(&bytes));
        }
    }
}
