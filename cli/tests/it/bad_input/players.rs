//! What players send.

use base::{ModuleId, ProtocolId, TypeId};
use prost::Message;
use tokio::time::sleep;
use wire::auth::{AUTH, Auth};
use wire::handshake::CHANDSHAKE;
use wire::payload::Head;

use super::client::{Client, Got, auth, frame, header, keep_alive};
use super::table::After::{Closed, Open};
use super::table::Table;
use super::world::{ECHO, FRAME, NOWHERE, PER_ADDRESS, Word, World, within};

const LIMIT: usize = 64 * 1024;
/// Below what a session may have in flight at a provider.
const IN_ORDER: i64 = 60;

pub async fn run(world: &World, table: &mut Table) {
    frames(world, table).await;
    slow(world, table).await;
    crowd(world, table).await;
    requests(world, table).await;
    bodies(world, table).await;
    logins(world, table).await;
    many(world, table).await;
}

fn request(session: i64, body: &[u8]) -> Vec<u8> {
    frame(ECHO, Head::request(session), body)
}

/// Bytes that are no frames.
async fn frames(world: &World, table: &mut Table) {
    let large = "FRAME_TOO_LARGE";
    // One byte of family, one of session, four around the text.
    let whole = Word { text: "x".repeat(LIMIT - 6), numbers: vec![] }.encode_to_vec();
    assert_eq!(request(1, &whole).len(), LIMIT + 12);
    let tls = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0xaa, 0xbb];
    let provider_only = TypeId::new(ModuleId(11_008), ProtocolId(0));
    let cases = [
        ("BI-001", "announces 2^32 - 1 bytes", header(7, u32::MAX), (large, Closed)),
        ("BI-002", "announces 2^31 bytes, negative when signed", header(7, 1 << 31), (large, Closed)),
        ("BI-002", "announces 2^31 - 1 bytes", header(7, (1 << 31) - 1), (large, Closed)),
        ("BI-003", "announces one byte more than the limit", header(7, LIMIT as u32 + 1), (large, Closed)),
        ("BI-004", "announces nothing", header(7, 0), ("EMPTY_FRAME", Closed)),
        ("BI-005", "an HTTP request", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), (large, Closed)),
        ("BI-005", "a TLS hello on a port in clear", tls.to_vec(), (large, Closed)),
        (
            "BI-005",
            "a family that does not exist",
            [&header(7, 1)[..], &[0x7f]].concat(),
            ("BAD_FRAME", Closed),
        ),
        (
            "BI-018",
            "a provider's message",
            frame(provider_only, Head::PROTOCOL, &[0]),
            ("ROLE_VIOLATION", Closed),
        ),
        (
            "BI-033",
            "asks for compression",
            frame(CHANDSHAKE, Head::PROTOCOL, &[0, 0, 1, 1]),
            ("ENCRYPTION_UNSUPPORTED", Closed),
        ),
    ];
    for (id, input, bytes, expected) in cases {
        // A handshake comes before the login, all else is worse when it comes from inside.
        let mut player = if id == "BI-033" { world.stranger().await } else { world.player("frames").await };
        table.row(world, id, input, expected, player.say(&bytes)).await;
    }
    let mut player = world.player("frames").await;
    let whole = request(1, &whole);
    let exactly = player.ask(&whole);
    table.row(world, "BI-003", "exactly the limit", ("answered", Open), exactly).await;
    let noise = async {
        let mut seed = 7u64;
        for _ in 0..200 {
            let bytes: Vec<u8> = std::iter::repeat_with(|| {
                seed = base::hash::mix(seed.wrapping_add(1));
                seed as u8
            })
            .take(512)
            .collect();
            let got = world.stranger().await.say(&bytes).await;
            if got.after == Open || got.code == "nothing" {
                return got;
            }
        }
        Got { code: "a code each".to_owned(), after: Closed }
    };
    table.row(world, "BI-045", "200 times 512 bytes of noise", ("a code each", Closed), noise).await;
}

