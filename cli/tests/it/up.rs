//! `linkstead up` as a newcomer uses it.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::process::{Process, addr_after, output};

const FREE: [&str; 3] = ["up", "--base-port", "0"];

/// The tiers come up in the documented order and stop in its reverse.
///
/// Holds: Z-66, G-08, G-10.
#[test]
fn it_starts_in_order_and_stops_in_order_on_one_signal() {
    for signal in ["INT", "TERM"] {
        let mut up = Process::start(&FREE);
        up.wait_for("the cluster is up");
        up.signal(signal);
        let status = up.end();
        assert!(status.success(), "{signal}: {status}, {:#?}", up.seen);
        let order: Vec<_> = up
            .seen
            .iter()
            .filter(|line| line.contains(" ready ") || line.ends_with(" stopped"))
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        let ups = ["service-manager-1", "global-cache-1", "linkd-1", "linkd-2", "game-1", "game-2"];
        let downs = ["game-1", "game-2", "linkd-1", "linkd-2", "global-cache-1", "service-manager-1"];
        assert_eq!(order, [ups, downs].concat(), "{:#?}", up.seen);
    }
}

#[test]
fn status_topology_and_kick_find_every_node() {
    let mut up = Process::start(&FREE);
    let line = up.wait_for("service-manager-1");
    let ops = addr_after(&line, "ops ");
    up.wait_for("the cluster is up");
    let (code, out, err) = output(&["status", "--json", "--ops", &ops]);
    assert_eq!(code, 0, "{err}");
    let status: Value = serde_json::from_str(&out).unwrap();
    for node in ["service-manager-1", "global-cache-1", "linkd-1", "linkd-2", "game-1", "game-2"] {
        assert!(status.get(node).is_some_and(|s| s.get("error").is_none()), "{node}: {out}");
    }
    let (code, out, _) = output(&["topology", "--json", "--ops", &ops]);
    let nodes: Vec<Value> = serde_json::from_str(&out).unwrap();
    assert!(code == 0 && nodes.iter().filter(|n| n["role"] == "linkd").count() == 2, "{out}");
    let (code, out, _) = output(&["kick", "nobody", "--json", "--ops", &ops]);
    assert_eq!((code, out.trim()), (0, r#"{"kicked":0,"linkds":2}"#));
    assert_eq!(output(&["status", "--ops", &ops]).0, 0);
    let (code, out, err) = output(&["locks", "top", "--json", "--ops", &ops]);
    assert_eq!((code, out.trim()), (0, "[]"), "{err}");
    let (code, out, err) = output(&["lookup", "record", "7", "role/1", "--ops", &ops]);
    assert_eq!((code, out.trim()), (0, "7 role/1  held by nobody, says global-cache-1"), "{err}");
}

/// Holds: Z-33, Q62.
#[test]
fn a_provider_is_closed_and_opened_and_every_linkd_knows() {
    let mut up = Process::start(&FREE);
    let line = up.wait_for("service-manager-1");
    let ops = addr_after(&line, "ops ");
    up.wait_for("the cluster is up");
    let json = |args: &[&str]| -> Value {
        let (code, out, err) = output(&[args, &["--json", "--ops", &ops]].concat());
        assert_eq!(code, 0, "{out}{err}");
        serde_json::from_str(&out).unwrap()
    };
    for (verb, closed) in [("drain", true), ("undrain", false)] {
        let told = json(&[verb, "game-1"]);
        assert_eq!((&told["closed"], &told["failed"]), (&closed.into(), &Value::Array(vec![])));
        // Both linkds, each of its workers.
        assert!(told["acknowledged"].as_u64().unwrap() >= 2, "{told}");
        assert_eq!(json(&["status"])["game-1"]["disabled"], closed);
    }
    assert_eq!(json(&["lookup", "nobody"]), Value::Array(vec![]));
    let (code, _, err) = output(&["drain", "linkd-1", "--ops", &ops]);
    assert!(code == 3 && err.contains("only a provider"), "{code}: {err}");
    let (code, _, err) = output(&["drain", "game-9", "--ops", &ops]);
    assert!(code == 2 && err.contains("game-1"), "{code}: {err}");
}

/// One gateway of `up` stops alone, as one of many processes does.
#[test]
fn one_node_stops_and_the_others_go_on() {
    let mut up = Process::start(&FREE);
    let line = up.wait_for("service-manager-1");
    let ops = addr_after(&line, "ops ");
    up.wait_for("the cluster is up");
    let (code, out, err) = output(&["stop", "linkd-2", "--json", "--ops", &ops]);
    assert_eq!((code, out.trim()), (0, r#"{"stopped":["linkd-2"]}"#), "{err}");
    let (_, out, _) = output(&["topology", "--json", "--ops", &ops]);
    let nodes: Vec<Value> = serde_json::from_str(&out).unwrap();
    let linkds: Vec<_> = nodes.iter().filter(|n| n["role"] == "linkd").map(|n| &n["node"]).collect();
    assert_eq!(linkds, ["linkd-1"], "{out}");
    up.signal("INT");
    assert!(up.end().success(), "{:#?}", up.seen);
}

#[test]
fn bots_play_and_one_summary_comes_out() {
    let (code, out, err) = output(&[&FREE[..], &["--bots", "20", "--seconds", "2", "--json"]].concat());
    assert_eq!(code, 0, "{out}{err}");
    let summary: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&summary["bots"], &summary["errors"], &summary["failed_assertions"]),
        (&20.into(), &0.into(), &0.into())
    );
    for figure in ["logins", "requests", "pushes", "p50_us", "p99_us"] {
        assert!(summary[figure].as_u64().unwrap() > 0, "{figure}: {out}");
    }
}

/// Holds: BI-110.
#[test]
fn a_port_that_is_taken_is_named() {
    let mut up = Process::start(&["up", "--base-port", "27700"]);
    up.wait_for("the cluster is up");
    let (code, _, err) = output(&["up", "--base-port", "27700"]);
    assert!(code == 2 && err.contains("127.0.0.1:27720"), "{code}: {err}");
}

#[test]
fn bots_that_are_interrupted_are_no_success() {
    let mut up = Process::start(&[&FREE[..], &["--bots", "5", "--seconds", "60"]].concat());
    up.wait_for("the cluster is up");
    up.signal("INT");
    assert_eq!(up.end().code(), Some(1), "{:#?}", up.seen);
}

pub async fn get(addr: &str, path: &str) -> (String, String) {
    let mut stream = net::Tcp::dial(addr).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

/// What `POST /ticket` is answered with: its status and its body.
async fn ask_for_ticket(page: &str, host: &str, more: &str, account: &str) -> (u16, String) {
    let mut stream = net::Tcp::dial(page).await.unwrap();
    let length = account.len();
    let request = format!(
        "POST /ticket HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}Content-Length: {length}\r\n\r\n{account}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// With tickets the page gets one for its guest, and no other site's page does.
#[tokio::test]
async fn the_page_gets_tickets_and_foreign_pages_get_none() {
    let mut up = Process::start(&[&FREE[..], &["--auth", "ticket"]].concat());
    let gateway = addr_after(&up.wait_for("linkd-1"), "clients ");
    let page = addr_after(&up.wait_for("page:"), "http://");
    let config: Value = serde_json::from_str(&get(&page, "/config.json").await.1).unwrap();
    assert_eq!(config["ticket"], "ticket");
    let own = format!("Origin: http://{page}\r\n");
    let (status, ticket) = ask_for_ticket(&page, &page, &own, "ann").await;
    assert_eq!(status, 200, "{ticket}");
    let options = client::Options::new(gateway.as_str(), "ann");
    client::Client::connect(options.clone().token(ticket)).await.unwrap().close().await;
    assert!(client::Client::connect(options).await.is_err(), "no ticket, no login");
    for (host, more) in [
        ("evil.example", ""),
        ("127.0.0.1", ""),
        (page.as_str(), "Origin: https://evil.example\r\n"),
        (page.as_str(), "Origin: null\r\n"),
    ] {
        let (status, body) = ask_for_ticket(&page, host, more, "ann").await;
        assert_eq!(status, 403, "{host} {more} {body}");
    }
    assert_eq!(ask_for_ticket(&page, &page, &own, "").await.0, 400);
    assert_eq!(ask_for_ticket(&page, &page, &own, &"x".repeat(300)).await.0, 413);
    assert!(!up.seen.iter().any(|line| line.contains("play:")), "the chat in a terminal has no ticket");
}

/// Where everybody is believed, there is nothing to be had.
#[tokio::test]
async fn without_tickets_the_page_gives_none() {
    let mut up = Process::start(&FREE);
    let page = addr_after(&up.wait_for("page:"), "http://");
    assert_eq!(ask_for_ticket(&page, &page, "", "ann").await.0, 404);
}

/// Every file is there, may load nothing from elsewhere, and names the gateways in their order.
#[tokio::test]
async fn the_page_is_served_with_the_addresses_of_the_gateways() {
    let mut up = Process::start(&FREE);
    let gateways =
        ["linkd-1", "linkd-2"].map(|name| format!("ws://{}", addr_after(&up.wait_for(name), " ws ")));
    let page = addr_after(&up.wait_for("page:"), "http://");
    let (head, body) = get(&page, "/config.json").await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    let config: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(config, serde_json::json!({ "gateways": gateways }));
    for file in tavern::web::FILES {
        let (head, body) = get(&page, &format!("/{}", file.path)).await;
        assert!(
            head.contains(&format!("content-type: {}", file.content_type)) && body == file.text,
            "{head}"
        );
        let policy = head.lines().find(|line| line.starts_with("content-security-policy: ")).unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains(&gateways.join(" ")), "{policy}");
        assert!(!policy.contains("unsafe") && head.contains("x-content-type-options: nosniff"), "{head}");
    }
    for missing in ["/gone.js", "/../Cargo.toml", "/%2e%2e/Cargo.toml", "/web/app.js"] {
        assert!(get(&page, missing).await.0.starts_with("http/1.1 404"), "{missing}");
    }
    let (code, _, err) = output(&["up", "--base-port", "0", "--web", &page]);
    assert!(code == 2 && err.contains(&page) && err.contains("--web"), "{code}: {err}");
}

#[test]
fn the_page_can_be_left_out_and_stays_on_loopback() {
    let mut up = Process::start(&[&FREE[..], &["--web", "off"]].concat());
    up.wait_for("stop:");
    assert!(!up.seen.iter().any(|line| line.contains("page:")), "{:#?}", up.seen);
    let (code, _, err) = output(&["up", "--web", "0.0.0.0:7780"]);
    assert!(code == 2 && err.contains("not loopback"), "{code}: {err}");
}
