//! What nodes and strangers send to the directory.

mod http2;
mod place;

use std::time::{Duration, Instant};

use wire::directory::{self as msg, from_directory::Kind as From, to_directory::Kind as To};

use super::client::Got;
use super::table::After::{self, Closed, Open};
use super::table::Table;
use http2::Http2;
use place::{Place, Session};

/// Names in one explosion.
const EXPLOSION: usize = 100_000;
/// Of them before the next answers are read.
const AT_ONCE: usize = 500;
/// Frames in one flood.
const FLOOD: usize = 1_000_000;
/// What a flood may cost of a core, for each second that it lasts and beside what it takes to notice it.
const CPU_SHARE_MAX: f64 = 0.3;
const CPU_TO_NOTICE: Duration = Duration::from_millis(600);

/// One row: an input while the neighbours are served.
async fn row(
    table: &mut Table,
    place: &mut Place,
    (id, input): (&str, &str),
    expected: (&str, After),
    got: impl Future<Output = Got>,
) {
    let before = place.kib();
    let got = got.await;
    place.neighbours_are_served().await;
    table.measured(id, input, expected, &got, place.kib() - before);
}

pub async fn run(table: &mut Table) {
    let mut place = Place::start(&[]).await;
    names(table, &mut place).await;
    explosions(table, &mut place).await;
    owners(table, &mut place).await;
    flapping(table, &mut place).await;
    unread(table).await;
    claims(table, &mut place).await;
    floods(table, &mut place).await;
}

async fn names(table: &mut Table, place: &mut Place) {
    let long = "x".repeat(4_096);
    for (input, name, code) in [
        ("a name that leads elsewhere", "../../x", "BAD_MESSAGE"),
        ("an empty name", "", "BAD_MESSAGE"),
        ("a name of 4 KiB", &long, "LIMIT"),
        ("a name with a line feed", "a\nb", "BAD_MESSAGE"),
    ] {
        let addr = place.addr.clone();
        let offered = async { Session::open(&addr, "hostile").await.register(&[name]).await };
        row(table, place, ("BI-090", &format!("offers {input}")), (code, Open), offered).await;
        let followed = async { Session::open(&addr, "hostile").await.follow(name).await };
        row(table, place, ("BI-090", &format!("follows {input}")), (code, Open), followed).await;
    }
    // ToDirectory { subscribe: { name: ff fe } }
    let (addr, body) = (place.addr.clone(), [0x1a, 4, 0x0a, 2, 0xff, 0xfe]);
    let binary = async {
        let mut stranger = Http2::connect(&addr).await;
        stranger.send(&[http2::open(1), http2::message(6, &body)].concat()).await;
        stream_ends(stranger).await
    };
    row(table, place, ("BI-090", "follows a name that is no text"), ("nothing", Closed), binary).await;
}

/// The stream of a call ends, by trailers or a reset, and soon.
async fn stream_ends(mut stranger: Http2) -> Got {
    let ends = |kind, flags| match kind {
        http2::RST_STREAM | http2::GOAWAY => true,
        http2::HEADERS => flags & http2::END_STREAM != 0,
        _ => false,
    };
    let ended = tokio::time::timeout(Duration::from_secs(2), stranger.until(ends)).await;
    Got { code: "nothing".to_owned(), after: if ended.is_ok() { Closed } else { Open } }
}

