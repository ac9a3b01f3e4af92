//! Handlers that are transactions: what they change and what they say happens together, once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use base::{Epoch, NodeId};
use linkstead::{
    Builder, Config, Durability, Env, Error, Linkds, Record, Result, Role, Table, Tx, code, module,
};
use tokio::sync::watch;
use wire::link::{self, message};

use crate::linkd::{Gateway, pair, sent};

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(table = "purse", id = 1, key = String, durability = "sync")]
pub struct Purse {
    #[prost(int64, tag = "1")]
    pub coins: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Pay {
    /// Which request of the account this is.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    #[prost(string, tag = "2")]
    pub to: String,
    #[prost(int64, tag = "3")]
    pub coins: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Balance {
    #[prost(int64, tag = "1")]
    pub coins: i64,
}

/// A push.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Paid {
    #[prost(int64, tag = "1")]
    pub coins: i64,
}

pub struct Bank {
    purses: Table<String, Purse>,
    runs: Arc<AtomicU32>,
}

fn pay(request: u64, to: &str, coins: i64) -> Pay {
    Pay { request, to: to.to_owned(), coins }
}

#[module(id = 7, pushes(Paid))]
impl Bank {
    #[handler(once = 1)]
    async fn pay(&self, tx: &mut Tx, request: Pay) -> Result<Balance> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        tx.push(&Paid { coins: request.coins });
        tx.set_role(Some(Role(5)));
        let from = tx.account().as_str().to_owned();
        let purse = self.purses.get_or_default(tx, &from)?;
        purse.coins -= request.coins;
        let coins = purse.coins;
        if coins < -100 {
            return Err(Error::code(3, "broke"));
        }
        self.purses.get_or_default(tx, &request.to)?.coins += request.coins;
        Ok(Balance { coins })
    }

    #[handler]
    async fn balance(&self, tx: &mut Tx, request: Pay) -> Result<Balance> {
        let failed = tx.nested(|tx| {
            tx.push(&Paid { coins: 1 });
            self.purses.put(tx, &request.to, Purse { coins: 1_000_000 })?;
            Err::<(), _>(Error::code(1, "not so"))
        });
        if failed.is_err_and(|error| error.result(0) != 1) {
            return Err(Error::from(tables_not_yet()));
        }
        Ok(Balance { coins: self.purses.get(tx, &request.to)?.map_or(0, |purse| purse.coins) })
    }

    #[handler]
    async fn fall(&self, tx: &mut Tx, request: Pay) -> Result<()> {
        self.purses.get_or_default(tx, &request.to)?.coins += 1;
        assert!(request.coins != 13, "planned");
        Ok(())
    }
}

fn tables_not_yet() -> tables::Error {
    tables::Error::NotYet
}

fn bank() -> (Builder, Arc<AtomicU32>) {
    let runs = Arc::<AtomicU32>::default();
    let shown = runs.clone();
    let builder = linkstead::provider("bank").module(move |setup| Ok(Bank { purses: setup.table()?, runs }));
    (builder, shown)
}

/// What a handler says leaves after its commit, who plays first and the reply last, however often it ran.
#[tokio::test]
async fn what_is_said_leaves_once_and_in_order() {
    let (builder, runs) = bank();
    let (_running, _gateway, mut linkd) = pair(builder, Config::default()).await;
    linkd.open(1, "alice", None);
    linkd.request(1, Bank::PAY, 41, &pay(1, "bob", 30));
    assert_eq!(linkd.next().await.meta.kind, link::USER_STATE);
    assert_eq!(sent(&linkd.next().await).message::<Paid>(), Paid { coins: 30 });
    let reply = sent(&linkd.next().await);
    assert_eq!((reply.result(41), reply.message::<Balance>().coins), (0, -30));
    // Its records were not at hand at first.
    assert!(runs.load(Ordering::SeqCst) > 1);
    // Refused: nothing of it happens.
    linkd.request(1, Bank::PAY, 42, &pay(2, "bob", 300));
    assert_eq!(sent(&linkd.next().await).result(42), (7 << 32) | 3);
    linkd.request(1, Bank::BALANCE, 43, &pay(0, "bob", 0));
    let reply = sent(&linkd.next().await);
    assert_eq!((reply.result(43), reply.message::<Balance>().coins), (0, 30));
}

