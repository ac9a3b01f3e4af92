//! Numbers that are given once in the whole cluster, in blocks.

use std::ops::Range;
use std::time::Duration;

use base::Retry;
use wire::code;
use wire::directory as msg;

use super::Directory;
use super::asked::Asked;

/// Why no block was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdsError {
    /// No session with a directory, or too many questions wait.
    #[error("no directory can give ids now; try again in a moment")]
    NotNow,
    /// A block may have been given and is lost then, which costs nothing but its numbers.
    #[error("the directory did not answer in time; try again")]
    Unknown,
    /// The question itself is wrong, or the directory has no store.
    #[error("the directory gives no ids: {name}: {text}")]
    Refused { name: &'static str, text: String },
}

impl IdsError {
    pub fn retry(&self) -> Retry {
        match self {
            Self::NotNow => code::BUSY.retry,
            Self::Unknown => Retry::Now,
            Self::Refused { .. } => Retry::Never,
        }
    }
}

#[derive(Debug)]
pub(super) struct Wanted {
    name: String,
    count: u32,
}

pub(super) type Ids = Asked<Wanted, Result<u64, IdsError>>;

impl Ids {
    pub fn next_message(&mut self) -> Option<msg::AllocateIds> {
        let (seq, wanted) = self.next()?;
        Some(msg::AllocateIds { seq, name: wanted.name.clone(), count: wanted.count })
    }

    pub fn take(&mut self, answer: msg::AllocatedIds) {
        let Some((_, sender)) = self.answered(answer.seq) else { return };
        let given = match answer.code {
            0 => Ok(answer.first),
            number => {
                let name = wire::Code::find(number).map_or("UNKNOWN", |code| code.name);
                Err(IdsError::Refused { name, text: answer.text })
            }
        };
        // Who asked may have given up; the block is lost then.
        let _ = sender.send(given);
    }
}

impl Directory {
    /// `count` numbers, one after another, that nobody was ever given under `name`: from 1 on, with gaps. For things
    /// that have no table of their own. Waits for the directory's answer at most `patience`. `count` is 1 to 1,000,000.
    ///
    /// Errors: [`IdsError::Refused`] also when the directory keeps nothing on a disk (`service_manager.store`).
    pub async fn allocate_ids(
        &self,
        name: &str,
        count: u32,
        patience: Duration,
    ) -> Result<Range<u64>, IdsError> {
        let asked = self.shared.ids.lock().ask(Wanted { name: name.to_owned(), count });
        let answer = asked.map_err(|_| IdsError::NotNow)?;
        self.shared.changed.notify_one();
        let first = match tokio::time::timeout(patience, answer).await {
            Ok(Ok(first)) => first?,
            Ok(Err(_)) | Err(_) => return Err(IdsError::Unknown),
        };
        Ok(first..first + u64::from(count))
    }
}
