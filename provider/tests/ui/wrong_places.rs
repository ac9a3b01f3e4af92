//! Attributes where they mean nothing.
use linkstead::{Cx, Result, handler, module, on_broken};

#[derive(Clone, PartialEq, prost::Message)]
pub struct Word {}

pub struct Hall;
pub struct Room;

#[handler]
async fn alone(_cx: &Cx, _word: Word) -> Result<()> {
    Ok(())
}

impl Room {
    #[on_broken]
    async fn gone(&self, _cx: &Cx) {}
}

#[module(id = 7)]
impl Hall {
    #[handler]
    const SIZE: u32 = 3;

    #[handler]
    #[handler(level = "critical")]
    async fn say(&self, _cx: &Cx, _word: Word) -> Result<()> {
        Ok(())
    }

    #[cfg(unix)]
    #[handler]
    async fn hum(&self, _cx: &Cx, _word: Word) -> Result<()> {
        Ok(())
    }

    #[on_broken]
    async fn left(&self, _cx: &Cx) {}

    #[on_broken]
    async fn went(&self, _cx: &Cx) {}
}

fn main() {}
