//! Names of things, one type each, so that a server can't be passed where a module is meant.

use std::fmt;
use std::sync::Arc;

/// Why a text can't be an id. Blame: whoever wrote it; retrying the same text never helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("{what} is empty; give it 1 to {max} bytes")]
    Empty { what: &'static str, max: usize },
    #[error("{what} has {len} bytes, more than the {max} allowed; shorten it")]
    TooLong { what: &'static str, len: usize, max: usize },
    #[error("{what} contains {found:?}; allowed are letters, digits, '.', '_' and '-'")]
    BadCharacter { what: &'static str, found: char },
    #[error("{what} contains {found:?}; allowed is text without control and direction characters")]
    Unclean { what: &'static str, found: char },
}

/// The longest [`NodeId`] in bytes.
pub const NODE_ID_BYTES_MAX: usize = 128;
/// The longest [`Account`] in bytes.
pub const ACCOUNT_BYTES_MAX: usize = 128;

/// A node of the cluster, unique in it: `linkd-1`. Stands in certificates and mesh names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(Arc<str>);

impl NodeId {
    /// 1 to 128 bytes of letters, digits, `.`, `_` and `-`.
    pub fn new(text: &str) -> Result<Self, IdError> {
        let what = "the node id";
        if text.is_empty() {
            return Err(IdError::Empty { what, max: NODE_ID_BYTES_MAX });
        }
        if text.len() > NODE_ID_BYTES_MAX {
            return Err(IdError::TooLong { what, len: text.len(), max: NODE_ID_BYTES_MAX });
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        match text.chars().find(|&c| !allowed(c)) {
            Some(found) => Err(IdError::BadCharacter { what, found }),
            None => Ok(Self(Arc::from(text))),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A player's account, set once by authentication: UTF-8 of 1 to 128 bytes without control characters, line breaks and
/// characters that turn the direction of the text around them. Clean enough for a log.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account(Arc<str>);

impl Account {
    pub fn new(text: &str) -> Result<Self, IdError> {
        let what = "the account";
        if text.is_empty() {
            return Err(IdError::Empty { what, max: ACCOUNT_BYTES_MAX });
        }
        if text.len() > ACCOUNT_BYTES_MAX {
            return Err(IdError::TooLong { what, len: text.len(), max: ACCOUNT_BYTES_MAX });
        }
        match text.chars().find(|&c| is_unclean(c)) {
            Some(found) => Err(IdError::Unclean { what, found }),
            None => Ok(Self(Arc::from(text))),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What could forge a line of a log or the look of a name beside it.
pub fn is_unclean(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

number! {
    /// A configured provider number: what `redirect_to_server` and `feed_full` name.
    ServerId(u32)
}
number! {
    /// The game's own role number; at most one per client session at a time.
    Role(u64)
}
number! {
    /// A module, unique in the cluster. 0 is the framework's; 11000–11999 are reserved for built-in modules.
    ModuleId(i32)
}
number! {
    /// A protocol of a module: usually [`crate::hash::hash32`] of its name, so often negative.
    ProtocolId(i32)
}

/// Module and protocol in one number: the key of every dispatch table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TypeId(pub i64);

impl TypeId {
    pub const fn new(module: ModuleId, protocol: ProtocolId) -> Self {
        Self(((module.0 as i64) << 32) | (protocol.0 as u32 as i64))
    }

    pub const fn module(self) -> ModuleId {
        ModuleId((self.0 >> 32) as i32)
    }

    pub const fn protocol(self) -> ProtocolId {
        ProtocolId(self.0 as i32)
    }
}

impl fmt::Display for TypeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.module(), self.protocol())
    }
}

/// One client connection of one linkd: worker (8 bits) and counter (56 bits), never reused within the
/// linkd's epoch. Outside that linkd it travels with the linkd's node id and epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LinkSid(pub u64);

impl LinkSid {
    /// `counter` keeps its low 56 bits: at a million connections a second that is 2,283 years.
    pub const fn new(worker: u8, counter: u64) -> Self {
        Self(((worker as u64) << 56) | (counter & ((1 << 56) - 1)))
    }

    pub const fn worker(self) -> u8 {
        (self.0 >> 56) as u8
    }

    pub const fn counter(self) -> u64 {
        self.0 & ((1 << 56) - 1)
    }
}

impl fmt::Display for LinkSid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.worker(), self.counter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_id_keeps_both_halves_when_the_protocol_is_negative() {
        let id = TypeId::new(ModuleId(10000), ProtocolId(-997899722));
        assert_eq!((id.module(), id.protocol()), (ModuleId(10000), ProtocolId(-997899722)));
        assert_eq!(TypeId::new(ModuleId(1), ProtocolId(5)).0, 0x1_0000_0005);
        assert_eq!(TypeId::new(ModuleId(-1), ProtocolId(-1)).module(), ModuleId(-1));
    }

    #[test]
    fn a_link_sid_keeps_worker_and_counter_apart() {
        let sid = LinkSid::new(255, (1 << 56) - 1);
        assert_eq!((sid.worker(), sid.counter()), (255, (1 << 56) - 1));
        assert_eq!(LinkSid::new(1, 1 << 56).worker(), 1);
    }

    #[test]
    fn ids_refuse_what_they_must() {
        assert!(NodeId::new("linkd-1.eu_west").is_ok());
        assert!(matches!(NodeId::new(""), Err(IdError::Empty { .. })));
        assert!(matches!(NodeId::new("a b"), Err(IdError::BadCharacter { found: ' ', .. })));
        assert!(matches!(NodeId::new(&"x".repeat(129)), Err(IdError::TooLong { len: 129, .. })));
        assert!(Account::new("玩家7").is_ok());
        for unclean in ["a\0", "a\n", "\u{202e}nna", "a\u{2066}", "a\u{2028}b", "\u{7f}"] {
            let error = Account::new(unclean).unwrap_err();
            assert!(matches!(error, IdError::Unclean { .. }) && !error.to_string().contains(unclean));
        }
        assert!(matches!(Account::new(&"é".repeat(65)), Err(IdError::TooLong { len: 130, .. })));
    }
}
