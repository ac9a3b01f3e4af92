//! Inputs that are in no row of the table, with what holds them or why nothing does.

/// ID, the file whose test names it (empty: none does), and why it is there.
pub const LIST: &[(&str, &str, &str)] = &[
    (
        "BI-011",
        "linkd/tests/it/bad_input/storms.rs",
        "thousands who come and go: it counts file descriptors of the gateway's own process",
    ),
    ("BI-012", "linkd/src/acceptor.rs", "no file descriptor left: the system's answer is played"),
    ("BI-022", "cli/tests/it/tickets.rs", "one ticket at two gateways at the same moment, again and again"),
    ("BI-032", "", "numbers out of range: messages are the game's, and so are the ranges of their numbers"),
    (
        "BI-035",
        "linkd/tests/it/bad_input/readers.rs",
        "a client that never reads: it needs a game that sends to it",
    ),
    ("BI-036", "", "the same request id again: requests carry none until handlers are marked `once`"),
    ("BI-037", "", "as BI-036"),
    ("BI-038", "", "as BI-036"),
    ("BI-039", "", "sessions can't be resumed yet"),
    ("BI-040", "", "as BI-039"),
    ("BI-043", "cli/tests/it/identity/matrix.rs", "old TLS: at every port, with every kind of certificate"),
    ("BI-044", "net/src/tls/tests.rs", "a TLS hello that trickles: time is paused there"),
    (
        "BI-049",
        "linkd/tests/it/bad_input/frames.rs",
        "data after a close: only a WebSocket can say that it closes and go on",
    ),
    ("BI-051", "cli/tests/it/identity/matrix.rs", "certificates: every port, every kind"),
    ("BI-052", "cli/tests/it/identity/matrix.rs", "as BI-051"),
    (
        "BI-063",
        "linkd/tests/it/bad_input/readers.rs",
        "a provider that does not read: it needs a player who floods it",
    ),
    (
        "BI-082",
        "global-cache/src/arbiter/tests/leaving.rs",
        "an id in use: the directory lets one start of a node live, and the arbiter tells starts apart",
    ),
    ("BI-116", "cli/tests/it/data.rs", "data folders: the directory's, as a process"),
    ("BI-117", "cli/tests/it/data.rs", "as BI-116"),
    ("BI-118", "cli/tests/it/data.rs", "as BI-116"),
    ("BI-119", "cli/tests/it/clock.rs", "a clock ten years back: processes under faketime"),
];

#[test]
fn what_is_listed_is_held_where_the_list_says() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (id, place, _) in LIST.iter().filter(|(_, place, _)| !place.is_empty()) {
        let text =
            std::fs::read_to_string(root.join(place)).unwrap_or_else(|error| panic!("{place}: {error}"));
        assert!(text.contains(id), "{place} does not name {id}");
    }
}