/// Frames that do not come.
async fn slow(world: &World, table: &mut Table) {
    let whole = request(1, &[0; 100]);
    for (id, input, at) in
        [("BI-006", "a header, a byte now and then", 0), ("BI-007", "a body, a byte now and then", 12)]
    {
        let mut player = world.player("slow").await;
        let trickle = async {
            player.send(&whole[..at]).await;
            for byte in whole[at..].chunks(1).take(8) {
                // Sleep: the trickle is what is tested; its pace is far below the frame's deadline, its sum beyond.
                sleep(FRAME / 5).await;
                player.send(byte).await;
            }
            player.outcome().await
        };
        table.row(world, id, input, ("FRAME_TIMEOUT", Closed), trickle).await;
    }
    let mut player = world.player("half").await;
    let half = async {
        player.send(&whole[..6]).await;
        player.hang_up().await;
        player.outcome().await
    };
    table.row(world, "BI-008", "half a header and the end", ("nothing", Closed), half).await;
    let mut stranger = world.stranger().await;
    table.row(world, "BI-009", "nothing at all", ("HANDSHAKE_TIMEOUT", Closed), stranger.begin(&[])).await;
}

/// One address takes all it can.
async fn crowd(world: &World, table: &mut Table) {
    let crowd = async {
        let mut held = Vec::new();
        for _ in 0..PER_ADDRESS {
            held.push(world.stranger().await);
        }
        let got = world.stranger().await.begin(&[]).await;
        drop(held);
        let free = async { while world.stranger().await.say(&[]).await.after == Closed {} };
        within(free).await;
        got
    };
    let expected = ("TOO_MANY_FROM_ADDRESS", Closed);
    table.row(world, "BI-010", "more connections than an address may have", expected, crowd).await;
}

/// Frames that are well made and come when or where they must not.
async fn requests(world: &World, table: &mut Table) {
    let unknown = TypeId::new(ModuleId(7), ProtocolId(1));
    let word = Word { text: "sid 1".to_owned(), numbers: vec![1, i64::MAX] }.encode_to_vec();
    let cases = [
        (
            "BI-013",
            "a module that nobody knows",
            frame(NOWHERE, Head::request(1), b""),
            ("UNKNOWN_MODULE", Open),
        ),
        (
            "BI-014",
            "a known module, an unknown protocol",
            frame(unknown, Head::request(1), b""),
            ("UNKNOWN_PROTOCOL", Open),
        ),
        ("BI-017", "another session's number in the body", request(1, &word), ("answered", Open)),
    ];
    for (id, input, bytes, expected) in cases {
        let mut player = world.player("requests").await;
        table.row(world, id, input, expected, player.ask(&bytes)).await;
    }
    let before_login: Vec<u8> = (1..=3).flat_map(|n| request(n, b"")).collect();
    let once = request(1, b"");
    for (input, bytes, after) in
        [("a request before login", &once, Open), ("three requests before login", &before_login, Closed)]
    {
        let mut stranger = world.stranger().await;
        table.row(world, "BI-016", input, ("NOT_AUTHED", after), stranger.say(bytes)).await;
    }
}

/// Bodies that a handler can't read, or hardly.
async fn bodies(world: &World, table: &mut Table) {
    let bad = ("DECODE_ERROR", Open);
    let cases = [
        ("BI-028", "groups, 10,000 deep", vec![0x7b; 10_000], bad),
        ("BI-029", "32,000 fields that nobody knows", [0x78, 1].repeat(32_000), ("answered", Open)),
        ("BI-030", "a list that announces 2^31 elements", vec![0x12, 0x80, 0x80, 0x80, 0x80, 8, 1], bad),
        ("BI-031", "a number of eleven bytes", [&[0x10][..], &[0xff; 10], &[1]].concat(), bad),
    ];
    for (id, input, body, expected) in cases {
        let mut player = world.player("bodies").await;
        table.row(world, id, input, expected, player.ask(&request(1, &body))).await;
    }
}

