//! Results that no client can be told, and messages that no client can send.
use linkstead::{Cx, Result, module};

#[derive(Clone, PartialEq, prost::Message)]
pub struct Word {}

pub struct Plain;
pub struct Hall;
pub struct Attic;
pub struct Room {
    inside: std::rc::Rc<u32>,
}

#[module(id = 7)]
impl Hall {
    #[handler]
    async fn say(&self, _cx: &Cx, _word: Word) -> Result<(), String> {
        Ok(())
    }
}

#[module(id = 6)]
impl Attic {
    #[handler]
    async fn hum(&self, _cx: &Cx, _word: Word) -> Result<Plain> {
        Ok(Plain)
    }
}

#[module(id = 8)]
impl Room {
    #[handler]
    async fn count(&self, _cx: &Cx, _word: Word) -> Result<()> {
        let _ = &self.inside;
        Ok(())
    }
}

#[module(id = 9, pushes(Plain))]
impl Plain {}

fn main() {}
