//! What an operator asks of a running arbiter.

use std::sync::Arc;

use base::Span;
use global_cache::Operator;
use global_cache::server::{Lock, Record};
use node::admin::Operate;
use node::config::{NodeConfig, Time};
use node::{Clock, Shutdown};
use serde_json::{Value, json};
use wire::cache::mode;

use crate::world::{Provider, Word, arbiter, config, within};

const KEY: &[u8] = b"\0\0\0\x07market";

fn operator(server: global_cache::Server) -> Operator {
    let node = base::NodeId::new("global-cache-1").unwrap();
    let join = node::Join {
        cluster: "test".into(),
        node: node.clone(),
        role: "arbiter".into(),
        host: "here".into(),
        directory: Vec::new(),
        ops_address: String::new(),
        reconnect: NodeConfig::default().backoff(&node),
        security: net::Security::Insecure,
    };
    let shutdown = Shutdown::new(node::lifecycle::Budgets::NONE, Clock::start()).unwrap();
    Operator { node, server: Arc::new(server), directory: node::Directory::alone(join), shutdown }
}

/// What had to wait is shown by its key, with who has it and who waits; what was granted at once is not.
#[tokio::test]
async fn the_records_that_are_waited_for_are_shown() {
    let operator = operator(arbiter(&config()).await);
    let mut a = Provider::join(&operator.server, "game-1", 1).await;
    let mut b = Provider::join(&operator.server, "game-2", 2).await;
    a.modify(1, b"\0\0\0\x07quiet").await;
    let held = a.modify(2, KEY).await;
    assert_eq!(within(operator.locks(20)).await, Ok(json!([])));
    b.ask(9, mode::SHARE, 0, KEY);
    let Word::Reduce(_) = a.word().await else { panic!("nobody asked") };
    let record = json!({
        "table": 7,
        "key": "market",
        "mode": "modify",
        "holders": [{"node": "game-1", "mode": "modify", "seq": held.seq.to_string()}],
        "holders_count": 1,
        "waiting": [{"node": "game-2", "wants": "share"}],
        "waiting_count": 1,
    });
    assert_eq!(within(operator.record(KEY.to_vec())).await.unwrap(), record);
    let mut locks = within(operator.locks(20)).await.unwrap();
    let per_second = locks[0]["per_second"].take().as_f64().unwrap();
    assert!(per_second > 0.0 && per_second <= 1.0, "{per_second}");
    let mut lock = record;
    lock["per_second"] = Value::Null;
    assert_eq!(locks, json!([lock]));
    // Denied for waiting too long, it is still nobody else's.
    assert_eq!(b.denied().await.1, "TIMEOUT");
    let free = within(operator.record(b"\0\0\0\x07nobody".to_vec())).await.unwrap();
    assert_eq!(
        (&free["mode"], &free["holders_count"], &free["waiting_count"]),
        (&Value::Null, &0.into(), &0.into())
    );
}

/// However many contend for however many records, an answer names a bounded number and counts the rest.
#[tokio::test]
async fn every_answer_is_bounded() {
    let operator = operator(arbiter(&config()).await);
    let mut holder = Provider::join(&operator.server, "game-1", 1).await;
    let mut readers = Vec::new();
    for n in 0..20 {
        let mut reader = Provider::join(&operator.server, &format!("reader-{n}"), n + 2).await;
        reader.ask(1, mode::SHARE, 0, KEY);
        reader.granted().await;
        readers.push(reader);
    }
    for n in 0..150_u64 {
        let key = [&KEY[..4], n.to_string().as_bytes()].concat();
        holder.modify(n, &key).await;
        readers[0].ask(1_000 + n, mode::SHARE, 0, &key);
        let Word::Reduce(_) = holder.word().await else { panic!("nobody asked") };
    }
    holder.ask(1_000, mode::MODIFY, 0, KEY);
    let Word::Reduce(_) = readers[7].word().await else { panic!("nobody asked") };
    let locks = within(operator.server.locks(usize::MAX)).await.unwrap();
    assert_eq!(locks.len(), Lock::COUNT_MAX);
    assert_eq!(within(operator.server.locks(3)).await.unwrap().len(), 3);
    let record = within(operator.server.record(KEY.to_vec())).await.unwrap();
    assert!(Record::NAMES_MAX > 20 && record.holders.len() == 20 && record.waiting.len() == 1, "{record:?}");
    for n in 0..10 {
        holder.ask(2_000 + n, mode::MODIFY, 0, KEY);
    }
    within(async { while within(operator.server.record(KEY.to_vec())).await.unwrap().waiting_count < 11 {} })
        .await;
    let locks = within(operator.server.locks(usize::MAX)).await.unwrap();
    let market = locks.iter().find(|lock| *lock.key == *KEY).expect("it is the hottest");
    let names = (market.record.holders.len(), market.record.waiting.len());
    assert_eq!(names, (Lock::NAMES_MAX, Lock::NAMES_MAX));
    assert_eq!((market.record.holders_count, market.record.waiting_count), (20, 11));
}

/// After a start it says for how long it grants nothing.
#[tokio::test]
async fn the_status_says_when_it_opens() {
    let operator = operator(arbiter(&global_cache::Config { grace: Some(Time::secs(2)), ..config() }).await);
    let left = operator.server.opens_after();
    assert!(left > Span::ZERO && left <= Span::secs(2), "{left:?}");
    within(operator.server.statuses().wait_for(|status| status.warming)).await.unwrap();
    let status = operator.status();
    assert_eq!(
        (&status["warming"], &status["epoch"], &status["role"]),
        (&true.into(), &"7".into(), &"arbiter".into())
    );
    within(operator.server.statuses().wait_for(|status| !status.warming)).await.unwrap();
    assert_eq!(operator.status()["opens_after_ms"], 0);
    let provider = Provider::join(&operator.server, "game-1", 1).await;
    within(operator.server.statuses().wait_for(|status| status.sessions == 1)).await.unwrap();
    assert_eq!(operator.status()["sessions"], 1);
    drop(provider);
}

/// Whoever asks an arbiter that has stopped is told so and does not wait.
#[tokio::test]
async fn an_arbiter_that_has_stopped_says_so() {
    let operator = operator(arbiter(&config()).await);
    within(operator.server.stop()).await;
    let refused = within(operator.locks(1)).await.unwrap_err().to_string();
    assert!(refused.contains("the arbiter stops"), "{refused}");
}
