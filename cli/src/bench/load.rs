//! The load: sessions that each keep a window of requests outstanding and time every answer.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use hdrhistogram::Histogram;
use net::tls::{ClientTls, HANDSHAKE_TIMEOUT, NODE_NAME};
use net::{Secured, Tcp};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use wire::auth::{AUTH, Auth};
use wire::frame::{self, Decoded, PAYLOAD_BYTES_CEILING};
use wire::handshake;
use wire::payload::{self, Family, Head};

use super::ECHO;

/// One run of the load.
#[derive(Debug, Clone, clap::Args)]
pub struct Plan {
    /// Where to send it.
    #[arg(long)]
    pub addr: String,
    #[arg(long)]
    pub sessions: usize,
    #[arg(long)]
    pub window: usize,
    #[arg(long, default_value_t = 64)]
    pub body_bytes: usize,
    #[arg(long, default_value_t = 300)]
    pub warm_ms: u64,
    #[arg(long)]
    pub measure_ms: u64,
    /// Shake hands and log in first.
    #[arg(long)]
    pub login: bool,
    /// Inside TLS, believing this authority.
    #[arg(long)]
    pub tls_ca: Option<PathBuf>,
}

/// What a run measured.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Measured {
    pub ops_per_s: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub errors: u64,
}

/// Runs the plan on this thread's runtime.
pub async fn run(plan: &Plan) -> anyhow::Result<Measured> {
    let local = tokio::task::LocalSet::new();
    local.run_until(measure(plan)).await
}

async fn measure(plan: &Plan) -> anyhow::Result<Measured> {
    let mut streams = Vec::new();
    let tls = match &plan.tls_ca {
        Some(ca) => Some(ClientTls::player(&std::fs::read(ca)?, NODE_NAME)?),
        None => None,
    };
    for index in 0..plan.sessions {
        let account = plan.login.then_some(index);
        streams.push(connect(&plan.addr, tls.as_ref(), account).await?);
    }
    let start = Instant::now() + Duration::from_millis(plan.warm_ms);
    let end = start + Duration::from_millis(plan.measure_ms);
    let mut tasks = Vec::new();
    for stream in streams {
        let (window, body_bytes) = (plan.window, plan.body_bytes);
        tasks.push(tokio::task::spawn_local(session(stream, window, body_bytes, start, end)));
    }
    let mut all = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3)?;
    let mut errors = 0;
    for task in tasks {
        match task.await? {
            Ok((times, refused)) => {
                all.add(times)?;
                errors += refused;
            }
            Err(_) => errors += 1,
        }
    }
    let micros = |quantile| all.value_at_quantile(quantile) as f64 / 1_000.0;
    let (p50_us, p99_us, p999_us) = (micros(0.5), micros(0.99), micros(0.999));
    let ops_per_s = all.len() as f64 / (plan.measure_ms as f64 / 1_000.0);
    Ok(Measured { ops_per_s, p50_us, p99_us, p999_us, errors })
}

/// A connection, logged in as an account of this number if there is one.
pub(super) async fn connect(
    addr: &str,
    tls: Option<&ClientTls>,
    account: Option<usize>,
) -> anyhow::Result<Secured<TcpStream>> {
    let stream = Tcp::dial(addr).await?;
    let mut stream = match tls {
        Some(tls) => tls.connect(stream, HANDSHAKE_TIMEOUT).await?,
        None => Secured::Plain(stream),
    };
    if let Some(number) = account {
        let (mut out, account) = (BytesMut::new(), format!("load-{number}"));
        handshake::client_done(&mut out);
        let auth = Auth { account: account.as_bytes(), ..Auth::default() };
        payload::encode_frame(&mut out, AUTH, Head::request(1), |out| auth.encode(out));
        stream.write_all(&out).await?;
        stream.flush().await?;
        // linkd's hello, then the answer to Auth.
        let mut buf = BytesMut::new();
        let mut authed = false;
        while !authed {
            if stream.read_buf(&mut buf).await? == 0 {
                anyhow::bail!("closed during login");
            }
            while let Decoded::Frame(frame) = frame::decode(&buf, PAYLOAD_BYTES_CEILING)? {
                let (head, _) = payload::decode(frame.payload)?;
                authed |= frame.type_id == AUTH && head.code == 0;
                let used = frame.whole.len();
                buf.advance(used);
            }
        }
    }
    Ok(stream)
}

/// Keeps `window` requests outstanding until `end`; answers after `start` count. Answers how long each took, in
/// nanoseconds, and how many were refused.
async fn session(
    mut stream: Secured<TcpStream>,
    window: usize,
    body_bytes: usize,
    start: Instant,
    end: Instant,
) -> io::Result<(Histogram<u64>, u64)> {
    let mut times = Histogram::new_with_bounds(1, 60_000_000_000, 3).map_err(io::Error::other)?;
    let (mut refused, mut next) = (0, 1i64);
    let mut sent_at = vec![Instant::now(); window];
    let (mut out, mut buf) = (BytesMut::new(), BytesMut::with_capacity(16 * 1024));
    let body = body(body_bytes);
    let mut answered = window;
    loop {
        let now = Instant::now();
        if now < end {
            for _ in 0..answered {
                sent_at[(next as usize) % window] = now;
                payload::encode_frame(&mut out, ECHO, Head::request(next), |out| {
                    out.extend_from_slice(&body)
                });
                next += 1;
            }
            stream.write_all(&out).await?;
            stream.flush().await?;
            out.clear();
        } else {
            return Ok((times, refused));
        }
        answered = 0;
        while answered == 0 {
            if stream.read_buf(&mut buf).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let now = Instant::now();
            while let Decoded::Frame(frame) =
                frame::decode(&buf, PAYLOAD_BYTES_CEILING).map_err(io::Error::other)?
            {
                let (head, _) = payload::decode(frame.payload).map_err(io::Error::other)?;
                let used = frame.whole.len();
                if head.family == Family::Response {
                    answered += 1;
                    refused += u64::from(head.code != 0);
                    let took = now - sent_at[(head.session as usize) % window];
                    if now >= start && now < end {
                        times.saturating_record(took.as_nanos() as u64);
                    }
                }
                buf.advance(used);
            }
            buf.reserve(16 * 1024);
        }
    }
}

/// A body of exactly `bytes` that is a message with one field of bytes; up to 129 bytes.
fn body(bytes: usize) -> Vec<u8> {
    let mut body = vec![7; bytes.clamp(2, 129)];
    body[0] = 0x0a;
    body[1] = (body.len() - 2) as u8;
    body
}
