//! Where the bazaar of `up` keeps its records: one storage for all its providers, which an audit reads before they begin
//! and when they have ended.

use std::sync::Arc;

use anyhow::Context;
use bazaar::audit::{Audit, audit};
use tables::Backend;
use tables::backend::{self, LocalKind};

use super::{Options, Say};
use crate::Failed;
use crate::game::Game;

/// An open storage.
pub struct Books {
    storage: Arc<dyn Backend>,
}

impl Books {
    /// As the options say; `None`: the game keeps nothing.
    pub async fn open(options: &Options, say: Say) -> Result<Option<Self>, Failed> {
        let storage = match (options.game, &options.data_dir) {
            (Game::Tavern, None) => return Ok(None),
            (Game::Tavern, Some(_)) => {
                return Err(Failed::Usage("--data-dir: the tavern keeps nothing; see --game".to_owned()));
            }
            (Game::Bazaar, None) => backend::open(LocalKind::Memory, "".as_ref()),
            (Game::Bazaar, Some(dir)) => backend::open(LocalKind::Sled, dir),
        };
        let storage = storage.map_err(|error| Failed::Usage(format!("--data-dir: {error}")))?;
        let books = Self { storage };
        if let Some(dir) = &options.data_dir {
            say.line(&format!("records           {}: {}", dir.display(), books.audit().await?));
        }
        Ok(Some(books))
    }

    /// For providers, which share it.
    pub fn storage(&self) -> Arc<dyn Backend> {
        self.storage.clone()
    }

    /// Counts what there is. Nobody may be changing it.
    pub async fn audit(&self) -> Result<Audit, Failed> {
        Ok(audit(&*self.storage).await.context("the audit can't read the records")?)
    }
}
