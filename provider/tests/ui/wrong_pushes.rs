//! Levels of messages that are not pushed, or not of one mind.
use linkstead::module;

#[derive(Clone, PartialEq, prost::Message)]
pub struct Heard {}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Seen {}

pub struct Hall;
pub struct Room;
pub struct Attic;

#[module(id = 7, pushes(Heard), sheddable(Seen), critical(Seen))]
impl Hall {}

#[module(id = 8, sheddable(Heard))]
impl Room {}

#[module(id = 9, pushes(Heard, Heard), sheddable(Heard), critical(Heard))]
impl Attic {}

fn main() {}
