//! `bench forward`: what it costs to pass a frame through linkd and a provider, and back.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::haproxy::{self, Haproxy};
use super::limits;
use super::load::Measured;
use super::parts;
use super::process::{self, Part};
use super::report::{self, Row};
use super::{Baseline, Options};

const BENCH: &str = "forward";
const ROUNDS: u32 = 3;

/// A shape of load.
#[derive(Debug, Clone, Copy)]
struct Workload {
    name: &'static str,
    sessions: usize,
    window: usize,
}

const WORKLOADS: [Workload; 4] = [
    Workload { name: "1x1", sessions: 1, window: 1 },
    Workload { name: "64x1", sessions: 64, window: 1 },
    Workload { name: "64x16", sessions: 64, window: 16 },
    THOUSAND,
];
const THOUSAND: Workload = Workload { name: "1000x1", sessions: 1_000, window: 1 };
/// Only when it is asked for, and then beside the thousand: what more sessions cost at the same work.
const CROWD: Workload = Workload { name: "10000x1", sessions: 10_000, window: 1 };
/// How much of the thousand's throughput the crowd must keep.
const CROWD_RATIO_MIN: f64 = 0.6;

impl Workload {
    /// With one request outstanding the wake-up between cores would be all that is measured.
    fn pinned(&self) -> bool {
        self.sessions * self.window == 1
    }
}

/// Something that a load can be put on.
struct Subject {
    name: &'static str,
    addr: String,
    login: bool,
    /// With more it is not measured.
    sessions_max: usize,
    /// What is on while it is measured.
    limits: String,
    /// The authority that the load believes; `None`: in clear.
    ca: Option<String>,
    _certs: Option<tempfile::TempDir>,
    _parts: Vec<Part>,
    _haproxy: Option<Haproxy>,
}

/// Measures and prints; fails when a subject could not be measured.
pub async fn run(options: &Options) -> Result<()> {
    let asked = |name: &str| options.workload.iter().any(|asked| asked == name);
    let crowd = asked(CROWD.name);
    let chosen: Vec<_> = WORKLOADS
        .into_iter()
        .filter(|w| options.workload.is_empty() || asked(w.name) || crowd && w.name == THOUSAND.name)
        .chain(crowd.then_some(CROWD))
        .collect();
    if chosen.is_empty() {
        bail!("no such workload; there are {}, {}", WORKLOADS.map(|w| w.name).join(", "), CROWD.name);
    }
    let mut ours = BTreeMap::new();
    for pinned in [true, false] {
        let workloads: Vec<_> = chosen.iter().filter(|w| w.pinned() == pinned).collect();
        if workloads.is_empty() {
            continue;
        }
        let subjects = subjects(options, pinned).await?;
        for workload in workloads {
            ours.insert(workload.name, measure(options, workload, &subjects).await?);
        }
    }
    if let (Some(thousand), Some(crowd)) = (ours.get(THOUSAND.name), ours.get(CROWD.name)) {
        report::ratio(BENCH, CROWD.name, "our own 1000x1", crowd, thousand, options.json);
        if !options.json {
            let met = crowd.ops_per_s >= thousand.ops_per_s * CROWD_RATIO_MIN;
            println!("{BENCH:<10} {:<16} target {CROWD_RATIO_MIN} {}", CROWD.name, report::met(met));
        }
    }
    Ok(())
}

async fn subjects(options: &Options, pinned: bool) -> Result<Vec<Subject>> {
    let echo = process::start(process::ourselves(&["bench-part", "echo"], pinned)?)?;
    let mut subjects = vec![linkstead(options.tls, pinned)?];
    if options.baseline == Some(Baseline::Haproxy) {
        let haproxy = haproxy::start(&echo.addr, pinned).await?;
        let addr = haproxy.part.addr.clone();
        subjects.push(Subject {
            name: "haproxy",
            addr,
            login: false,
            sessions_max: haproxy::SESSIONS_MAX,
            limits: format!("in clear, {}", haproxy::limits()),
            ca: None,
            _certs: None,
            _parts: Vec::new(),
            _haproxy: Some(haproxy),
        });
    }
    subjects.push(Subject {
        name: "echo",
        addr: echo.addr.clone(),
        login: false,
        sessions_max: usize::MAX,
        limits: "in clear, none".to_owned(),
        ca: None,
        _certs: None,
        _parts: vec![echo],
        _haproxy: None,
    });
    Ok(subjects)
}

