//! What can't be a module.
use linkstead::module;

pub trait Talk {}
pub struct Hall;
pub struct Room<T>(T);

#[module(id = 7)]
pub struct Cellar;

#[module(id = 7)]
impl Talk for Hall {}

#[module(id = 8)]
impl<T> Room<T> {}

#[module(id = 9)]
impl [Hall] {}

fn main() {}
