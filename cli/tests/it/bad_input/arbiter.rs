//! What providers say to the arbiter of records, which runs as a process beside one that goes on.

use base::{Epoch, NodeId};
use net::Security;
use net::calls::CallError;
use net::hello::{Ours, Role};
use wire::cache::{self, Reduced, Refused, mode};
use wire::code::Code;
use wire::node::Kind;

use super::client::Got;
use super::table::After::{self, Closed, Open};
use super::table::Table;
use crate::holder::{Holder, Word};
use crate::process::{Process, addr_after, linkstead};

/// Records that one provider may hold here.
const HELD: u64 = 1_000;
/// Records that one asks for.
const FLOOD: u64 = 200_000;
/// Of them before the answers are read.
const AT_ONCE: u64 = 1_000;

/// The arbiter, and a neighbour that holds a record and takes others while each input is tried.
struct Place {
    process: Process,
    addr: String,
    neighbour: Holder,
    asked: u64,
}

async fn dial(addr: &str, node: &str, epoch: u64) -> Holder {
    let node = NodeId::new(node).unwrap();
    let ours = Ours { cluster: "test".into(), node, role: Role::Provider, epoch: Epoch(epoch), worker: 0 };
    Holder::dial(addr, &Security::Insecure, &ours).await.unwrap()
}

impl Place {
    async fn start(directory: std::net::SocketAddr) -> Self {
        let (directory, held) =
            (format!("node.directory=[\"{directory}\"]"), format!("global_cache.held_max={HELD}"));
        let sets = [
            "global_cache.listen=127.0.0.1:0",
            "node.ops=127.0.0.1:0",
            "node.insecure=true",
            "node.cluster=test",
            // However long a busy machine takes for a row.
            "global_cache.eviction=120s",
            &directory,
            &held,
        ];
        let mut args = vec!["global-cache", "--profile", "dev"];
        sets.iter().for_each(|set| args.extend(["--set", set]));
        let mut command = linkstead(&args);
        command.stderr(std::process::Stdio::null());
        let mut process = Process::spawn(command);
        let addr = addr_after(&process.wait_for("global-cache ready"), "providers on ");
        let mut neighbour = dial(&addr, "neighbour", 1).await;
        neighbour.login().await.unwrap();
        neighbour.modify(1, b"its own").await;
        Self { process, addr, neighbour, asked: 1 }
    }

    /// One that has logged in.
    async fn holder(&self, epoch: u64) -> Holder {
        let holder = dial(&self.addr, "hostile", epoch).await;
        holder.login().await.unwrap();
        holder
    }

    /// What it has in memory.
    fn kib(&self) -> i64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// The neighbour has what it had, and gets what it asks for.
    async fn neighbour_is_served(&mut self) {
        self.asked += 1;
        let (asked, key) = (self.asked, format!("another {}", self.asked % 8));
        self.neighbour.renew().await.unwrap();
        assert_eq!(self.neighbour.modify(asked, key.as_bytes()).await.mode, mode::MODIFY);
    }

    async fn row(
        &mut self,
        table: &mut Table,
        (id, input): (&str, &str),
        expected: (&str, After),
        got: impl Future<Output = Got>,
    ) {
        let before = self.kib();
        let got = got.await;
        self.neighbour_is_served().await;
        table.measured(id, input, expected, &got, self.kib() - before);
    }
}

/// Why the connection was closed.
async fn over(holder: Holder) -> Got {
    let why = super::world::within(holder.ended).await.unwrap();
    let number = why.split(|c: char| !c.is_ascii_digit()).find_map(|word| word.parse().ok());
    Got { code: number.and_then(Code::find).map_or(why, |code| code.name.to_owned()), after: Closed }
}

/// What was said is answered with nothing, and the session goes on.
async fn ignored(mut holder: Holder) -> Got {
    match holder.renew().await {
        // What it has heard before the answer of its renewal, it was told because of its input.
        Ok(_) => {
            let heard = match tokio::time::timeout(std::time::Duration::ZERO, holder.hear()).await {
                Err(_) => "nothing".to_owned(),
                Ok(word) => format!("{word:?}"),
            };
            Got { code: heard, after: Open }
        }
        Err(CallError::Broken) => over(holder).await,
        Err(error) => Got { code: error.code().name.to_owned(), after: Open },
    }
}

/// A request is answered, and the session goes on.
async fn answered(holder: &mut Holder) -> Got {
    let code = match holder.word().await {
        Word::Deny(code) => code.to_owned(),
        Word::Grant(_) => "answered".to_owned(),
        other => format!("{other:?}"),
    };
    let after = if holder.renew().await.is_ok() { Open } else { Closed };
    Got { code, after }
}

pub async fn run(table: &mut Table, directory: std::net::SocketAddr) {
    let mut place = Place::start(directory).await;
    logins(table, &mut place).await;
    requests(table, &mut place).await;
    flood(table, &mut place).await;
    words(table, &mut place).await;
    place.neighbour.reduced(b"its own", 1, mode::INVALID);
    assert_eq!(
        place.holder(9).await.modify(1, b"its own").await.mode,
        mode::MODIFY,
        "it was held all the time"
    );
}

async fn logins(table: &mut Table, place: &mut Place) {
    for (input, kind) in [("Acquire", cache::ACQUIRE), ("Renew", cache::RENEW), ("Reassert", cache::REASSERT)]
    {
        let early = dial(&place.addr, "hostile", 1).await;
        early.say(kind, &[], &[]);
        let input = format!("{input} before Login");
        place.row(table, ("BI-081", &input), ("NOT_LOGGED_IN", Closed), over(early)).await;
    }
    let mut newest = place.holder(5).await;
    newest.modify(1, b"held").await;
    let former = dial(&place.addr, "hostile", 4).await;
    let login = async {
        let refused = former.login().await.unwrap_err();
        Got { code: refused.code().name.to_owned(), after: over(former).await.after }
    };
    place.row(table, ("BI-083", "a login of a former life"), ("STALE_EPOCH", Closed), login).await;
    assert!(newest.renew().await.is_ok(), "the living one has its session");
}

