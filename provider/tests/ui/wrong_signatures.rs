//! Handlers that can't be called.
use linkstead::{Cx, Result, module};

#[derive(Clone, PartialEq, prost::Message)]
pub struct Word {}

pub struct Hall;

#[module(id = 7)]
impl Hall {
    #[handler]
    fn say(&mut self, _cx: &Cx, _word: &Word) -> u32 {
        0
    }

    #[handler(notify)]
    async fn hum(&self, _word: Word) -> Result<Word> {
        Ok(Word {})
    }

    #[on_broken]
    async fn gone(&self, _cx: &Cx, _why: u32) {}
}

fn main() {}