/// Holds: BI-036, BI-037, BI-038.
#[tokio::test]
async fn what_is_said_again_is_answered_again_and_not_done_again() {
    let (builder, _) = bank();
    let (_running, _gateway, mut linkd) = pair(builder, Config::default()).await;
    linkd.open(1, "alice", None);
    for session in 1..4 {
        linkd.request(1, Bank::PAY, session, &pay(7, "bob", 10));
        loop {
            let frame = linkd.next().await;
            if frame.meta.kind != link::SEND || sent(&frame).type_id != Bank::PAY.type_id {
                // What the first one has said.
                assert_eq!(session, 1, "{frame:?}");
                continue;
            }
            let reply = sent(&frame);
            assert_eq!((reply.result(session), reply.message::<Balance>().coins), (0, -10));
            break;
        }
    }
    linkd.request(1, Bank::PAY, 4, &pay(7, "bob", 11));
    assert_eq!(linkd.sent().await.result(4), code::ID_CONFLICT.result());
    // Another account has requests of its own.
    linkd.open(2, "carol", None);
    linkd.request(2, Bank::PAY, 5, &pay(7, "bob", 1));
    while sent(&linkd.next_send().await).type_id != Bank::PAY.type_id {}
    // A window later the place is another's; what is older is not done.
    linkd.request(1, Bank::PAY, 6, &pay(7 + 1_024, "bob", 10));
    while sent(&linkd.next_send().await).type_id != Bank::PAY.type_id {}
    linkd.request(1, Bank::PAY, 7, &pay(7, "bob", 10));
    assert_eq!(linkd.sent().await.result(7), code::RESYNC_REQUIRED.result());
    linkd.request(1, Bank::PAY, 8, &pay(0, "bob", 10));
    assert_eq!(linkd.sent().await.result(8), code::DECODE_ERROR.result());
    linkd.request(1, Bank::BALANCE, 9, &pay(0, "bob", 0));
    assert_eq!(linkd.sent().await.message::<Balance>().coins, 21);
}

#[tokio::test]
async fn a_panic_undoes_everything_and_answers() {
    let (builder, _) = bank();
    let (_running, _gateway, mut linkd) = pair(builder, Config::default()).await;
    linkd.open(1, "alice", None);
    linkd.request(1, Bank::FALL, 1, &pay(0, "bob", 13));
    assert_eq!(linkd.sent().await.result(1), code::EXCEPTION.result());
    linkd.request(1, Bank::FALL, 2, &pay(0, "bob", 1));
    assert_eq!(linkd.sent().await.result(2), 0);
    linkd.request(1, Bank::BALANCE, 3, &pay(0, "bob", 0));
    assert_eq!(linkd.sent().await.message::<Balance>().coins, 1);
}

/// Holds: D5.
#[tokio::test]
async fn an_orderly_stop_writes_what_was_committed() {
    let dir = tempfile::tempdir().unwrap();
    let config = || {
        let mut config = Config::default();
        config.records.backend = linkstead::BackendKind::Sled;
        config.records.data_dir = dir.path().to_owned();
        config
    };
    for round in 1..4 {
        let gateway = Gateway::new("linkd-1", 3).await;
        let linkds = watch::channel(Arc::new(vec![gateway.listed(1)])).1;
        let node = NodeId::new("game-1").unwrap();
        let mut env = Env::new("test", node, Linkds::Fixed { epoch: Epoch(round), linkds });
        env.budgets = crate::stopping::PATIENT;
        let (builder, _) = bank();
        let running = builder.start(config(), env, Default::default()).await.unwrap();
        let mut linkd = gateway.accept().await;
        linkd.introduce().await;
        linkd.open(1, "alice", None);
        linkd.request(1, Bank::FALL, 1, &pay(0, "bob", 1));
        assert_eq!(linkd.sent().await.result(1), 0);
        linkd.request(1, Bank::BALANCE, 2, &pay(0, "bob", 0));
        assert_eq!(linkd.sent().await.message::<Balance>().coins, round as i64);
        let stopping = async { running.stop().await };
        let (stopped, _) = tokio::join!(stopping, linkd.call::<message::Disable>(link::DISABLE));
        stopped.unwrap();
    }
    assert_eq!(Purse::DURABILITY, Durability::Sync);
}
