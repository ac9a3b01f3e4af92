//! The load on a directory: sessions that say what a node says, each on a connection of its own, and time the answers.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use hdrhistogram::Histogram;
use node::config::NodeConfig;
use node::stub::directory::directory_client::DirectoryClient;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use wire::directory::{self as msg, from_directory::Kind as From, to_directory::Kind as To};

use super::load::Measured;

/// Modules that a node offers.
const SERVICES: u32 = 4;
/// What every follower follows.
const PREFIX: &str = "module/";
const WARM: Duration = Duration::from_millis(300);
/// Changes of one name that come closer together are told together.
const CALM: Duration = Duration::from_millis(100);
/// An answer, or a change at a follower, that takes longer is a failure of the bench.
const PATIENCE: Duration = Duration::from_secs(10);

/// One run of the load.
#[derive(Debug, Clone, clap::Args)]
pub struct Plan {
    #[arg(value_enum)]
    pub kind: Kind,
    /// The directory.
    #[arg(long)]
    pub addr: String,
    #[arg(long)]
    pub sessions: usize,
    #[arg(long)]
    pub measure_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    Register,
    Join,
    Fanout,
}

/// What a run saw.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Seen {
    #[serde(flatten)]
    pub measured: Measured,
    /// Until the last follower saw a change; 0 without followers.
    pub last_p50_us: f64,
    pub last_p99_us: f64,
}

/// Runs the plan on this thread's runtime.
pub async fn run(plan: &Plan) -> Result<Seen> {
    let start = Instant::now() + WARM;
    match plan.kind {
        Kind::Register | Kind::Join => {
            let end = start + Duration::from_millis(plan.measure_ms);
            let mut tasks = JoinSet::new();
            for index in 0..plan.sessions {
                let addr = plan.addr.clone();
                match plan.kind {
                    Kind::Join => tasks.spawn(join_again_and_again(addr, index, start, end)),
                    _ => tasks.spawn(register_again_and_again(addr, index, start, end)),
                };
            }
            let mut times = histogram()?;
            for ended in tasks.join_all().await {
                times.add(ended?)?;
            }
            let seconds = plan.measure_ms as f64 / 1_000.0;
            Ok(Seen { measured: measured(&times, seconds), last_p50_us: 0.0, last_p99_us: 0.0 })
        }
        Kind::Fanout => fan_out(plan).await,
    }
}

/// Nanoseconds, up to a minute.
fn histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, 60_000_000_000, 3)?)
}

fn micros(times: &Histogram<u64>, quantile: f64) -> f64 {
    times.value_at_quantile(quantile) as f64 / 1_000.0
}

fn measured(times: &Histogram<u64>, seconds: f64) -> Measured {
    let (p50_us, p99_us, p999_us) = (micros(times, 0.5), micros(times, 0.99), micros(times, 0.999));
    Measured { ops_per_s: times.len() as f64 / seconds, p50_us, p99_us, p999_us, errors: 0 }
}

async fn register_again_and_again(
    addr: String,
    index: usize,
    start: Instant,
    end: Instant,
) -> Result<Histogram<u64>> {
    let mut session = Session::open(&addr, &format!("register-{index}")).await?;
    let mut times = histogram()?;
    for seq in 1.. {
        let began = Instant::now();
        session.register(seq).await?;
        let now = Instant::now();
        if now >= end {
            break;
        }
        if now >= start {
            times.saturating_record((now - began).as_nanos() as u64);
        }
    }
    Ok(times)
}

async fn join_again_and_again(
    addr: String,
    index: usize,
    start: Instant,
    end: Instant,
) -> Result<Histogram<u64>> {
    let mut times = histogram()?;
    for start_of_it in 0.. {
        let began = Instant::now();
        let mut session = Session::open(&addr, &format!("join-{index}-{start_of_it}")).await?;
        session.register(1).await?;
        let now = Instant::now();
        session.leave().await?;
        if now >= end {
            break;
        }
        if now >= start {
            times.saturating_record((now - began).as_nanos() as u64);
        }
    }
    Ok(times)
}

/// A follower saw this revision then.
type Sight = (u64, Instant);

