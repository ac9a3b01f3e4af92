//! What `#[handler]` can't read.
use linkstead::{Cx, Result, module};

#[derive(Clone, PartialEq, prost::Message)]
pub struct Word {}

pub struct Hall;

#[module(id = 7)]
impl Hall {
    #[handler(levle = "normal")]
    async fn say(&self, _cx: &Cx, _word: Word) -> Result<()> {
        Ok(())
    }

    #[handler(level = 3, route_by = "name", parallel = 2)]
    async fn hum(&self, _cx: &Cx, _word: Word) -> Result<()> {
        Ok(())
    }

    #[handler(level = "normal", level = "critical")]
    async fn sing(&self, _cx: &Cx, _word: Word) -> Result<()> {
        Ok(())
    }

    #[on_broken(late)]
    async fn gone(&self, _cx: &Cx) {}
}

fn main() {}
