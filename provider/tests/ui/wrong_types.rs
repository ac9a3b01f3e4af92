//! A request that is no message.
use linkstead::{Cx, Result, module};

pub struct Plain;

pub struct Hall;

#[module(id = 7)]
impl Hall {
    #[handler]
    async fn say(&self, _cx: &Cx, _word: Plain) -> Result<()> {
        Ok(())
    }
}

fn main() {}
