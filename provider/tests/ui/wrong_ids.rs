//! Two protocols of one number.
use linkstead::{Cx, Result, module};

#[derive(Clone, PartialEq, prost::Message)]
pub struct Word {}

pub struct Hall;

#[module(id = 7)]
impl Hall {
    #[handler]
    async fn say(&self, _cx: &Cx, _word: Word) -> Result<()> {
        Ok(())
    }

    // The hash of Hall.say, so only the compiler can know.
    #[handler(id = -1175175952)]
    async fn shout(&self, _cx: &Cx, _word: Word) -> Result<()> {
        Ok(())
    }
}

fn main() {}
