//! The one registry of codes: name, number, whose fault, whether to retry. `docs/reference/errors.md` is printed from
//! it by a test.
//!
//! To a client, closing with code X is ReportError(FromLink, X, name) and then FIN; refusing a request is an RPC
//! result: the ancestor's own number where it has one, else `-100 - X`.

use base::{Blame, Retry, Span};

/// One entry of the registry. Compare by `number`; `name` is for people and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    pub number: i32,
    pub name: &'static str,
    pub blame: Blame,
    pub retry: Retry,
    /// What happened.
    pub what: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
}

impl Code {
    /// The RPC result that refuses a request with this code.
    pub const fn result(&self) -> i64 {
        match self.number {
            n if n < 0 => n as i64,
            n => -100 - n as i64,
        }
    }

    /// The entry with this number.
    pub fn find(number: i32) -> Option<&'static Code> {
        ALL.iter().copied().find(|code| code.number == number)
    }

    /// The entry that an RPC result stands for; `None` for success and for a game's own codes.
    pub fn of_result(result: i64) -> Option<&'static Code> {
        let number =
            if result <= -100 { i32::try_from(-100 - result).ok()? } else { i32::try_from(result).ok()? };
        Self::find(number).filter(|code| code.result() == result)
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}): {}; {}", self.name, self.number, self.what, self.remedy)
    }
}

const SOON: Retry = Retry::After(Span::millis(200));
const LATER: Retry = Retry::After(Span::secs(1));

macro_rules! codes {
    ($($name:ident = $number:literal, $blame:ident, $retry:expr, $what:literal, $remedy:literal;)*) => {
        $(
            #[doc = concat!("`", stringify!($number), "`: ", $what, ".")]
            pub const $name: Code = Code {
                number: $number,
                name: stringify!($name),
                blame: Blame::$blame,
                retry: $retry,
                what: $what,
                remedy: $remedy,
            };
        )*
        /// Every entry, in the order of the table above.
        pub const ALL: &[&Code] = &[$(&$name),*];
    };
}

