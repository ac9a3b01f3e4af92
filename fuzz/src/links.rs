//! What linkd and provider say to each other: fixed heads, and messages.

use prost::Message;
use wire::Level;
use wire::link::{self, Dispatch, LinkBroken, SEND_SIDS_MAX, UserState, message};

/// The fixed heads: each has one size, and is written as it was read.
pub fn heads(bytes: &[u8]) {
    if let Ok(head) = Dispatch::decode(bytes) {
        assert_eq!(head.encode(), bytes);
    }
    if let Ok(head) = LinkBroken::decode(bytes) {
        assert_eq!(head.encode(), bytes);
    }
    if let Ok(head) = UserState::decode(bytes) {
        // "No role" may carry any number, which is not looked at.
        assert_eq!(UserState::decode(&head.encode()), Ok(head));
    }
    if let Ok(sids) = link::send_sids(bytes) {
        let sids: Vec<u8> = sids.flat_map(|sid| sid.0.to_le_bytes()).collect();
        assert_eq!(sids, bytes);
        assert!((1..=SEND_SIDS_MAX).contains(&(sids.len() / 8)));
    }
    if let Ok(version) = link::broadcast_version(bytes) {
        assert_eq!(version.to_le_bytes(), bytes);
    }
}

/// Reads a message, and it again from its own bytes.
fn again<M: Message + Default + PartialEq + std::fmt::Debug>(bytes: &[u8]) -> Option<M> {
    let message = M::decode(bytes).ok()?;
    assert_eq!(M::decode(&message.encode_to_vec()[..]).ok().as_ref(), Some(&message));
    Some(message)
}

/// The messages: the first byte says which.
pub fn messages(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 12 {
        0 => drop(again::<message::Announce>(bytes)),
        1 => {
            let bind = again::<message::Bind>(bytes).unwrap_or_default();
            for protocol in bind.modules.iter().flat_map(|module| &module.protocols) {
                assert!(Level::ALL.contains(&Level::of(protocol.level)));
            }
        }
        2 => drop(again::<message::Subscribe>(bytes)),
        3 => drop(again::<message::UnBind>(bytes)),
        4 => drop(again::<message::BindResult>(bytes)),
        5 => drop(again::<message::Load>(bytes)),
        6 => drop(again::<message::Disable>(bytes)),
        7 => drop(again::<message::Opened>(bytes)),
        8 => drop(again::<message::Kick>(bytes)),
        9 => {
            if let Some(ask) = again::<message::Authenticate>(bytes) {
                assert!(format!("{ask:?}").contains("token: ***"));
            }
        }
        10 => drop(again::<message::Authenticated>(bytes)),
        _ => drop(again::<message::BroadcastResult>(bytes)),
    }
}
