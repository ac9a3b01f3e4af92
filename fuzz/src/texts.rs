//! Short texts out of configurations, certificates and clients: what is accepted reads the same when written again.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use base::{Account, AppVersion, NodeId};
use linkd::config::{Listen, Net};
use net::hello::Role;
use net::tls::Identity;
use node::config::{Size, Time};

fn again<T: FromStr + Display + PartialEq + Debug>(text: &str) -> Option<T> {
    let value: T = text.parse().ok()?;
    assert_eq!(value.to_string().parse::<T>().ok().as_ref(), Some(&value), "{text:?} reads as {value}");
    Some(value)
}

/// The same for what configurations hold as text.
fn in_settings<T: TryFrom<String> + Into<String> + Copy + PartialEq + Debug>(text: &str) {
    let Ok(value) = T::try_from(text.to_owned()) else { return };
    assert_eq!(T::try_from(value.into()).ok(), Some(value), "{text:?}");
}

/// Every reader of a short text.
pub fn text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    again::<AppVersion>(text);
    again::<Time>(text);
    again::<Size>(text);
    in_settings::<Net>(text);
    in_settings::<Listen>(text);
    if let Ok(node) = NodeId::new(text) {
        assert_eq!(node.as_str(), text);
        assert!(text.is_ascii() && !text.contains(['/', ':', ' ']));
    }
    if let Ok(account) = Account::new(text) {
        assert_eq!(account.as_str(), text);
        assert!(text.len() <= 128 && !text.contains(char::is_control));
    }
    if let Some(role) = Role::parse(text) {
        assert_eq!(role.as_str(), text);
    }
    if let Ok(identity) = Identity::parse(text) {
        assert_eq!(identity.to_string(), text);
    }
}