codes! {
    // Numbers the ancestor's clients know.
    EXCEPTION = -1, Us, Retry::Unknown, "the handler failed unexpectedly", "look for the panic or error in the provider's log";
    TIMEOUT = -10, Peer, Retry::Unknown, "no answer came in time", "ask again only with a request id";
    BUSY = -19, Us, SOON, "too much is in flight", "wait and try again; if it lasts, add providers";
    NOT_AUTHED = 1, Client, Retry::Never, "a business message came before login", "send Auth first";
    NO_PROVIDER = 2, Us, LATER, "no provider of this module is reachable now", "try again; if it lasts, start one";
    PROVIDER_BUSY = 3, Us, LATER, "the provider is overloaded", "wait and try again";
    PROVIDER_BROKEN = 4, Peer, Retry::Unknown, "the provider this session was bound to is gone", "log in again";

    // Closing a client connection.
    FRAME_TOO_LARGE = 100, Client, Retry::Never, "a frame announces more bytes than allowed", "send smaller frames or raise linkd.frame_max";
    EMPTY_FRAME = 101, Client, Retry::Never, "a frame announces no payload", "send at least the family byte";
    BAD_FRAME = 102, Client, Retry::Never, "a payload has no readable head", "check the client's encoder against docs/reference/wire.md";
    HANDSHAKE_VIOLATION = 103, Client, Retry::Never, "a handshake message came twice or out of order", "handshake once per connection";
    ENCRYPTION_UNSUPPORTED = 104, Client, Retry::Never, "the client asks for the ancestor's encryption or compression", "turn it off in the client";
    HANDSHAKE_TIMEOUT = 105, Client, Retry::Now, "the handshake did not finish in time", "connect again";
    AUTH_TIMEOUT = 106, Client, Retry::Now, "no valid Auth came in time", "connect again and send Auth at once";
    AUTH_REFUSED = 107, Client, Retry::Never, "the account or its proof was not accepted", "get a new ticket";
    ALREADY_AUTHED = 108, Client, Retry::Never, "an Auth came on a connection that is logged in", "open a new connection for another account";
    ROLE_VIOLATION = 109, Client, Retry::Never, "a message of another role came to this port", "check the address dialled";
    SLOW_READER = 110, Client, Retry::Now, "the client reads slower than it is sent to", "read more often";
    TOO_MANY_CONNECTIONS = 111, Us, LATER, "this linkd is full", "try another linkd";
    TOO_MANY_FROM_ADDRESS = 112, Client, LATER, "too many connections from one address", "close some";
    TOO_MANY_UNAUTHED = 113, Us, LATER, "too many connections wait for login", "try again";
    SHUTTING_DOWN = 114, Us, Retry::Now, "this node is stopping", "connect to another linkd";
    FRAME_TIMEOUT = 115, Client, Retry::Now, "a frame did not arrive whole in time", "send frames at once";
    IDLE_TIMEOUT = 116, Client, Retry::Now, "nothing was heard from the client for too long", "send keep-alives";
    FLOOD = 117, Client, LATER, "the client sends far more than its rate", "send less; see linkd.frames_per_second and linkd.bytes_per_second";
    KICKED = 118, Us, Retry::Never, "an operator ended the session", "nothing; ask the operator";
    BAD_WEBSOCKET = 129, Client, Retry::Never, "a WebSocket message is text or breaks the protocol", "send binary messages";

    // Refusing a request.
    UNKNOWN_MODULE = 130, Client, Retry::Never, "no provider has ever announced this module", "check the module id";
    UNKNOWN_PROTOCOL = 131, Client, Retry::Never, "the module has no such protocol", "check the protocol id against protocols.lock";
    DECODE_ERROR = 132, Client, Retry::Never, "the body could not be read", "encode the message the handler expects";
    NO_ROLE = 133, Client, Retry::Never, "this module is routed by role and none is logged in", "log a role in first";
    VERSION_NOT_SERVED = 134, Client, Retry::Never, "no provider serves the client's main version", "update the client";
    VERSION_INVALID = 135, Client, Retry::Never, "the client's version is not of the form a.b.c.d", "send four numbers of 0 to 65535";
    REPLY_TOO_LARGE = 136, Us, Retry::Never, "the answer is larger than a frame may be", "page the answer";
    NAME_INVALID = 137, Client, Retry::Never, "the account is empty, too long or not clean UTF-8", "send 1 to 128 bytes without control or text direction characters";
    RESYNC_REQUIRED = 138, Client, Retry::Never, "the request is older than what is remembered of this account's requests", "read the state anew, then send a new request";

    // Refusing an Auth.
    TICKET_INVALID = 140, Client, Retry::Never, "the ticket is not one that this cluster's keys have signed", "get a new ticket";
    TICKET_EXPIRED = 141, Client, Retry::Never, "the ticket's time is over", "get a new ticket and use it at once";
    TICKET_NOT_YET_VALID = 142, Client, Retry::Never, "the ticket's time has not begun", "set the clocks of login service and linkd";
    TICKET_MISMATCH = 143, Client, Retry::Never, "the ticket is for another account, cluster or version", "get a ticket for this one";
    TICKET_REPLAYED = 144, Client, Retry::Never, "the ticket was used before", "get a new ticket for each login";
    TOO_MANY_ATTEMPTS = 145, Client, LATER, "too many logins from this address have failed", "wait, then send a valid ticket";
    AUTH_RUNNING = 146, Client, Retry::Never, "an Auth came while another one is being judged", "wait for the answer to the first";

    // Between nodes.
    BAD_HELLO = 160, Peer, Retry::Never, "the hello could not be accepted", "check cluster, role and version of the peer";
    NOT_LOOPBACK = 161, Peer, Retry::Never, "an insecure connection came from beyond loopback", "configure TLS between nodes";
    PROTOCOL_ORDER = 162, Peer, Retry::Never, "a message came before the one it needs", "announce, then bind, then subscribe";
    LIMIT = 163, Peer, Retry::Never, "a message exceeds a limit", "split it";
    NOT_OWNER = 164, Peer, Retry::Never, "the bind belongs to another provider", "only the owner may unbind";
    DUPLICATE_NODE = 165, Peer, LATER, "a node of this name is alive", "give each node its own id";
    CONTRACT_CLASH = 166, Peer, Retry::Never, "two projects implement one module", "give one of them another module id";
    CHOICE_CLASH = 167, Peer, Retry::Never, "two providers want one module routed differently", "agree on one choice";
    UNKNOWN_SESSION = 168, Peer, Retry::Never, "the client session does not exist", "forget it";
    STALE_EPOCH = 169, Peer, Retry::Never, "the sender's epoch is older than one already seen", "restart it";
    DUPLICATE_SERVER_ID = 170, Peer, LATER, "another live provider has this server id", "give each provider its own server_id";
    BAD_MESSAGE = 171, Peer, Retry::Never, "a message could not be read", "check that versions differ by at most one";
    SUPERSEDED = 173, Peer, Retry::Never, "a newer connection of the same node took this one's place", "nothing; the newer one serves";
    IDENTITY_MISMATCH = 174, Peer, Retry::Never, "a node says to be another one than its certificate", "give each node the certificate issued for its own cluster, role and id";
    TAKEN = 175, Peer, Retry::Never, "the key is held for another value", "whoever claimed it first has it";
    NO_STORE = 176, Us, Retry::Never, "the directory keeps nothing on a disk, which this needs", "set service_manager.store to a store on a disk";

    // Asking the arbiter for records.
    NOT_LOGGED_IN = 180, Peer, Retry::Never, "the provider has no session at the arbiter, or was evicted", "drop every record and log in anew";
    BAD_STATE = 181, Peer, Retry::Never, "a record can be asked for to share it or to modify it, and for nothing else", "check that versions differ by at most one";
    KEY_INVALID = 182, Peer, Retry::Never, "a record's key is empty or too long", "use keys of 1 to 1024 bytes";
    QUOTA = 183, Peer, Retry::Never, "the provider holds as many records as it may", "release some, or raise global_cache.held_max";
    ID_CONFLICT = 184, Peer, Retry::Never, "a request id is in use for something else", "give each request its own id";
    OTHER_STORAGE = 185, Peer, Retry::Never, "providers keep the records of one backend in different storages", "run them in one process, or use a backend that processes share";
    WARMING = 186, Us, LATER, "the arbiter has just started, and others may still use what was granted before", "try again";

    // To everybody.
    UNAVAILABLE = 172, Peer, LATER, "the peer can't be reached", "wait for it or look at its log";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_names_and_results_are_unique() {
        for (i, a) in ALL.iter().enumerate() {
            assert_eq!(Code::find(a.number), Some(*a));
            assert_eq!(Code::of_result(a.result()), Some(*a));
            assert!(
                ALL[..i].iter().all(|b| b.number != a.number && b.name != a.name && b.result() != a.result())
            );
        }
        assert_eq!(BUSY.result(), -19);
        assert_eq!(UNKNOWN_MODULE.result(), -230);
        assert_eq!(Code::of_result(0), None);
        assert_eq!(Code::of_result((7 << 32) | 5), None);
    }
}
