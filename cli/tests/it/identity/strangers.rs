//! Those at the provider port who have not said who they are, or what makes sense.

use std::time::{Duration, Instant};

use net::hello::{self, HelloError, Ours, Role};
use net::{Tcp, preface};
use tokio::io::AsyncReadExt;

use super::world::{SOON, World, id, ours, shown, within};

/// A hello must repeat the preface's worker, and ask for one that exists; the answer says why not.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_does_not_exist_is_answered() {
    let world = World::start().await;
    let security = world.authority.security(Role::Provider, &id("game-9")).unwrap();
    let offer = async |wanted: u32, said: u32| {
        let mut stream = Tcp::dial(&world.linkd.provider_addr.to_string()).await.unwrap();
        preface::send(&mut stream, wanted).await.unwrap();
        let (mut stream, proof) = security.dial(stream, "localhost:1", SOON).await.unwrap();
        let ours = Ours { worker: said, ..ours((Role::Provider, "game-9")) };
        within(hello::offer(&mut stream, &proof, &ours, &[Role::Linkd])).await
    };
    assert_eq!(offer(1, 1).await.unwrap().node, id("linkd-1"));
    for (wanted, said, text) in [(7, 7, "0 to 1"), (1, 0, "worker 1"), (u32::MAX, u32::MAX, "0 to 1")] {
        match offer(wanted, said).await {
            Err(HelloError::RefusedByPeer(refusal)) => {
                assert_eq!(refusal.code, wire::code::BAD_HELLO.number);
                assert!(refusal.text.contains(text), "{}", refusal.text);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A thousand strangers of one address who say nothing take no place of those who belong.
#[tokio::test(flavor = "multi_thread")]
async fn silent_strangers_keep_no_provider_out() {
    let world = World::start().await;
    let addr = world.linkd.provider_addr.to_string();
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(Tcp::dial(&addr).await.unwrap());
    }
    // The first 256 hold their places for 3 s and then lose them; the rest were closed at once.
    let began = Instant::now();
    let mut closed = 0;
    for mut stream in silent {
        closed += usize::from(matches!(within(stream.read(&mut [0])).await, Ok(0) | Err(_)));
    }
    assert_eq!(closed, 300);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    let security = world.authority.security(Role::Provider, &id("game-9")).unwrap();
    shown(&world, &security).await;
    assert!(world.game.is_ready());
}
