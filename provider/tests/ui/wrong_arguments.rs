//! Words that mean nothing.
use linkstead::{Cx, Result, module};

#[derive(Clone, PartialEq, prost::Message)]
pub struct Word {}

pub struct Hall;

#[module(id = 11003, choice = "random")]
impl Hall {
    #[handler(level = "low", route_by = 0)]
    async fn say(&self, _cx: &Cx, _word: Word) -> Result<()> {
        Ok(())
    }
}

fn main() {}
