//! What providers send.

use std::time::Duration;

use base::{Generation, LinkSid, ModuleId, ProtocolId, TypeId};
use net::calls::CallError;
use net::hello::{self, Proof, Role};
use net::link::{Closed as Ended, Handler, Link};
use net::{Tcp, outbox, preface};
use prost::Message;
use tokio::sync::mpsc;
use wire::code::Code;
use wire::link::{self, BIND_SIDS_MAX, MODULES_MAX, SEND_SIDS_MAX, message};
use wire::node::{Frame, Kind, Meta};
use wire::payload::Head;

use super::client::{Client, Got, auth, frame};
use super::table::After::{self, Closed, Open};
use super::table::Table;
use super::world::{World, within};
use crate::identity::world::ours;

const PATIENCE: Duration = Duration::from_secs(20);
/// A request of the module that the providers here serve.
const NINE: TypeId = TypeId::new(ModuleId(9), ProtocolId(1));

struct Provider {
    link: Link,
    opened: mpsc::Receiver<LinkSid>,
    ended: tokio::task::JoinHandle<String>,
}

/// Notes who is introduced.
struct Noting(mpsc::Sender<LinkSid>);

impl Handler for Noting {
    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Ended> {
        if frame.meta.kind == link::OPENED {
            let opened = message::Opened::decode(frame.body).unwrap();
            let _ = self.0.try_send(LinkSid(opened.link_sid));
        }
        Ok(())
    }
}

fn module(id: i32, dynamic: bool) -> message::Module {
    message::Module { id, name: format!("m{id}"), dynamic, contract: 1, ..Default::default() }
}

fn bind(modules: Vec<message::Module>) -> message::Bind {
    message::Bind { modules, link_sids: Vec::new() }
}

fn named(codes: &[i32]) -> String {
    codes.first().and_then(|&number| Code::find(number)).map_or("answered", |code| code.name).to_owned()
}

impl Provider {
    /// A provider that has said hello, and no more.
    async fn greeted(world: &World, node: &str) -> Self {
        let mut stream = within(Tcp::dial(&world.open.providers)).await.unwrap();
        let addr = stream.peer_addr().unwrap();
        preface::send(&mut stream, 0).await.unwrap();
        let ours = ours((Role::Provider, node));
        let peer =
            within(hello::offer(&mut stream, &Proof::Loopback(addr), &ours, &[Role::Linkd])).await.unwrap();
        let (mut read, write) = tokio::io::split(stream);
        let link = Link::new(peer, Generation(1), write);
        tokio::spawn(outbox::drive(link.outbox.clone()));
        let (note, opened) = mpsc::channel(100);
        let running = link.clone();
        let ended = tokio::spawn(async move {
            net::link::run(&running, &mut read, &mut vec![0; 65_536], &mut Noting(note)).await.to_string()
        });
        Self { link, opened, ended }
    }

    async fn announced(world: &World, node: &str) -> Self {
        let provider = Self::greeted(world, node).await;
        let server_id = base::hash::bytes(node.as_bytes()) as u32;
        let announce = message::Announce { server_id, ..Default::default() };
        provider.link.call::<()>(link::ANNOUNCE, &announce, PATIENCE).await.unwrap();
        provider
    }

    /// What a call is answered, and what becomes of the connection.
    async fn call(&mut self, kind: Kind, call: &impl Message) -> Got {
        let answer = self.link.call::<message::BindResult>(kind, call, PATIENCE).await;
        self.got(answer.map(|result| named(&result.codes))).await
    }

    async fn got(&mut self, answer: Result<String, CallError>) -> Got {
        let code = match answer {
            Ok(code) => code,
            Err(CallError::Broken) => return self.over().await,
            Err(error) => error.code().name.to_owned(),
        };
        Got { code, after: self.after().await }
    }

    /// After notices: whether the connection still answers.
    async fn noticed(&mut self) -> Got {
        match self.after().await {
            After::Open => Got { code: "nothing".to_owned(), after: Open },
            _ => self.over().await,
        }
    }

