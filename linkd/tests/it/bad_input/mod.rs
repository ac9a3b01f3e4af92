//! What strangers send: each gets a code or a close with a code, and others are untouched. What clients send is tried
//! on every transport.

mod floods;
mod frames;
mod order;
mod providers;
mod readers;
mod storms;

use linkd::worker::Transport;
use wire::code::Code;

use crate::client::Client;
use crate::world::{World, request};

/// What the last words to who sends this are.
async fn closed(world: &World, by: Transport, bytes: &[u8]) -> Option<i64> {
    let mut client = world.connect_by(by).await;
    client.send(bytes).await;
    client.closed_with().await
}

fn number(code: &Code) -> Option<i64> {
    Some(code.number.into())
}

/// A neighbour that works before, during and after.
async fn still_served(neighbour: &mut Client, session: i64) {
    neighbour.send(&request(session, b"still here")).await;
    let got = neighbour.frame().await.unwrap();
    assert_eq!((got.head.session, got.head.code, &got.body[..]), (session, 0, &b"still here"[..]));
}

/// A client frame's header that announces this many bytes.
fn header(module: i32, size: u32) -> Vec<u8> {
    let mut header = module.to_le_bytes().to_vec();
    header.extend_from_slice(&[0; 4]);
    header.extend_from_slice(&size.to_le_bytes());
    header
}
