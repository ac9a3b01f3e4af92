//! `bench acquire`: what it costs to be granted a record by an arbiter in another process.

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::load::Measured;
use super::process::{self, Part};
use super::redis;
use super::report::{self, Row, Target};

const BENCH: &str = "acquire";
const ROUNDS: u32 = 3;
/// What a record that is held may cost the arbiter.
const BYTES_A_KEY: f64 = 64.0;
/// And what its map adds when it is at its emptiest: nine bytes for each of its places, of which 7 in 16 are used, without
/// the eight that are counted already.
const MAP_BYTES_A_KEY: f64 = 9.0 * 16.0 / 7.0 - 8.0;

/// How to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Measured seconds per workload and subject, in 3 interleaved rounds.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Only this workload; may be given more than once. `memory` runs only when it is asked for.
    #[arg(long)]
    pub workload: Vec<String>,
    /// Measure a baseline beside us.
    #[arg(long)]
    pub baseline: Option<Baseline>,
    /// Records of the workload `memory`.
    #[arg(long, default_value_t = 10_000_000)]
    pub keys: u64,
    /// One JSON object a line.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Baseline {
    /// Debian's redis-server without persistence: `SET key value NX PX 10000` on one connection.
    Redis,
}

/// What is asked of a ratio to the echo.
#[derive(Debug, Clone, Copy)]
enum Aim {
    OpsLeast(f64),
    P50Most(f64),
    /// Nothing.
    Shown,
}

/// A shape of load.
#[derive(Debug, Clone, Copy)]
struct Workload {
    name: &'static str,
    /// As the load process knows it; `None`: two databases.
    shape: Option<&'static str>,
    window: usize,
    aim: Aim,
    /// So many times the locks of redis.
    redis: Option<f64>,
    /// What one operation is.
    what: &'static str,
}

const FRESH: &str = "records that nobody holds, none let go; redis locks fresh keys and unlocks none";

const fn workload(name: &'static str, shape: &'static str, window: usize, aim: Aim) -> Workload {
    Workload { name, shape: Some(shape), window, aim, redis: None, what: FRESH }
}

const WORKLOADS: [Workload; 8] = [
    workload("modify-1", "modify", 1, Aim::P50Most(1.4)),
    Workload { redis: Some(1.5), ..workload("modify-64", "modify", 64, Aim::OpsLeast(0.6)) },
    Workload { redis: Some(2.0), ..workload("modify-1024", "modify", 1_024, Aim::OpsLeast(0.65)) },
    Workload {
        what: "each record read by two sessions, one after the other, none let go",
        ..workload("share-64", "share", 64, Aim::Shown)
    },
    Workload {
        what: "a record that the other session has, which lets it go at once",
        ..workload("pingpong-1", "pingpong", 1, Aim::P50Most(2.6))
    },
    Workload {
        what: "64 records that the other session has, which lets each go at once",
        ..workload("pingpong-64", "pingpong", 64, Aim::OpsLeast(0.35))
    },
    Workload {
        name: "pingpong-dirty-1",
        shape: None,
        window: 1,
        aim: Aim::Shown,
        redis: None,
        what: "a commit on a record that another database has changed and must write first, storage memory",
    },
    Workload {
        what: "sixteen records that nobody holds in one message, the next when all are granted",
        ..workload("many-16", "many", 16, Aim::Shown)
    },
];
const MEMORY: &str = "memory";

impl Workload {
    /// One message is outstanding: the wake-up between cores would be all that is measured.
    fn pinned(&self) -> bool {
        self.window == 1 || self.shape == Some("many")
    }
}

/// What loads are put on.
struct Servers {
    arbiter: Part,
    echo: Part,
    redis: Option<Part>,
}

/// Measures and prints; fails when something could not be measured.
pub async fn run(options: &Options) -> Result<()> {
    let asked = |name: &str| options.workload.iter().any(|asked| asked == name);
    let chosen: Vec<_> =
        WORKLOADS.into_iter().filter(|w| options.workload.is_empty() || asked(w.name)).collect();
    if chosen.is_empty() && !asked(MEMORY) {
        bail!("no such workload; there are {}, {MEMORY}", WORKLOADS.map(|w| w.name).join(", "));
    }
    for pinned in [true, false] {
        let workloads: Vec<_> = chosen.iter().filter(|w| w.pinned() == pinned).collect();
        if workloads.is_empty() {
            continue;
        }
        let part = |name| process::start(process::ourselves(&["bench-part", name], pinned)?);
        let mut servers = Servers { arbiter: part("arbiter")?, echo: part("node-echo")?, redis: None };
        for workload in workloads {
            if options.baseline.is_some() && workload.redis.is_some() {
                // A new one each time: what was locked before runs out after ten seconds, which is work for it.
                servers.redis = Some(redis::start().await?);
            }
            measure(options, workload, &servers)?;
        }
    }
    if asked(MEMORY) { memory(options) } else { Ok(()) }
}

