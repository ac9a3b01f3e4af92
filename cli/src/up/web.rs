//! The tavern's page, served by `up`: its files from this binary, where the gateways are, and tickets for the page if
//! they want some. Loopback only, as the gateways of `up` are.

use std::future::IntoFuture;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use net::Tcp;
use node::listen::Bounded;
use serde_json::json;
use tavern::web::FILES;
use tokio_util::sync::CancellationToken;

use crate::Failed;
use crate::ticket::Booth;

/// Connections at once; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 64;
/// Browsers keep connections open without a word.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How long open connections may hold up the end.
const GOODBYE: Duration = Duration::from_millis(200);
/// Where the page asks for a ticket. The body of the request is the account.
const TICKET: &str = "ticket";
/// More than the longest account has.
const TICKET_REQUEST_BYTES_MAX: usize = 256;

/// Where the page is served: `--web ADDR`, `--web off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Web {
    Off,
    At(SocketAddr),
}

impl FromStr for Web {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let addr: SocketAddr = text
            .parse()
            .map_err(|_| format!("`{text}` is neither `off` nor an address such as 127.0.0.1:7780"))?;
        if !addr.ip().is_loopback() {
            return Err(format!(
                "{} is not loopback, and the gateways of `up` are reached from there only",
                addr.ip()
            ));
        }
        Ok(Self::At(addr))
    }
}

/// What the page is told.
struct Told {
    config: String,
    policy: HeaderValue,
    /// The names under which this server is reached, with its port.
    hosts: [String; 2],
    booth: Option<Booth>,
}

/// A page that is served until it is dropped.
pub struct Page {
    pub addr: SocketAddr,
    cancel: CancellationToken,
}

impl Drop for Page {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Serves the page at `addr`; it connects to `gateways`, in this order, with tickets of `booth`.
pub fn serve(addr: SocketAddr, gateways: &[SocketAddr], booth: Option<Booth>) -> Result<Page, Failed> {
    let taken = |error| {
        Failed::Usage(format!("{error}; serve the page elsewhere with --web ADDR, or not with --web off"))
    };
    let listener = Tcp::listen(addr).map_err(taken)?;
    let addr = listener.local_addr().map_err(|error| Failed::Running(error.into()))?;
    let urls: Vec<String> = gateways.iter().map(|gateway| format!("ws://{gateway}")).collect();
    // The page may load from here and talk to the gateways, and to nobody else.
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self' {}; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        urls.join(" ")
    );
    let policy = HeaderValue::from_str(&policy).map_err(|error| Failed::Running(error.into()))?;
    let mut config = json!({ "gateways": urls });
    if booth.is_some() {
        config["ticket"] = json!(TICKET);
    }
    let hosts = [addr.to_string(), format!("localhost:{}", addr.port())];
    let told = Arc::new(Told { config: config.to_string(), policy, hosts, booth });
    let router = Router::new()
        .route("/", get(|told| file(told, Path(String::new()))))
        .route("/{file}", get(file))
        .route(&format!("/{TICKET}"), post(ticket))
        .layer(DefaultBodyLimit::max(TICKET_REQUEST_BYTES_MAX))
        .with_state(told);
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let listener = Bounded::new(listener, CONNECTIONS_MAX, SILENCE_MAX);
    tokio::spawn(async move {
        let stopping = stop.clone();
        let serving = axum::serve(listener, router).with_graceful_shutdown(stopping.cancelled_owned());
        let last = async {
            stop.cancelled().await;
            tokio::time::sleep(GOODBYE).await;
        };
        tokio::select! {
            biased;
            served = serving.into_future() => {
                if let Err(error) = served {
                    tracing::warn!(%error, "the page is served no longer");
                }
            }
            () = last => {}
        }
    });
    Ok(Page { addr, cancel })
}

async fn file(State(told): State<Arc<Told>>, Path(path): Path<String>) -> Response {
    if path == "config.json" {
        return answer(&told, "application/json", told.config.clone());
    }
    match FILES.iter().find(|file| file.path == path) {
        Some(file) => answer(&told, file.content_type, file.text),
        None => (StatusCode::NOT_FOUND, "there is no such file here\n").into_response(),
    }
}

/// A ticket for whoever the page says. Pages of other sites get none: they come under another name or say their own.
async fn ticket(State(told): State<Arc<Told>>, headers: HeaderMap, account: String) -> Response {
    let Some(booth) = &told.booth else {
        return (StatusCode::NOT_FOUND, "nobody needs a ticket here\n").into_response();
    };
    let header = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let ours = |said: &str| told.hosts.iter().any(|host| host == said);
    let origin = header(header::ORIGIN).map(|origin| origin.strip_prefix("http://").unwrap_or_default());
    if !header(header::HOST).is_some_and(ours) || !origin.is_none_or(ours) {
        return (StatusCode::FORBIDDEN, "tickets are for this server's own page\n").into_response();
    }
    match booth.sell(&account) {
        Ok(text) => answer(&told, "text/plain; charset=utf-8", text),
        Err(why) => (StatusCode::BAD_REQUEST, why).into_response(),
    }
}

fn answer(told: &Told, content_type: &'static str, body: impl IntoResponse) -> Response {
    const NO_SNIFF: (HeaderName, HeaderValue) =
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    const NO_REFERRER: (HeaderName, HeaderValue) =
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    // A newer binary brings newer files under the same names.
    const NO_CACHE: (HeaderName, HeaderValue) = (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    let policy = (header::CONTENT_SECURITY_POLICY, told.policy.clone());
    ([kind, policy, NO_SNIFF, NO_REFERRER, NO_CACHE], body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_served() {
        assert_eq!("off".parse(), Ok(Web::Off));
        assert_eq!("127.0.0.1:0".parse(), Ok(Web::At(([127, 0, 0, 1], 0).into())));
        assert!("0.0.0.0:7780".parse::<Web>().unwrap_err().contains("not loopback"));
        assert!("7780".parse::<Web>().unwrap_err().contains("such as 127.0.0.1:7780"));
    }
}