/// Logins that can't be one.
async fn logins(world: &World, table: &mut Table) {
    let name = |account: &[u8]| auth(Auth { account, ..Auth::default() });
    let version = |app_version: &[u8]| auth(Auth { account: b"ann", app_version, ..Auth::default() });
    let marks = "\u{301}".repeat(10_000);
    let invalid = ("NAME_INVALID", Closed);
    let cases = [
        ("BI-027", "an account that is no text", name(&[0xff, 0xfe]), invalid),
        ("BI-027", "an account with a NUL", name(b"an\0n"), invalid),
        ("BI-027", "an account of 1 MiB", name(&[b'a'; 1 << 20]), ("FRAME_TOO_LARGE", Closed)),
        ("BI-027", "an account that turns the direction of text", name("a\u{202e}b".as_bytes()), invalid),
        ("BI-027", "an account of 10,000 combining marks", name(marks.as_bytes()), invalid),
        (
            "BI-028",
            "an Auth with beans 40 deep",
            frame(AUTH, Head::request(1), &[0x16; 40]),
            ("DECODE_ERROR", Closed),
        ),
        ("BI-041", "the version 99999999999.1", version(b"99999999999.1"), ("VERSION_INVALID", Closed)),
        ("BI-041", "the version 1.2.3.4.5", version(b"1.2.3.4.5"), ("VERSION_INVALID", Closed)),
        ("BI-041", "no version", version(b""), ("answered", Open)),
        (
            "BI-042",
            "a main version that nobody serves",
            [version(b"2.0.0.0"), request(2, b"")].concat(),
            ("VERSION_NOT_SERVED", Open),
        ),
    ];
    for (id, input, bytes, expected) in cases {
        let mut stranger = world.stranger().await;
        table.row(world, id, input, expected, stranger.say(&bytes)).await;
    }
}

/// Too much of what is right.
async fn many(world: &World, table: &mut Table) {
    let requests = |n: i64| (1..=n).flat_map(|n| request(n, b"")).collect::<Vec<u8>>();
    let mut player = world.player("eager").await;
    table
        .row(
            world,
            "BI-034",
            "10,000 requests in one write",
            ("FLOOD", Closed),
            player.say(&requests(10_000)),
        )
        .await;
    let mut player = world.player("busy").await;
    table
        .row(
            world,
            "BI-047",
            "60 requests in one write, five times",
            ("answered", Open),
            in_order(&mut player, &requests(IN_ORDER)),
        )
        .await;
    let mut player = world.player("split").await;
    let split = async {
        let whole = request(1, b"");
        for cut in 1..whole.len() {
            player.send(&whole[..cut]).await;
            let got = player.ask(&whole[cut..]).await;
            if got.code != "answered" {
                return got;
            }
        }
        Got { code: "answered".to_owned(), after: Open }
    };
    table.row(world, "BI-046", "a request split at every position", ("answered", Open), split).await;
    let mut player = world.player("beating").await;
    let beats = keep_alive(1).repeat(10_000);
    table.row(world, "BI-048", "10,000 keep-alives at once", ("FLOOD", Closed), player.say(&beats)).await;
}

/// Sends requests 1 to `IN_ORDER` five times and demands their answers in that order.
async fn in_order(player: &mut Client, requests: &[u8]) -> Got {
    for _ in 0..5 {
        player.send(requests).await;
        for n in 1..=IN_ORDER {
            match player.heard().await.map(|heard| heard.head) {
                Some(head) if head == Head::response(n, 0) => {}
                other => return Got { code: format!("{other:?} instead of {n}"), after: Open },
            }
        }
    }
    let got = player.say(&[]).await;
    Got { code: "answered".to_owned(), ..got }
}
