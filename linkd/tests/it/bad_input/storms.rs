//! Very many who come and go.

use linkd::worker::Transport;
use tokio::io::AsyncWriteExt;

use super::still_served;
use crate::world::{World, settings};

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Thousands connect and abort, at every stage there is: afterwards nothing of them is left, neither a file descriptor
/// nor a place at the door.
///
/// Holds: BI-008, BI-011, D96.
#[tokio::test]
async fn whoever_comes_and_goes_leaves_nothing_behind() {
    let world = World::start(settings());
    let _provider = world.provider("game-1", true).await;
    let mut neighbour = world.login("neighbour").await;
    still_served(&mut neighbour, 1).await;
    let (files, inside) = (open_files(), world.door.connections());
    for n in 0..2_000 {
        let mut stream = world.knock(Transport::ALL[n % 2]).await;
        match n % 5 {
            0 => {}
            1 => stream.write_all(b"GET / HT").await.unwrap(),
            2 => stream.write_all(&[7, 0, 0]).await.unwrap(),
            3 => drop(world.connect_by(Transport::ALL[n % 2]).await),
            _ => drop(world.login_by(Transport::ALL[n % 2], "guest").await),
        }
    }
    still_served(&mut neighbour, 2).await;
    world.until(|world| world.door.connections() == inside).await;
    world.until(|_| open_files() <= files).await;
    let totals = world.stop().await;
    assert_eq!((totals.sessions, totals.accepted), (0, totals.closed));
}
