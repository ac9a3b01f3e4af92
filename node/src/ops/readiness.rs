//! Why a node is not ready: named conditions, each met or with its reason. Beside them warnings, which an operator should
//! see and which keep nobody out.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

/// The conditions of a node. Clones share them.
#[derive(Debug, Clone)]
pub struct Readiness {
    unmet: Arc<Mutex<BTreeMap<&'static str, String>>>,
    warnings: Arc<Mutex<BTreeMap<&'static str, String>>>,
    ready: Arc<watch::Sender<bool>>,
}

impl Readiness {
    /// All `conditions` are unmet until [`met`](Self::met) says otherwise.
    pub fn new(conditions: &[&'static str]) -> Self {
        let unmet: BTreeMap<&'static str, String> =
            conditions.iter().map(|&name| (name, "not yet".to_owned())).collect();
        let ready = Arc::new(watch::Sender::new(unmet.is_empty()));
        Self { unmet: Arc::new(Mutex::new(unmet)), warnings: Arc::default(), ready }
    }

    pub fn met(&self, name: &'static str) {
        self.change(|unmet| unmet.remove(name).is_some());
    }

    pub fn unmet(&self, name: &'static str, why: impl Into<String>) {
        let why = why.into();
        self.change(|unmet| unmet.insert(name, why.clone()).as_ref() != Some(&why));
    }

    /// Shows a warning of this name until it is taken back.
    pub fn warn(&self, name: &'static str, why: impl Into<String>) {
        self.warnings.lock().insert(name, why.into());
    }

    /// Takes a warning back.
    pub fn calm(&self, name: &'static str) {
        self.warnings.lock().remove(name);
    }

    pub fn warnings(&self) -> BTreeMap<&'static str, String> {
        self.warnings.lock().clone()
    }

    /// Empty when the node is ready.
    pub fn reasons(&self) -> BTreeMap<&'static str, String> {
        self.unmet.lock().clone()
    }

    /// Waits until every condition is met.
    pub async fn ready(&self) {
        // Ends only with the sender, which lives in self.
        let _ = self.ready.subscribe().wait_for(|ready| *ready).await;
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<&'static str, String>) -> bool) {
        let mut unmet = self.unmet.lock();
        if change(&mut unmet) {
            let ready = unmet.is_empty();
            self.ready.send_if_modified(|was| std::mem::replace(was, ready) != ready);
        }
    }
}
