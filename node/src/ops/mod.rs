//! The ops port of every process: probes, metrics and status over HTTP, and Admin over tonic on the same port. On
//! loopback unless configured otherwise; it never carries a player.
//!
//! | path | answers |
//! |---|---|
//! | `/livez` | 200 while the process answers at all |
//! | `/readyz` | 200, or 503 and the reasons; off from the first moment of a stop |
//! | `/healthz` | both in one, with the lifecycle's numbers; always 200 |
//! | `/metrics` | Prometheus text |
//! | `/status` | what the role says of itself, as JSON |

mod late;
mod readiness;

use std::future::IntoFuture;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::admin::{self, Operate};
use crate::lifecycle;
use crate::listen::{Bounded, Caller};
use crate::shutdown::Shutdown;
use crate::telemetry::{BUILD, Metrics};
pub use late::Late;
pub use readiness::Readiness;

/// Connections at once; more wait in the kernel's queue until one closes.
const CONNECTIONS_MAX: usize = 256;
/// A caller that says nothing for this long loses its place, so that probes always find one.
const SILENCE_MAX: std::time::Duration = std::time::Duration::from_secs(10);
/// How long open connections may hold up the end.
const GOODBYE: std::time::Duration = std::time::Duration::from_millis(200);

/// What the ops port shows beside what [`Operate`] says.
#[derive(Debug, Clone)]
pub struct Ops {
    pub shutdown: Shutdown,
    pub readiness: Readiness,
    /// None: `/metrics` is empty.
    pub metrics: Option<Metrics>,
}

struct Page<O> {
    ops: Ops,
    role: Arc<Late<O>>,
}

/// Serves until `cancel`, then ends within a moment. `listener` is from `net`.
pub async fn serve<O: Operate>(
    listener: TcpListener,
    ops: Ops,
    operate: Arc<O>,
    cancel: CancellationToken,
) -> std::io::Result<()> {
    serve_late(listener, ops, Arc::new(Late::there(operate)), cancel).await
}

/// As [`serve`], for a role that has yet to begin.
pub async fn serve_late<O: Operate>(
    listener: TcpListener,
    ops: Ops,
    role: Arc<Late<O>>,
    cancel: CancellationToken,
) -> std::io::Result<()> {
    let admin = admin::service(role.clone());
    let router = Router::new()
        .route("/livez", get(|| async { "alive\n" }))
        .route("/readyz", get(readyz::<O>))
        .route("/healthz", get(healthz::<O>))
        .route("/metrics", get(metrics::<O>))
        .route("/status", get(status::<O>))
        .with_state(Arc::new(Page { ops, role }))
        .route_service("/linkstead.admin.Admin/{*call}", admin);
    let service = router.into_make_service_with_connect_info::<Caller>();
    let listener = Bounded::new(listener, CONNECTIONS_MAX, SILENCE_MAX);
    let serving = axum::serve(listener, service).with_graceful_shutdown(cancel.clone().cancelled_owned());
    let serving = serving.into_future();
    tokio::select! {
        biased;
        served = serving => served,
        () = after(cancel) => Ok(()),
    }
}

/// Connections that stay open don't hold the process up.
async fn after(cancel: CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(GOODBYE).await;
}

/// Why the node is not ready; empty when it is.
fn reasons(ops: &Ops) -> Vec<Value> {
    let mut reasons: Vec<Value> = ops
        .readiness
        .reasons()
        .into_iter()
        .map(|(name, why)| json!({ "condition": name, "why": why }))
        .collect();
    if !ops.shutdown.statistics().ready {
        reasons.push(json!({ "condition": "lifecycle", "why": "stopping" }));
    }
    reasons
}

async fn readyz<O: Operate>(State(page): State<Arc<Page<O>>>) -> Response {
    let reasons = reasons(&page.ops);
    let code = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut page_json = json!({ "ready": reasons.is_empty(), "reasons": reasons });
    with_warnings(&page.ops, &mut page_json);
    (code, Json(page_json)).into_response()
}

async fn healthz<O: Operate>(State(page): State<Arc<Page<O>>>) -> Json<Value> {
    let reasons = reasons(&page.ops);
    let build = json!({ "version": BUILD.version, "profile": BUILD.profile });
    let lifecycle = lifecycle_json(page.ops.shutdown.statistics());
    let mut page_json =
        json!({ "ready": reasons.is_empty(), "reasons": reasons, "lifecycle": lifecycle, "build": build });
    with_warnings(&page.ops, &mut page_json);
    Json(page_json)
}

/// What an operator should look at although the node is ready, such as certificates that could not be read again.
fn with_warnings(ops: &Ops, page: &mut Value) {
    let warnings = ops.readiness.warnings();
    if !warnings.is_empty() {
        page["warnings"] = json!(warnings);
    }
}

async fn metrics<O: Operate>(State(page): State<Arc<Page<O>>>) -> Response {
    let text = page.ops.metrics.as_ref().map(Metrics::render).unwrap_or_default();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

async fn status<O: Operate>(State(page): State<Arc<Page<O>>>) -> Json<Value> {
    let mut status = page.role.status();
    with_warnings(&page.ops, &mut status);
    Json(status)
}

/// The lifecycle's numbers as `/healthz` shows them; roles put them into their status too.
pub fn lifecycle_json(statistics: lifecycle::Statistics) -> Value {
    let state = match statistics.state {
        lifecycle::State::Running => "running",
        lifecycle::State::Draining => "draining",
        lifecycle::State::Closed => "closed",
    };
    json!({
        "state": state,
        "ready": statistics.ready,
        "started": statistics.started,
        "finished": statistics.finished,
        "in_flight": statistics.in_flight,
        "rejected": statistics.rejected,
        "forced": statistics.forced,
    })
}

#[cfg(test)]
mod tests;