/// A directory, a linkd and an echo provider, each in its own process.
fn linkstead(tls: bool, pinned: bool) -> Result<Subject> {
    let certs = if tls { Some(parts::certificates()?) } else { None };
    let folder = certs.as_ref().map(|certs| certs.path().to_string_lossy().into_owned());
    let start = |part: &[&str]| {
        let mut args = [&["bench-part"], part].concat();
        if let Some(folder) = &folder {
            args.extend(["--certs", folder]);
        }
        process::start(process::ourselves(&args, pinned)?)
    };
    let directory = start(&["directory"])?;
    let linkd = start(&["linkd", "--directory", &directory.addr])?;
    let provider = start(&["provider", "--directory", &directory.addr])?;
    let around = if tls { "TLS 1.3 for players, mTLS between nodes" } else { "in clear" };
    Ok(Subject {
        name: "linkstead",
        addr: linkd.addr.clone(),
        login: true,
        sessions_max: usize::MAX,
        limits: format!("{around}, {}", limits::of_both()),
        ca: folder.map(|folder| format!("{folder}/ca.pem")),
        _certs: certs,
        _parts: vec![provider, linkd, directory],
        _haproxy: None,
    })
}

/// Answers what linkstead measured.
async fn measure(options: &Options, workload: &Workload, subjects: &[Subject]) -> Result<Measured> {
    let subjects: Vec<_> =
        subjects.iter().filter(|subject| workload.sessions <= subject.sessions_max).collect();
    let mut rounds = vec![Vec::new(); subjects.len()];
    for _ in 0..ROUNDS {
        for (subject, rounds) in subjects.iter().zip(&mut rounds) {
            rounds.push(load(options, workload, subject)?);
        }
    }
    let medians: Vec<_> = rounds.iter().map(|rounds| report::median(rounds)).collect();
    for (subject, measured) in subjects.iter().zip(&medians) {
        let (pinned, limits) = (workload.pinned(), &subject.limits);
        let row = Row {
            bench: BENCH,
            subject: subject.name,
            workload: workload.name,
            measured: *measured,
            pinned,
            limits,
        };
        report::row(&row, options.json);
    }
    for (subject, measured) in subjects.iter().zip(&medians).skip(1) {
        report::ratio(BENCH, workload.name, subject.name, &medians[0], measured, options.json);
    }
    Ok(medians[0])
}

/// One round: a load process of its own.
fn load(options: &Options, workload: &Workload, subject: &Subject) -> Result<Measured> {
    let measure_ms = (options.seconds * 1_000.0 / f64::from(ROUNDS)).max(50.0) as u64;
    let warm_ms = (workload.sessions as u64 / 4).max(300);
    let numbers =
        [workload.sessions as u64, workload.window as u64, measure_ms, warm_ms].map(|n| n.to_string());
    let [sessions, window, measure_ms, warm_ms] = &numbers;
    let mut args =
        vec!["bench-part", "load", "--addr", &subject.addr, "--sessions", sessions, "--window", window];
    // The first request of each session binds it to a provider, which is not what is measured.
    args.extend(["--measure-ms", measure_ms, "--warm-ms", warm_ms]);
    if subject.login {
        args.push("--login");
    }
    if let Some(ca) = &subject.ca {
        args.extend(["--tls-ca", ca]);
    }
    let mut command: Command = process::ourselves(&args, workload.pinned())?;
    let output = command.output().context("running the load")?;
    if !output.status.success() {
        bail!("the load on {} failed: {}", subject.name, String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("reading what the load measured")
}
