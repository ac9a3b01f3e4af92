//! The modules of the tests: a static one that does everything, and a dynamic one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use linkstead::{Account, Builder, Cx, Error, LinkRef, Result, Role, module};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

#[derive(Clone, PartialEq, prost::Message)]
pub struct Word {
    #[prost(string, tag = "1")]
    pub text: String,
    #[prost(uint64, tag = "2")]
    pub number: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Heard {
    #[prost(string, tag = "1")]
    pub text: String,
}

pub fn word(text: &str) -> Word {
    Word { text: text.to_owned(), number: 0 }
}

/// What a test sees and steers.
#[derive(Default)]
pub struct Stage {
    pub log: Mutex<Vec<String>>,
    /// Handlers of `hold` go on one by one.
    pub gate: Gate,
    pub made: AtomicU32,
}

pub struct Gate(pub Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl Stage {
    fn note(&self, line: String) {
        self.log.lock().push(line);
    }

    pub fn lines(&self) -> Vec<String> {
        self.log.lock().clone()
    }
}

pub struct Hall {
    pub stage: Arc<Stage>,
}

#[module(id = 7, choice = "hash_account", pushes(Heard), sheddable(Heard))]
impl Hall {
    /// Ends in its first poll.
    #[handler(route_by = 1)]
    async fn echo(&self, cx: &Cx, word: Word) -> Result<Word> {
        self.stage.note(format!("echo {} {}", cx.account(), word.text));
        Ok(word)
    }

    /// Waits for the test.
    #[handler(level = "critical_plus")]
    async fn hold(&self, _cx: &Cx, word: Word) -> Result<Word> {
        self.stage.note(format!("begin {}", word.text));
        self.stage.gate.0.acquire().await.map_err(|_| Error::code(9, "closed"))?.forget();
        self.stage.note(format!("end {}", word.text));
        Ok(word)
    }

    #[handler(parallel)]
    async fn overlap(&self, _cx: &Cx, word: Word) -> Result<Word> {
        self.stage.note(format!("overlap {}", word.text));
        Ok(word)
    }

    #[handler(notify)]
    async fn hint(&self, _cx: &Cx, word: Word) -> Result<()> {
        self.stage.note(format!("hint {}", word.text));
        Err(Error::code(1, "nobody is told"))
    }

    #[handler]
    async fn fail(&self, _cx: &Cx, word: Word) -> Result<()> {
        Err(Error::code(word.number as i32, word.text))
    }

    #[handler]
    async fn panic(&self, _cx: &Cx, word: Word) -> Result<()> {
        assert!(word.text.is_empty(), "{}", word.text);
        Ok(())
    }

    /// Everything that leaves, in the order it is said.
    #[handler]
    async fn effects(&self, cx: &Cx, word: Word) -> Result<Word> {
        cx.push(&Heard { text: "one".into() })?;
        cx.set_role(Some(Role(word.number)))?;
        let to = Account::new(&word.text).ok().and_then(|account| cx.online().account(&account));
        if let Some(to) = to {
            cx.push_to(&to, &Heard { text: "two".into() })?;
        }
        cx.broadcast(&Heard { text: "three".into() });
        cx.broadcast_to(linkstead::Audience::SameVersion, &Heard { text: "four".into() });
        Ok(word)
    }

    #[handler]
    async fn large(&self, _cx: &Cx, word: Word) -> Result<Word> {
        Ok(Word { text: "x".repeat(word.number as usize), number: 0 })
    }

    #[handler]
    async fn leave(&self, cx: &Cx, word: Word) -> Result<()> {
        cx.kick(word.number as i32, &word.text).await
    }

    #[handler]
    async fn enter(&self, cx: &Cx, _word: Word) -> Result<()> {
        cx.bind::<Room>().await
    }

    #[on_broken]
    async fn gone(&self, cx: &Cx) {
        self.stage.note(format!("gone {} {:?}", cx.account(), cx.end()));
    }
}

pub struct Room;

#[module(id = 8, dynamic)]
impl Room {
    #[handler(level = "sheddable")]
    async fn say(&self, cx: &Cx, word: Word) -> Result<()> {
        let here: Vec<LinkRef> = cx.online().links();
        cx.push_all(&here, &Heard { text: word.text });
        Ok(())
    }
}

/// A provider of both.
pub fn game() -> (Builder, Arc<Stage>) {
    let stage = Arc::new(Stage::default());
    let shown = stage.clone();
    let make = move |_: &linkstead::Setup| {
        stage.made.fetch_add(1, Ordering::SeqCst);
        Ok(Hall { stage })
    };
    (linkstead::provider("game").module(make).module(|_| Ok(Room)), shown)
}