async fn requests(table: &mut Table, place: &mut Place) {
    for want in [0, 3, 255] {
        let mut holder = place.holder(5).await;
        holder.ask(1, want, b"a record");
        let input = format!("Acquire in mode {want}");
        place.row(table, ("BI-084", &input), ("BAD_STATE", Open), answered(&mut holder)).await;
    }
    for (input, bytes) in [("of 0 bytes", 0), ("of 1,025 bytes", 1_025), ("of 64 KiB", u16::MAX)] {
        let holder = place.holder(5).await;
        let body = [&[0; 17][..], &bytes.to_le_bytes(), &vec![7; bytes.into()]].concat();
        holder.say(cache::ACQUIRE, &[], &body);
        place.row(table, ("BI-085", &format!("a key {input}")), ("KEY_INVALID", Closed), over(holder)).await;
    }
    for (input, kind, body) in [
        ("half an Acquire", cache::ACQUIRE, &[1, 2, 3][..]),
        ("half a Reassert", cache::REASSERT, &[1, 2, 3]),
        ("a Reduced without its head", cache::REDUCED, &[]),
        ("a word of no kind", Kind(99), &[]),
    ] {
        let holder = place.holder(5).await;
        holder.say(kind, &[], body);
        place.row(table, ("BI-085", input), ("BAD_MESSAGE", Closed), over(holder)).await;
    }
    let mut lender = dial(&place.addr, "lender", 1).await;
    lender.login().await.unwrap();
    lender.modify(1, b"theirs").await;
    let mut holder = place.holder(5).await;
    holder.ask(1, mode::SHARE, b"theirs");
    holder.ask(1, mode::MODIFY, b"theirs");
    let conflict = ("BI-089", "the same request id for something else");
    place.row(table, conflict, ("ID_CONFLICT", Open), answered(&mut holder)).await;
}

async fn flood(table: &mut Table, place: &mut Place) {
    let mut holder = place.holder(6).await;
    let (mut granted, mut code) = (0, "answered");
    let asks = async {
        for first in (0..FLOOD).step_by(AT_ONCE as usize) {
            for n in first..first + AT_ONCE {
                holder.ask(n, mode::MODIFY, format!("flood {n}").as_bytes());
            }
            for _ in 0..AT_ONCE {
                match holder.word().await {
                    Word::Grant(_) => granted += 1,
                    Word::Deny(denied) => code = denied,
                    other => panic!("{other:?}"),
                }
            }
        }
        let after = if holder.renew().await.is_ok() { Open } else { Closed };
        Got { code: code.to_owned(), after }
    };
    place.row(table, ("BI-086", "200,000 records for one provider"), ("QUOTA", Open), asks).await;
    table.demand(granted == HELD, || format!("BI-086: {granted} records were granted of {HELD}"));
}

/// Words about grants: late, doubled, another's, or none at all.
async fn words(table: &mut Table, place: &mut Place) {
    let mut holder = place.holder(7).await;
    let held = holder.modify(1, b"lent").await;
    drop(holder);
    let own = cache::record(b"lent");
    let reduced = |record, seq, to| Reduced { record, seq, to, flushed: 1 }.encode();
    for (id, input, head) in [
        ("BI-088", "a release of a record that it never held", reduced(cache::record(b"its own"), 1, 0)),
        ("BI-088", "a release of a record that nobody knows", reduced(7, 1, 0)),
        ("BI-087", "Reduced under a larger number than was given", reduced(own, u64::MAX, 0)),
        ("BI-087", "Reduced to more than it has", reduced(own, held.seq, mode::MODIFY)),
        ("BI-087", "Reduced that nobody asked for", reduced(own, held.seq, mode::SHARE)),
        ("BI-087", "Reduced a second time", reduced(own, held.seq, mode::SHARE)),
    ] {
        let holder = place.holder(7).await;
        holder.say(cache::REDUCED, &head, &[]);
        place.row(table, (id, input), ("nothing", Open), ignored(holder)).await;
    }
    let holder = place.holder(7).await;
    holder.say(cache::REDUCED, &reduced(own, held.seq, 9), &[]);
    place
        .row(table, ("BI-087", "Reduced to a mode that is none"), ("BAD_MESSAGE", Closed), over(holder))
        .await;
    let holder = place.holder(7).await;
    holder.say(cache::REFUSED, &Refused { record: own, seq: held.seq, until_ms: u32::MAX }.encode(), &[]);
    place.row(table, ("BI-087", "Refused what nobody asked for"), ("nothing", Open), ignored(holder)).await;
    // The neighbour is asked to let go and says nothing; whoever waits is told so.
    let mut holder = place.holder(7).await;
    holder.ask(2, mode::MODIFY, b"its own");
    let silent = ("BI-087", "Reduce that is never answered");
    place.row_for_the_silent(table, silent, answered(&mut holder)).await;
}

impl Place {
    /// As [`row`](Self::row), while the neighbour itself is what is asked.
    async fn row_for_the_silent(
        &mut self,
        table: &mut Table,
        (id, input): (&str, &str),
        got: impl Future<Output = Got>,
    ) {
        let before = self.kib();
        let got = got.await;
        let Word::Reduce(_) = self.neighbour.word().await else { panic!("nobody asked it") };
        self.neighbour_is_served().await;
        table.measured(id, input, ("TIMEOUT", Open), &got, self.kib() - before);
    }
}
