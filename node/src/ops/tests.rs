//! The ops port as a probe, a scraper and an operator see it.

use std::time::Duration;

use base::{Account, LinkSid};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::admin::{AdminError, Client, Kick, OperateError, Target};
use crate::clock::Clock;
use crate::lifecycle::Budgets;

struct Role {
    shutdown: Shutdown,
}

impl Operate for Role {
    fn status(&self) -> Value {
        json!({ "role": "linkd", "sessions": 3 })
    }

    async fn kick(&self, kick: Kick) -> Result<u32, OperateError> {
        match kick.target {
            Target::Account(account) if account.as_str() == "eve" => Ok(2),
            Target::LinkSid(LinkSid(7)) => Err(OperateError::Busy("workers".to_owned())),
            _ => Ok(0),
        }
    }

    fn stop(&self, _now: bool) -> bool {
        let already = !self.shutdown.statistics().ready;
        self.shutdown.stop();
        already
    }
}

async fn port(conditions: &[&'static str]) -> (String, Ops, CancellationToken) {
    let shutdown = Shutdown::new(Budgets::NONE, Clock::start()).unwrap();
    let metrics = Some(crate::telemetry::metrics().unwrap());
    let ops = Ops { shutdown: shutdown.clone(), readiness: Readiness::new(conditions), metrics };
    let listener = net::Tcp::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let cancel = CancellationToken::new();
    tokio::spawn(serve(listener, ops.clone(), Arc::new(Role { shutdown }), cancel.clone()));
    (addr, ops, cancel)
}

async fn get(addr: &str, path: &str) -> (u16, String) {
    let mut stream = net::Tcp::dial(addr).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Holds: G-02.
#[tokio::test]
async fn readiness_names_its_reasons_and_goes_off_first() {
    let (addr, ops, _cancel) = port(&["directory"]).await;
    let (code, body) = get(&addr, "/readyz").await;
    assert_eq!((code, body.contains("\"directory\"")), (503, true), "{body}");
    ops.readiness.met("directory");
    ops.readiness.ready().await;
    assert_eq!(get(&addr, "/readyz").await, (200, "{\"ready\":true,\"reasons\":[]}".to_owned()));
    ops.readiness.unmet("directory", "lost");
    assert!(get(&addr, "/readyz").await.1.contains("lost"));
    ops.readiness.met("directory");
    ops.shutdown.stop();
    let (code, body) = get(&addr, "/readyz").await;
    assert_eq!((code, body.contains("stopping")), (503, true), "{body}");
    assert_eq!(get(&addr, "/livez").await.0, 200);
}

#[tokio::test]
async fn the_pages_are_there_and_others_are_not() {
    let (addr, _ops, cancel) = port(&[]).await;
    ::metrics::counter!("linkstead_ops_test_total").increment(1);
    assert!(get(&addr, "/metrics").await.1.contains("linkstead_ops_test_total 1"));
    assert!(get(&addr, "/healthz").await.1.contains("\"in_flight\":0"));
    let status: Value = serde_json::from_str(&get(&addr, "/status").await.1).unwrap();
    assert_eq!(status["role"], "linkd");
    assert_eq!(get(&addr, "/nothing").await.0, 404);
    cancel.cancel();
    let gone = async { while net::Tcp::dial(&addr).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap();
}

#[tokio::test]
async fn an_operator_asks_over_the_same_port() {
    let (addr, ops, _cancel) = port(&[]).await;
    let mut client = Client::connect(&addr).await.unwrap();
    assert_eq!(client.status().await.unwrap()["sessions"], 3);
    assert_eq!(client.topology().await.unwrap(), json!([]));
    let kick = |target: Target| Kick { target, code: wire::code::KICKED, text: String::new() };
    assert_eq!(client.kick(kick(Target::Account(Account::new("eve").unwrap()))).await, Ok(2));
    let busy = client.kick(kick(Target::LinkSid(LinkSid(7)))).await.unwrap_err();
    assert!(busy.to_string().contains("workers"), "{busy}");
    assert_eq!(client.stop(false).await, Ok(false));
    assert_eq!(client.stop(true).await, Ok(true));
    assert!(!ops.shutdown.statistics().ready);
    let nobody = Client::connect("127.0.0.1:1").await.unwrap_err();
    assert!(matches!(nobody, AdminError::Unreachable { .. }), "{nobody}");
}

/// Who waits for the directory says so and can be stopped, instead of leaving probes and operators without an answer.
///
/// Holds: Z-66.
#[tokio::test]
async fn a_node_that_waits_answers_that_it_does() {
    let shutdown = Shutdown::new(Budgets::NONE, Clock::start()).unwrap();
    let node = base::NodeId::new("linkd-1").unwrap();
    let late = Arc::new(Late::<Role>::new(node, net::hello::Role::Linkd, shutdown.clone()));
    let ops = Ops { shutdown: shutdown.clone(), readiness: Readiness::new(&["epoch"]), metrics: None };
    let listener = net::Tcp::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    tokio::spawn(serve_late(listener, ops, late.clone(), CancellationToken::new()));
    assert_eq!(get(&addr, "/readyz").await.0, 503);
    let mut client = Client::connect(&addr).await.unwrap();
    let status = client.status().await.unwrap();
    assert_eq!(
        (&status["node"], &status["role"], &status["waiting_for"]),
        (&json!("linkd-1"), &json!("linkd"), &json!("directory"))
    );
    assert_eq!(client.topology().await.unwrap(), json!([]));
    let kick = Kick { target: Target::LinkSid(LinkSid(7)), code: wire::code::KICKED, text: String::new() };
    let refused = client.kick(kick).await.unwrap_err();
    assert!(refused.to_string().contains("waits for the directory"), "{refused}");
    assert_eq!(client.stop(false).await, Ok(false));
    assert!(!shutdown.statistics().ready);
    late.serve(Role { shutdown });
    assert_eq!(client.status().await.unwrap()["sessions"], 3);
    assert_eq!(client.stop(false).await, Ok(true));
}
