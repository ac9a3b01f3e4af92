//! Mistakes of every kind in one block: all of them come out together.
use linkstead::{Cx, Error, Result, module};

#[derive(Clone, PartialEq, prost::Message)]
pub struct Word {}

pub struct Hall;

#[module(id = 0, choise = "request", pushes(Word, Word))]
impl Hall {
    #[handler(level = "urgent")]
    fn say(&self, _cx: &Cx, _word: Word) -> Result<()> {
        Ok(())
    }

    #[handler(rout_by = 1)]
    async fn hum<T>(&self, _cx: &mut Cx, _one: Word, _two: Word) {}

    #[handler]
    async unsafe fn sing(self, _cx: &Cx, _word: impl Clone) -> Result<&'static Word> {
        Err(Error::code(1, "hoarse"))
    }

    #[handler]
    async fn nap(_cx: &Cx) -> Word {
        Word {}
    }

    #[handler]
    async fn Nap(&self) -> Result<Word> {
        Ok(Word {})
    }
}

fn main() {}
