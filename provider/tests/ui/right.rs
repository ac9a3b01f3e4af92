//! Everything a module may say.
use linkstead::{Cx, Notify, Push, Result, Rpc, module};

#[derive(Clone, PartialEq, prost::Message)]
pub struct Word {}
#[derive(Clone, PartialEq, prost::Message)]
pub struct Heard {}

pub struct Hall;

#[module(id = -7, name = "Great.Hall", choice = "hash_role", dynamic, pushes(Heard), sheddable(Heard))]
impl Hall {
    pub const SEATS: u32 = 3;

    #[handler(level = "critical", route_by = 2, parallel, id = -5)]
    pub async fn say(&self, _cx: &Cx, word: Word) -> Result<Word> {
        self.not_a_handler();
        Ok(word)
    }

    #[handler(notify)]
    async fn r#move(&self, _: &Cx, _: Word) -> linkstead::Result<()> {
        Ok(())
    }

    #[on_broken]
    async fn gone(&self, _cx: &Cx) {}

    fn not_a_handler(&self) {}
}

fn main() {
    let say: Rpc<Word, Word> = Hall::SAY;
    let step: Notify<Word> = Hall::MOVE;
    assert_eq!((say.type_id.module().0, say.type_id.protocol().0, say.name), (-7, -5, "Great.Hall.say"));
    assert_eq!((step.name, Heard::NAME), ("Great.Hall.move", "Great.Hall.Heard"));
}
