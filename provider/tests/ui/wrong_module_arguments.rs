//! What `#[module]` can't read.
use linkstead::module;

pub struct Hall;
pub struct Room;
pub struct Attic;
pub struct Cellar;

#[module]
impl Hall {}

#[module(id = "seven", chioce = "request", dynamic = "yes")]
impl Room {}

#[module(id = 3_000_000_000, choice = request)]
impl Attic {}

#[module(7)]
impl Cellar {}

fn main() {}