    async fn after(&self) -> After {
        let call = message::Disable { disabled: false };
        match self.link.call::<()>(link::DISABLE, &call, PATIENCE).await {
            Err(CallError::Broken) => Closed,
            _ => Open,
        }
    }

    /// Why it was closed.
    async fn over(&mut self) -> Got {
        let why = within(&mut self.ended).await.unwrap();
        let number = why.split(|c: char| !c.is_ascii_digit()).find_map(|word| word.parse().ok());
        Got { code: number.and_then(Code::find).map_or(why, |code| code.name.to_owned()), after: Closed }
    }
}

pub async fn run(world: &World, table: &mut Table) {
    order(world, table).await;
    limits(world, table).await;
    sessions(world, table).await;
    notices(world, table).await;
}

/// Who speaks before its turn, or in another's name.
async fn order(world: &World, table: &mut Table) {
    let mut player = Client::connect(&world.open.providers).await;
    let login = auth(wire::auth::Auth { account: b"ann", ..Default::default() });
    table
        .row(world, "BI-050", "a player at the providers' port", ("nothing", Closed), player.say(&login))
        .await;
    let order = ("PROTOCOL_ORDER", Closed);
    let mut early = Provider::greeted(world, "bad-1").await;
    let binding = bind(vec![module(100, false)]);
    table.row(world, "BI-053", "Bind before Announce", order, early.call(link::BIND, &binding)).await;
    let mut early = Provider::greeted(world, "bad-2").await;
    let subscribe = message::Subscribe { modules: vec![module(100, true)] };
    table
        .row(world, "BI-053", "Subscribe before Announce", order, early.call(link::SUBSCRIBE, &subscribe))
        .await;
    let mut twice = Provider::announced(world, "bad-3").await;
    let announce = message::Announce { server_id: 333, ..Default::default() };
    table.row(world, "BI-053", "Announce twice", order, twice.call(link::ANNOUNCE, &announce)).await;
    let mut double = Provider::greeted(world, "bad-4").await;
    let announce = message::Announce { server_id: 1, ..Default::default() };
    let expected = ("DUPLICATE_SERVER_ID", Closed);
    table
        .row(
            world,
            "BI-054",
            "another live provider's server id",
            expected,
            double.call(link::ANNOUNCE, &announce),
        )
        .await;
    let mut clash = Provider::announced(world, "bad-5").await;
    let binding = bind(vec![module(7, false)]);
    let expected = ("CONTRACT_CLASH", Open);
    table
        .row(
            world,
            "BI-065",
            "another project's module of this number",
            expected,
            clash.call(link::BIND, &binding),
        )
        .await;
}

/// More at once than a message may hold.
async fn limits(world: &World, table: &mut Table) {
    let limit = ("LIMIT", Open);
    let mut provider = Provider::announced(world, "bad-6").await;
    let binding = bind((0..=MODULES_MAX as i32).map(|n| module(20_000 + n, false)).collect());
    table.row(world, "BI-055", "Bind of 1,025 modules", limit, provider.call(link::BIND, &binding)).await;
    let many = message::Bind { modules: vec![module(8, true)], link_sids: vec![1; BIND_SIDS_MAX + 1] };
    table.row(world, "BI-056", "Bind for 4,097 sessions", limit, provider.call(link::BIND, &many)).await;
    let huge = frame(NINE, Head::PROTOCOL, &vec![1; 4 << 20 >> 1]);
    let broadcast = async {
        let meta = Meta::notice(link::BROADCAST);
        let answer =
            provider.link.call_with::<message::BroadcastResult>(meta, &[0; 8], &huge, PATIENCE).await;
        provider.got(answer.map(|_| "answered".to_owned())).await
    };
    table.row(world, "BI-060", "Broadcast of 2 MiB", limit, broadcast).await;
    let mut sender = Provider::announced(world, "bad-7").await;
    let send = async {
        let to = vec![0; 8 * (SEND_SIDS_MAX + 1)];
        sender.link.notice(link::SEND, &to, &frame(NINE, Head::PROTOCOL, b"x")).unwrap();
        sender.noticed().await
    };
    table.row(world, "BI-059", "Send to 4,097 sessions", ("LIMIT", Closed), send).await;
}

