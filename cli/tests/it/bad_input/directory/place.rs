//! A directory that runs as a process, beside two nodes that keep their leases; and a session that says what it wants.

use std::time::{Duration, Instant};

use node::directory::Service;
use node::stub::directory::directory_client::DirectoryClient;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Streaming;
use wire::code::Code;
use wire::directory::{self as msg, from_directory::Kind as From, to_directory::Kind as To};

use crate::bad_input::client::Got;
use crate::bad_input::table::After;
use crate::cluster::{join, within};
use crate::process::{Process, addr_after, linkstead};

/// How soon the neighbours hear of each other, whatever others do.
const SOON: Duration = Duration::from_secs(2);

pub struct Place {
    process: Process,
    pub addr: String,
    game: node::Directory,
    linkd: node::Directory,
    epochs: [base::Epoch; 2],
    told: u32,
    _nodes: [CancellationToken; 2],
}

impl Place {
    pub async fn start(sets: &[&str]) -> Self {
        let mut args = vec!["service-manager", "--profile", "dev"];
        let always = [
            "service_manager.listen=127.0.0.1:0",
            "node.ops=127.0.0.1:0",
            "node.insecure=true",
            "node.cluster=test",
        ];
        always.iter().chain(sets).for_each(|set| args.extend(["--set", set]));
        let mut command = linkstead(&args);
        command.stderr(std::process::Stdio::null());
        let mut process = Process::spawn(command);
        let addr = addr_after(&process.wait_for("service-manager ready"), "ready on ");
        let at = addr.parse().unwrap();
        let (_, game, one) = join(at, "game-1", "provider");
        let (_, linkd, two) = join(at, "linkd-1", "linkd");
        let epochs = [game.epoch().await.unwrap(), linkd.epoch().await.unwrap()];
        linkd.subscribe("beside/");
        Self { process, addr, game, linkd, epochs, told: 0, _nodes: [one, two] }
    }

    /// What it has in memory.
    pub fn kib(&self) -> i64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// What it has used of a core so far.
    pub fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }

    /// One neighbour offers something new and the other hears of it soon; both have the epochs they had.
    pub async fn neighbours_are_served(&mut self) {
        self.told += 1;
        let name = format!("beside/{}", self.told);
        let mut seen = self.linkd.subscribe("beside/");
        let began = Instant::now();
        self.game.register(vec![Service { name: name.clone(), ..Service::default() }]);
        within(seen.wait_for(|list| list.keys().any(|(listed, _)| *listed == name))).await.unwrap();
        assert!(began.elapsed() < SOON, "a neighbour was told after {:?}", began.elapsed());
        let epochs = [self.game.current_epoch(), self.linkd.current_epoch()];
        assert_eq!(epochs, self.epochs, "a neighbour had to begin anew");
    }
}

/// An admitted session.
pub struct Session {
    pub to: mpsc::Sender<msg::ToDirectory>,
    pub from: Streaming<msg::FromDirectory>,
    pub epoch: u64,
}

impl Session {
    pub async fn open(addr: &str, node: &str) -> Self {
        Self::again(addr, node, 0).await
    }

    /// The same start of the node comes back.
    pub async fn again(addr: &str, node: &str, epoch: u64) -> Self {
        let channel = within(node::directory::channel(addr)).await.unwrap();
        let (to, said) = mpsc::channel(64);
        let (cluster, host) = ("test".to_owned(), "here".to_owned());
        let (node, role) = (node.to_owned(), "provider".to_owned());
        let proto = node::directory::PROTO;
        let hello = msg::Hello { cluster, node, role, host, epoch, proto, ..Default::default() };
        to.send(msg::ToDirectory { kind: Some(To::Hello(hello)) }).await.unwrap();
        let call = DirectoryClient::new(channel).session(ReceiverStream::new(said)).await;
        let mut session = Self { to, from: call.unwrap().into_inner(), epoch: 0 };
        match session.hear().await {
            Some(From::Welcome(welcome)) => session.epoch = welcome.epoch,
            other => panic!("not admitted: {other:?}"),
        }
        session
    }

    pub async fn say(&self, kind: To) {
        // Whoever is closed learns so by reading.
        let _ = self.to.send(msg::ToDirectory { kind: Some(kind) }).await;
    }

    pub async fn hear(&mut self) -> Option<From> {
        within(self.from.message()).await.ok()??.kind
    }

    /// What is answered to a set, and whether the session goes on.
    pub async fn register(&mut self, names: &[&str]) -> Got {
        let service = |name: &&str| msg::Service { name: (*name).to_owned(), ..Default::default() };
        let services = names.iter().map(service).collect();
        self.say(To::Register(msg::Register { seq: 1, services })).await;
        self.outcome().await
    }

    pub async fn follow(&mut self, name: &str) -> Got {
        self.say(To::Subscribe(msg::Subscribe { name: name.to_owned(), loads: false })).await;
        self.outcome().await
    }

    /// Reads until a beat is answered, or the end; the last code that came.
    pub async fn outcome(&mut self) -> Got {
        self.say(To::Heartbeat(msg::Heartbeat { seq: 4_711 })).await;
        let named = |code: i32| match code {
            0 => "answered",
            code => Code::find(code).map_or("no code", |code| code.name),
        };
        let mut code = "nothing";
        while let Some(heard) = self.hear().await {
            match heard {
                From::Heartbeat(beat) if beat.seq == 4_711 => {
                    return Got { code: code.to_owned(), after: After::Open };
                }
                From::Registered(answer) => code = named(answer.code),
                From::Snapshot(page) => code = named(page.code),
                From::Refused(refused) => code = named(refused.code),
                _ => {}
            }
        }
        Got { code: code.to_owned(), after: After::Closed }
    }
}