async fn fan_out(plan: &Plan) -> Result<Seen> {
    let mut source = Session::open(&plan.addr, "source").await?;
    source.register(1).await?;
    let (sights, mut seen) = mpsc::channel(plan.sessions);
    let mut following = JoinSet::new();
    for index in 0..plan.sessions {
        let session = Session::open(&plan.addr, &format!("follower-{index}")).await?;
        following.spawn(follow(session, sights.clone()));
    }
    // Each has its first list.
    for _ in 0..plan.sessions {
        next(&mut seen).await?;
    }
    let start = Instant::now() + WARM;
    let end = start + Duration::from_millis(plan.measure_ms);
    let (mut each, mut last) = (histogram()?, histogram()?);
    // What passed between a change and the last follower's sight of it, in all.
    let mut busy = Duration::ZERO;
    for seq in 2.. {
        let said = Instant::now();
        let revision = source.register(seq).await?;
        let mut latest = said;
        for _ in 0..plan.sessions {
            let (saw, at) = next(&mut seen).await?;
            if saw != revision {
                bail!("a follower saw revision {saw} instead of {revision}");
            }
            latest = latest.max(at);
            if said >= start {
                each.saturating_record((at - said).as_nanos() as u64);
            }
        }
        if said >= start {
            last.saturating_record((latest - said).as_nanos() as u64);
            busy += latest - said;
        }
        if latest >= end {
            break;
        }
        tokio::time::sleep_until(said + CALM).await;
    }
    let measured = measured(&each, busy.as_secs_f64());
    Ok(Seen { measured, last_p50_us: micros(&last, 0.5), last_p99_us: micros(&last, 0.99) })
}

async fn next(seen: &mut mpsc::Receiver<Sight>) -> Result<Sight> {
    let sight = tokio::time::timeout(PATIENCE, seen.recv()).await.context("a follower saw nothing")?;
    sight.context("the followers have ended")
}

async fn follow(mut session: Session, sights: mpsc::Sender<Sight>) -> Result<()> {
    session.say(To::Subscribe(msg::Subscribe { name: PREFIX.to_owned(), loads: false })).await?;
    loop {
        let revision = match session.hear().await? {
            From::Snapshot(page) if !page.more => page.revision,
            From::Delta(delta) => delta.revision,
            _ => continue,
        };
        sights.send((revision, Instant::now())).await?;
    }
}

/// An admitted session.
struct Session {
    to: mpsc::Sender<msg::ToDirectory>,
    from: tonic::Streaming<msg::FromDirectory>,
}

impl Session {
    async fn open(addr: &str, node: &str) -> Result<Self> {
        let channel = node::directory::channel(addr).await.context("dialling the directory")?;
        let (to, said) = mpsc::channel(4);
        let hello = msg::Hello {
            cluster: NodeConfig::default().cluster,
            // A run of its own: the names of the round before may still be leaving.
            node: format!("{node}-{}", std::process::id()),
            role: "provider".to_owned(),
            host: "here".to_owned(),
            proto: node::directory::PROTO,
            ..Default::default()
        };
        to.send(msg::ToDirectory { kind: Some(To::Hello(hello)) }).await?;
        let from = DirectoryClient::new(channel).session(ReceiverStream::new(said)).await?.into_inner();
        let mut session = Self { to, from };
        match session.hear().await? {
            From::Welcome(_) => Ok(session),
            other => bail!("not admitted: {other:?}"),
        }
    }

    async fn say(&self, kind: To) -> Result<()> {
        self.to
            .send(msg::ToDirectory { kind: Some(kind) })
            .await
            .context("the directory has ended the session")
    }

    async fn hear(&mut self) -> Result<From> {
        let message = self.from.message().await?.context("the directory has ended the session")?;
        message.kind.context("a message without content")
    }

    /// Says goodbye, and waits until the directory has heard it.
    async fn leave(mut self) -> Result<()> {
        self.say(To::Bye(msg::Bye {})).await?;
        while self.from.message().await?.is_some() {}
        Ok(())
    }

    /// Offers something else than before and waits for the acknowledgement; answers the revision.
    async fn register(&mut self, seq: u64) -> Result<u64> {
        let service = |module: u32| msg::Service {
            name: format!("{PREFIX}{module}"),
            version: 1,
            extra: vec![msg::Extra { key: "seq".to_owned(), value: seq.to_string() }],
            ..Default::default()
        };
        let services = (1..=SERVICES).map(service).collect();
        self.say(To::Register(msg::Register { seq, services })).await?;
        loop {
            match self.hear().await? {
                From::Registered(answer) if answer.code == 0 => return Ok(answer.revision),
                From::Registered(answer) => bail!("refused: {}", answer.text),
                _ => {}
            }
        }
    }
}
