//! What a node would leave behind when it is gone for good, and who goes on with it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use base::{Epoch, NodeId};
use tokio::sync::mpsc;
use wire::directory as msg;

use super::{Directory, Shared};

/// Questions that wait for one receiver; more are declined, and asked elsewhere.
const WAITING_MAX: usize = 64;

/// A node is gone for good. [`taken`](Self::taken) says that this one goes on with what it left behind; dropping it
/// declines, and another node is asked. Taking over may be asked twice of one thing, so it must be safe to repeat.
#[derive(Debug)]
pub struct Offline {
    pub id: String,
    pub node: NodeId,
    /// Its last start.
    pub epoch: Epoch,
    seq: u64,
    taken: bool,
    shared: Arc<Shared>,
}

impl Offline {
    pub fn taken(mut self) {
        self.taken = true;
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        let answer = msg::OfflineTaken { seq: self.seq, taken: self.taken };
        self.shared.heirs.lock().answers.push_back(answer);
        self.shared.changed.notify_one();
    }
}

/// Behind the handle's lock.
#[derive(Debug, Default)]
pub(super) struct Heirs {
    named: BTreeMap<String, mpsc::Sender<Offline>>,
    /// How often `named` changed.
    changes: u64,
    /// At most one for each question that was asked.
    answers: VecDeque<msg::OfflineTaken>,
}

impl Heirs {
    /// A new session was asked nothing yet.
    pub fn open(&mut self) {
        self.answers.clear();
    }

    /// The ids to name, if they were not named yet.
    pub fn names(&mut self, named: &mut u64) -> Option<msg::OfflineIds> {
        let before = self.named.len();
        self.named.retain(|_, heir| !heir.is_closed());
        self.changes += u64::from(self.named.len() != before);
        let fresh = self.changes > *named;
        *named = self.changes;
        fresh.then(|| msg::OfflineIds { ids: self.named.keys().cloned().collect() })
    }

    pub fn next_answer(&mut self) -> Option<msg::OfflineTaken> {
        self.answers.pop_front()
    }
}

impl Shared {
    /// A question of the directory's. Who can't be asked declines.
    pub(super) fn ask_heir(self: &Arc<Self>, question: msg::Offline) {
        let msg::Offline { seq, id, node, epoch } = question;
        let Ok(node) = NodeId::new(&node) else { return };
        let heir = self.heirs.lock().named.get(&id).cloned();
        let offline = Offline { id, node, epoch: Epoch(epoch), seq, taken: false, shared: self.clone() };
        if let Some(heir) = heir {
            // Given back when nobody takes it, and dropped here, which declines.
            drop(heir.try_send(offline));
        }
    }
}

impl Directory {
    /// Names something that this node runs, such as timers, and that others would have to go on with. When a node that
    /// named the same id is gone for longer than the directory's `offline_linger`, one of the others hears so here and
    /// says whether it takes over. Dropping the receiver takes the name back; naming it again replaces the receiver.
    pub fn name_offline(&self, id: &str) -> mpsc::Receiver<Offline> {
        let (heir, asked) = mpsc::channel(WAITING_MAX);
        let mut heirs = self.shared.heirs.lock();
        heirs.named.insert(id.to_owned(), heir);
        heirs.changes += 1;
        drop(heirs);
        self.shared.changed.notify_one();
        asked
    }
}