fn measure(options: &Options, workload: &Workload, servers: &Servers) -> Result<()> {
    let mut subjects = vec![("linkstead", ours(workload, servers)), ("echo", echo(workload, servers))];
    if let (Some(redis), Some(_)) = (&servers.redis, workload.redis) {
        subjects.push(("redis", vec!["redis-load".to_owned(), "--addr".to_owned(), redis.addr.clone()]));
    }
    let mut rounds = vec![Vec::new(); subjects.len()];
    for _ in 0..ROUNDS {
        for ((name, args), rounds) in subjects.iter().zip(&mut rounds) {
            rounds.push(load(options, workload, name, args)?);
        }
    }
    let medians: Vec<_> = rounds.iter().map(|rounds| report::median(rounds)).collect();
    for ((subject, _), measured) in subjects.iter().zip(&medians) {
        let limits = match *subject {
            "linkstead" => format!("in clear, lease 10s, held_max 20000000; {}", workload.what),
            "redis" => "in clear, no persistence; fresh keys with a time to live, none unlocked".to_owned(),
            _ => "in clear, none; frames of one ask and of one grant".to_owned(),
        };
        let (measured, pinned) = (*measured, workload.pinned());
        let row = Row { bench: BENCH, subject, workload: workload.name, measured, pinned, limits: &limits };
        report::row(&row, options.json);
    }
    for ((baseline, _), measured) in subjects.iter().zip(&medians).skip(1) {
        report::ratio(BENCH, workload.name, baseline, &medians[0], measured, options.json);
    }
    judge(options, workload, &medians);
    Ok(())
}

/// Ours, the echo's and perhaps redis's.
fn judge(options: &Options, workload: &Workload, medians: &[Measured]) {
    let (ours, echo) = (&medians[0], &medians[1]);
    let ops = ours.ops_per_s / echo.ops_per_s;
    let echo = match workload.aim {
        Aim::OpsLeast(target) => Some(("ratio_ops to echo", true, ops, target)),
        Aim::P50Most(target) => Some(("ratio_p50 to echo", false, ours.p50_us / echo.p50_us, target)),
        Aim::Shown => None,
    };
    let redis = medians.get(2).zip(workload.redis);
    let redis =
        redis.map(|(theirs, aim)| ("ratio_ops to redis", true, ours.ops_per_s / theirs.ops_per_s, aim));
    for (figure, least, measured, target) in echo.into_iter().chain(redis) {
        report::target(BENCH, workload.name, &Target { figure, least, measured, target }, options.json);
    }
}

fn ours(workload: &Workload, servers: &Servers) -> Vec<String> {
    let part: &[&str] = match workload.shape {
        Some(shape) => &["acquire-load", shape],
        None => &["dirty-load"],
    };
    part.iter().chain(&["--addr", &servers.arbiter.addr]).map(|arg| (*arg).to_owned()).collect()
}

fn echo(workload: &Workload, servers: &Servers) -> Vec<String> {
    let together = if workload.shape == Some("many") { &["--together"][..] } else { &[] };
    let args = ["node-echo-load", "--addr", &servers.echo.addr];
    args.iter().chain(together).map(|arg| (*arg).to_owned()).collect()
}

/// One round: a load process of its own.
fn load(options: &Options, workload: &Workload, subject: &str, args: &[String]) -> Result<Measured> {
    let measure_ms = (options.seconds * 1_000.0 / f64::from(ROUNDS)).max(50.0) as u64;
    let [window, measure_ms] = [workload.window as u64, measure_ms].map(|number| number.to_string());
    let mut all = vec!["bench-part"];
    all.extend(args.iter().map(String::as_str));
    all.extend(["--window", &window, "--measure-ms", &measure_ms]);
    let output = process::ourselves(&all, workload.pinned())?.output().context("running the load")?;
    if !output.status.success() {
        bail!("the load {} on {subject} failed: {}", workload.name, String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("reading what the load measured")
}

/// What one session that holds many records costs the arbiter.
fn memory(options: &Options) -> Result<()> {
    let arbiter = process::start(process::ourselves(&["bench-part", "arbiter"], false)?)?;
    let before = resident(arbiter.pid())?;
    let (keys, window) = (options.keys, 4_096.min(options.keys.max(1)));
    let [total, window] = [keys, window].map(|number| number.to_string());
    let mut args = vec!["bench-part", "acquire-load", "modify", "--addr", &arbiter.addr];
    args.extend(["--window", &window, "--total", &total, "--measure-ms", "600000"]);
    let load = process::start(process::ourselves(&args, false)?)?;
    let per_s: f64 = load.addr.parse().context("reading what the load measured")?;
    let after = resident(arbiter.pid())?;
    let bytes = after.saturating_sub(before) as f64 / keys as f64;
    if options.json {
        println!(
            "{}",
            json!({ "bench": BENCH, "subject": "linkstead", "workload": MEMORY, "keys": keys, "keys_per_s": per_s, "resident_before_bytes": before, "resident_after_bytes": after, "bytes_per_key": bytes, "limits": "one session, each record to change, keys of 12 bytes" })
        );
    } else {
        let mib = |bytes: u64| bytes as f64 / (1024.0 * 1024.0);
        println!(
            "{BENCH:<10} {MEMORY:<16} {keys} keys at {per_s:.0} a second: resident {:.1} MiB before, {:.1} MiB after, {bytes:.1} bytes a key",
            mib(before),
            mib(after)
        );
    }
    let most = BYTES_A_KEY + MAP_BYTES_A_KEY;
    let target = Target { figure: "bytes_per_key", least: false, measured: bytes, target: most };
    report::target(BENCH, MEMORY, &target, options.json);
    Ok(())
}

/// Bytes of a process in memory.
fn resident(pid: u32) -> Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).context("what the arbiter takes")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS in its status")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().context("its VmRSS")?;
    Ok(kib * 1024)
}