async fn explosions(table: &mut Table, place: &mut Place) {
    let addr = place.addr.clone();
    let services = async {
        let names: Vec<String> = (0..EXPLOSION).map(|n| format!("x/{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Session::open(&addr, "hostile").await.register(&names).await
    };
    row(table, place, ("BI-091", "offers 100,000 services"), ("LIMIT", Open), services).await;
    let follows = async {
        let mut session = Session::open(&addr, "hostile").await;
        let (mut followed, mut refused, mut code) = (0, 0, "nothing");
        // Who asks for more than it reads is cut; this one reads.
        for at_once in (0..EXPLOSION).collect::<Vec<_>>().chunks(AT_ONCE) {
            for n in at_once {
                let name = format!("beside/{n}");
                session.say(To::Subscribe(msg::Subscribe { name, loads: false })).await;
            }
            let until = followed + refused + at_once.len();
            while followed + refused < until {
                match session.hear().await {
                    Some(From::Snapshot(page)) if page.code == 0 => followed += 1,
                    Some(From::Snapshot(page)) => {
                        refused += 1;
                        code = wire::code::Code::find(page.code).unwrap().name;
                    }
                    Some(_) => {}
                    None => panic!("it was closed after {followed} names and {refused} refusals"),
                }
            }
        }
        assert_eq!((followed, refused), (1_200, EXPLOSION - 1_200));
        Got { code: code.to_owned(), after: session.outcome().await.after }
    };
    row(table, place, ("BI-091", "follows 100,000 names"), ("LIMIT", Open), follows).await;
}

async fn owners(table: &mut Table, place: &mut Place) {
    let addr = place.addr.clone();
    let lists = async |session: &mut Session, name: &str| {
        session.say(To::Subscribe(msg::Subscribe { name: name.to_owned(), loads: false })).await;
        loop {
            match session.hear().await {
                Some(From::Snapshot(page)) => return page.instances.len(),
                Some(_) => {}
                None => panic!("the session ended"),
            }
        }
    };
    let other = async {
        let mut owner = Session::open(&addr, "owner").await;
        owner.register(&["theirs/1"]).await;
        let mut thief = Session::open(&addr, "thief").await;
        thief.register(&["theirs/1"]).await;
        let got = thief.register(&[]).await;
        assert_eq!(lists(&mut owner, "theirs/1").await, 1, "the owner's is gone, or the other's stayed");
        got
    };
    row(table, place, ("BI-094", "takes away what another node offers"), ("answered", Open), other).await;
    let old = async {
        let mut old = Session::open(&addr, "owner-2").await;
        old.register(&["theirs/2"]).await;
        let mut new = Session::again(&addr, "owner-2", old.epoch).await;
        let got = old.register(&[]).await;
        assert_eq!(lists(&mut new, "theirs/2").await, 1, "an old session took it away");
        got
    };
    row(table, place, ("BI-094", "the same from a session of before"), ("STALE_EPOCH", Closed), old).await;
}

async fn flapping(table: &mut Table, place: &mut Place) {
    let addr = place.addr.clone();
    let flaps = async {
        let mut follower = Session::open(&addr, "follower").await;
        follower.follow("flaps").await;
        let Session { to, mut from, .. } = Session::open(&addr, "hostile").await;
        let (began, mut said) = (Instant::now(), 0u32);
        let mut each = tokio::time::interval(Duration::from_millis(1));
        let flapping = async {
            // Within the follower's lease, which says nothing meanwhile.
            while began.elapsed() < Duration::from_secs(2) {
                each.tick().await;
                said += 1;
                let service = msg::Service { name: "flaps".to_owned(), ..Default::default() };
                let services = if said.is_multiple_of(2) { Vec::new() } else { vec![service] };
                let register = To::Register(msg::Register { seq: u64::from(said), services });
                to.send(msg::ToDirectory { kind: Some(register) }).await.unwrap();
            }
        };
        let answered = async { while let Ok(Some(_)) = from.message().await {} };
        tokio::select! {
            () = flapping => {}
            () = answered => panic!("whoever flaps was closed"),
        }
        let seconds = began.elapsed().as_secs_f64();
        assert!(said >= 1_000, "{said} changes are too few to mean anything");
        let mut deltas = 0;
        follower.say(To::Heartbeat(msg::Heartbeat { seq: 1 })).await;
        loop {
            match follower.hear().await {
                Some(From::Delta(_)) => deltas += 1,
                Some(From::Heartbeat(_)) => break,
                Some(_) => {}
                None => panic!("the follower was closed"),
            }
        }
        println!("        {said} changes in {seconds:.1} s, told in {deltas} deltas");
        let bound = 10.0 * seconds + 6.0;
        let code = if f64::from(deltas) <= bound { "coalesced" } else { "each told" };
        Got { code: code.to_owned(), after: Open }
    };
    row(table, place, ("BI-093", "offers and takes back 1,000 times a second"), ("coalesced", Open), flaps)
        .await;
}

/// Somebody who asks for everything again and again, and reads nothing.
async fn unread(table: &mut Table) {
    let mut place =
        Place::start(&["service_manager.subscriptions_max=16", "service_manager.outbox_bytes_max=2MiB"])
            .await;
    let addr = place.addr.clone();
    let mut full = Session::open(&addr, "full").await;
    let extra = vec![msg::Extra { key: "k".to_owned(), value: "v".repeat(2_000) }];
    let service = |n| msg::Service { name: format!("big/{n}"), extra: extra.clone(), ..Default::default() };
    let services = (0..100).map(service).collect();
    full.say(To::Register(msg::Register { seq: 1, services })).await;
    assert_eq!(full.outcome().await.code, "answered");
    let reads_nothing = async {
        let mut session = Session::open(&addr, "hostile").await;
        let everything = || To::Subscribe(msg::Subscribe { name: "/".to_owned(), loads: false });
        for _ in 0..300 {
            session.say(everything()).await;
        }
        // What had left before it was closed is still on its way.
        while session.hear().await.is_some() {}
        let mut again = Session::again(&addr, "hostile", session.epoch).await;
        again.say(everything()).await;
        let mut listed = 0;
        loop {
            match again.hear().await {
                Some(From::Snapshot(page)) => {
                    listed += page.instances.iter().filter(|one| one.node == "full").count();
                    if !page.more {
                        break;
                    }
                }
                Some(_) => {}
                None => panic!("it was closed again"),
            }
        }
        assert_eq!(listed, 101, "the list is whole again");
        Got { code: "nothing".to_owned(), after: Closed }
    };
    row(
        table,
        &mut place,
        ("BI-092", "follows everything and reads nothing"),
        ("nothing", Closed),
        reads_nothing,
    )
    .await;
}

async fn claims(table: &mut Table, place: &mut Place) {
    let addr = place.addr.clone();
    let claims = async {
        let mut stranger = Http2::connect(&addr).await;
        stranger.send(&[http2::open(1), http2::message(u32::MAX, b"hello")].concat()).await;
        stream_ends(stranger).await
    };
    row(table, place, ("BI-096", "a message that claims 4 GiB"), ("nothing", Closed), claims).await;
}

async fn floods(table: &mut Table, place: &mut Place) {
    type Next = fn(usize) -> Vec<u8>;
    let resets: Next = |n| {
        let stream = u32::try_from(2 * n + 1).unwrap();
        [http2::open(stream), http2::frame(http2::RST_STREAM, 0, stream, &8u32.to_be_bytes())].concat()
    };
    let endless: Next = |n| match n {
        0 => http2::frame(http2::HEADERS, 0, 1, &http2::call()),
        n => http2::frame(http2::CONTINUATION, 0, 1, &http2::header(&format!("x-{n}"), "flood")),
    };
    let settings: Next = |_| http2::frame(http2::SETTINGS, 0, 0, &[]);
    let pings: Next = |_| http2::frame(http2::PING, 0, 0, &[7; 8]);
    for (input, next) in [
        ("streams that are reset at once", resets),
        ("headers without an end", endless),
        ("a million SETTINGS", settings),
        ("a million PINGs", pings),
    ] {
        let (addr, cpu, began) = (place.addr.clone(), place.cpu(), Instant::now());
        let flood = async {
            let (closed, frames) = Http2::connect(&addr).await.flood(FLOOD, next).await;
            println!("        {frames} frames in {:.1?}", began.elapsed());
            Got { code: "nothing".to_owned(), after: if closed { Closed } else { Open } }
        };
        row(table, place, ("BI-095", input), ("nothing", Closed), flood).await;
        let (used, lasted) = (place.cpu() - cpu, began.elapsed());
        println!("        {used:?} of a core in {lasted:.1?}");
        let most = CPU_TO_NOTICE + lasted.mul_f64(CPU_SHARE_MAX);
        table.demand(used <= most, || format!("BI-095 {input}: {used:?} of a core in {lasted:?}"));
    }
}