/// Sessions that are nobody's, or another's.
async fn sessions(world: &World, table: &mut Table) {
    let mut nine = Provider::announced(world, "nine-1").await;
    nine.link.call::<()>(link::BIND, &bind(vec![module(9, false)]), PATIENCE).await.unwrap();
    let mut other = Provider::announced(world, "nine-2").await;
    other.link.call::<()>(link::BIND, &bind(vec![module(10, false)]), PATIENCE).await.unwrap();
    let eight = vec![module(8, true)];
    for provider in [&nine, &other] {
        let subscribe = message::Subscribe { modules: eight.clone() };
        provider.link.call::<()>(link::SUBSCRIBE, &subscribe, PATIENCE).await.unwrap();
    }
    let unknown = message::Bind { modules: eight.clone(), link_sids: vec![u64::MAX] };
    let expected = ("UNKNOWN_SESSION", Open);
    table
        .row(
            world,
            "BI-057",
            "Bind for a session that is nobody's",
            expected,
            nine.call(link::BIND, &unknown),
        )
        .await;
    let mut player = world.player("bound").await;
    player.send(&frame(NINE, Head::request(1), b"")).await;
    let sid = within(nine.opened.recv()).await.unwrap();
    let mine = message::Bind { modules: eight, link_sids: vec![sid.0] };
    nine.link.call::<message::BindResult>(link::BIND, &mine, PATIENCE).await.unwrap();
    let unbind = message::UnBind { modules: vec![8], link_sids: vec![sid.0] };
    let expected = ("NOT_OWNER", Open);
    table
        .row(
            world,
            "BI-058",
            "UnBind of another provider's bind",
            expected,
            other.call(link::UNBIND, &unbind),
        )
        .await;
    let nobody = async {
        nine.link.outbox.close();
        let _ = within(&mut nine.ended).await;
        let mut player = world.player("late").await;
        // The gateway hears of the end in its own time.
        loop {
            let got = player.say(&frame(NINE, Head::request(1), b"")).await;
            if got.code != "nothing" && got.code != "PROVIDER_BROKEN" {
                return got;
            }
        }
    };
    table.row(world, "BI-015", "a module whose provider is gone", ("NO_PROVIDER", Open), nobody).await;
}

/// Notices that say nothing sensible.
async fn notices(world: &World, table: &mut Table) {
    let load = |provider: &Provider, load: &message::Load| {
        provider.link.push_message(&Meta::notice(link::LOAD), load).unwrap();
    };
    let mut odd = Provider::announced(world, "bad-8").await;
    let reports = async {
        let max = u32::MAX;
        let all = message::Load {
            seq: 1,
            online: max,
            online_new: max,
            propose_max_online: 0,
            max_online_new: max,
            overload: 99,
        };
        load(&odd, &all);
        load(&odd, &message::Load { seq: 0, ..all });
        odd.noticed().await
    };
    table.row(world, "BI-061", "Load with numbers that can't be", ("nothing", Open), reports).await;
    let mut eager = Provider::announced(world, "bad-9").await;
    let flood = async {
        for seq in 1..=10_000 {
            load(&eager, &message::Load { seq, ..Default::default() });
        }
        eager.noticed().await
    };
    table.row(world, "BI-062", "10,000 Loads at once", ("nothing", Open), flood).await;
    let mut stray = Provider::announced(world, "bad-10").await;
    let replies = async {
        for call in [0, 999, u64::MAX] {
            stray.link.reply(call, &()).unwrap();
        }
        stray.noticed().await
    };
    table.row(world, "BI-064", "answers to calls that nobody made", ("nothing", Open), replies).await;
}
