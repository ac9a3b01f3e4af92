//! A directory with a store, killed at any moment: nothing that it answered is forgotten.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use base::{Epoch, NodeId};
use node::directory::{Claim, ClaimError, Directory, IdsError};
use tokio_util::sync::CancellationToken;

use crate::process::{Process, free_addr, linkstead};

const PATIENCE: Duration = Duration::from_secs(20);
const ROUNDS: u64 = 3;

fn start(addr: &str, store: &str, dir: &Path) -> Process {
    let sets = [
        format!("service_manager.listen={addr}"),
        format!("service_manager.store={store}"),
        format!("service_manager.data_dir={}", dir.display()),
        "node.ops=127.0.0.1:0".to_owned(),
        "node.insecure=true".to_owned(),
    ];
    let mut args = vec!["service-manager", "--profile", "dev"];
    sets.iter().for_each(|set| args.extend(["--set", set]));
    let mut process = Process::start(&args);
    process.wait_for("service-manager ready");
    process
}

struct Node {
    directory: Directory,
    cancel: CancellationToken,
    name: String,
}

impl Node {
    fn join(addr: &str, name: &str) -> Self {
        let (cancel, node) = (CancellationToken::new(), NodeId::new(name).unwrap());
        let seed = base::hash::bytes(name.as_bytes());
        let join = node::Join {
            cluster: "linkstead".into(),
            node,
            role: "provider".into(),
            host: "here".into(),
            directory: vec![addr.to_string()],
            ops_address: String::new(),
            reconnect: net::dial::Backoff::new(Duration::from_millis(10), Duration::from_millis(100), seed),
            security: net::Security::Insecure,
        };
        Self { directory: node::directory::join(join, cancel.clone()), cancel, name: name.to_owned() }
    }

    async fn claim(&self, key: String) -> Result<(), ClaimError> {
        let ttl = Duration::from_secs(3_600);
        let claim = Claim { key, value: self.name.clone().into_bytes(), ttl, outlives_node: true };
        self.directory.claim(claim, PATIENCE).await
    }

    async fn ids(&self) -> Result<Range<u64>, IdsError> {
        self.directory.allocate_ids("guild", 3, PATIENCE).await
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// What a directory has answered.
#[derive(Default)]
struct Answered {
    claims: Vec<String>,
    ids: Vec<Range<u64>>,
    epochs: Vec<Epoch>,
}

/// Asks until the directory dies, which it does after a number of answers.
async fn ask(node: &Node, round: u64, directory: &mut Process, answered: &mut Answered) {
    answered.epochs.push(node.directory.epoch().await.unwrap());
    for n in 0.. {
        if n == 20 + 17 * round {
            directory.signal("KILL");
        }
        let key = format!("ticket/{round}/{n}");
        match node.claim(key.clone()).await {
            Ok(()) => answered.claims.push(key),
            Err(ClaimError::Unknown | ClaimError::NotNow) => return,
            Err(error) => panic!("{error}"),
        }
        match node.ids().await {
            Ok(ids) => answered.ids.push(ids),
            Err(IdsError::Unknown | IdsError::NotNow) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

fn check_ids(ids: &[Range<u64>]) {
    let mut sorted = ids.to_vec();
    sorted.sort_by_key(|range| range.start);
    assert!(sorted.windows(2).all(|two| two[0].end <= two[1].start), "an id was given twice: {ids:?}");
}

async fn remembers(store: &str) {
    let (dir, addr) = (tempfile::tempdir().unwrap(), free_addr());
    let data = dir.path().join("directory");
    let mut answered = Answered::default();
    for round in 0..ROUNDS {
        let mut directory = start(&addr, store, &data);
        let node = Node::join(&addr, &format!("asker-{round}"));
        ask(&node, round, &mut directory, &mut answered).await;
        // Gone before the next life: a node that stays would say its claims again.
        drop(node);
        directory.end();
    }
    assert!(answered.claims.len() as u64 >= ROUNDS * 20);
    let mut directory = start(&addr, store, &data);
    let other = Node::join(&addr, "other");
    answered.epochs.push(other.directory.epoch().await.unwrap());
    assert!(answered.epochs.is_sorted_by(|a, b| a < b), "{:?}", answered.epochs);
    for key in &answered.claims {
        assert_eq!(other.claim(key.clone()).await, Err(ClaimError::Taken), "{key}");
    }
    answered.ids.push(other.ids().await.unwrap());
    check_ids(&answered.ids);
    let busy = linkstead(&["store", "verify", data.to_str().unwrap()]).output().unwrap();
    assert_eq!(busy.status.code(), Some(2), "{busy:?}");
    directory.signal("TERM");
    assert!(directory.end().success());
}

/// Holds: H-09, Z-24.
#[tokio::test]
async fn a_directory_on_redb_forgets_nothing_that_it_answered() {
    remembers("redb").await;
}

/// Holds: H-09, Z-24.
#[tokio::test]
async fn a_directory_on_sled_forgets_nothing_that_it_answered() {
    remembers("sled").await;
}

/// A cluster moves from one store to another, and goes on where it was.
#[tokio::test]
async fn a_directory_moves_to_another_store() {
    let (dir, addr) = (tempfile::tempdir().unwrap(), free_addr());
    let (old, new, file) = (dir.path().join("old"), dir.path().join("new"), dir.path().join("backup"));
    let mut directory = start(&addr, "sled", &old);
    let node = Node::join(&addr, "asker");
    node.directory.epoch().await.unwrap();
    node.claim("ticket/1".to_owned()).await.unwrap();
    let first = node.ids().await.unwrap();
    directory.signal("TERM");
    assert!(directory.end().success());
    drop(node);
    let run = |args: &[&str]| {
        let output = linkstead(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let [old, new, file] = [&old, &new, &file].map(|path| path.to_str().unwrap());
    assert!(run(&["store", "verify", old]).starts_with("good: store "));
    let exported = run(&["store", "export", old, file, "--json"]);
    assert_eq!(run(&["store", "verify", file, "--json"]), exported);
    assert!(run(&["store", "import", file, new, "--kind", "redb"]).starts_with("imported: store "));
    let mut directory = start(&addr, "redb", new.as_ref());
    let other = Node::join(&addr, "other");
    other.directory.epoch().await.unwrap();
    assert_eq!(other.claim("ticket/1".to_owned()).await, Err(ClaimError::Taken));
    check_ids(&[first, other.ids().await.unwrap()]);
    directory.signal("TERM");
    assert!(directory.end().success());
}

/// Holds: BI-111.
#[test]
fn a_store_that_does_not_fit_fails_the_start_and_names_the_key() {
    let dir = tempfile::tempdir().unwrap();
    let fails = |sets: &[&str]| {
        let mut args = vec!["service-manager", "--set", "node.insecure=true"];
        sets.iter().for_each(|set| args.extend(["--set", set]));
        let output = linkstead(&args).output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap()
    };
    let missing = fails(&["service_manager.store=sled"]);
    assert!(missing.contains("service_manager.data_dir"), "{missing}");
    let unknown = fails(&["service_manager.store=rocksdb"]);
    assert!(unknown.contains("service_manager.store") && unknown.contains("redb"), "{unknown}");
    store::open(dir.path(), store::Kind::Sled, &store::Options::default()).unwrap();
    let data_dir = format!("service_manager.data_dir={}", dir.path().display());
    let other = fails(&[
        "service_manager.store=redb",
        &data_dir,
        "service_manager.listen=127.0.0.1:0",
        "node.ops=127.0.0.1:0",
    ]);
    assert!(other.contains("holds sled, the configuration says redb"), "{other}");
}
