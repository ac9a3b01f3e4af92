//! The loop over channels: a session that does not read costs only itself.

use prost::Message;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use wire::directory::{self as msg, from_directory::Kind as From, to_directory::Kind as To};

use net::hello::Proof;
use node::listen::Caller;

use super::*;
use crate::config::ServiceManagerConfig;
use crate::server::{Answers, outbox, session};

struct World {
    inputs: mpsc::Sender<Input>,
    over: CancellationToken,
    sessions: u64,
}

impl World {
    fn new() -> Self {
        let settings = ServiceManagerConfig::default().settings("c", 100);
        let clock = Clock::start();
        let (inputs, receiver) = mpsc::channel(8);
        let over = CancellationToken::new();
        let (dials, _) = mpsc::channel(1);
        let hub = Hub::new(Directory::new(settings, clock.now()), clock, None, dials);
        tokio::spawn(hub.run(receiver, over.clone()));
        Self { inputs, over, sessions: 0 }
    }

    /// A session whose queue holds `outbox_max`, which has said hello.
    async fn join(
        &mut self,
        node: &str,
        outbox_max: usize,
    ) -> (mpsc::Sender<Result<msg::ToDirectory, tonic::Status>>, Answers) {
        let (to, from) = mpsc::channel(64);
        let (outbox, answers) = outbox(outbox_max, 1 << 20);
        self.sessions += 1;
        let addr = ([127, 0, 0, 1], 9).into();
        let caller = Caller { addr, proof: Proof::Loopback(addr) };
        let session = session(
            Generation(self.sessions),
            caller,
            ReceiverStream::new(from),
            outbox,
            self.inputs.clone(),
        );
        tokio::spawn(session);
        let (cluster, proto) = ("c".to_owned(), crate::directory::PROTO);
        let hello = msg::Hello { cluster, node: node.to_owned(), proto, ..Default::default() };
        say(&to, To::Hello(hello)).await;
        (to, answers)
    }
}

async fn say(to: &mpsc::Sender<Result<msg::ToDirectory, tonic::Status>>, kind: To) {
    to.send(Ok(msg::ToDirectory { kind: Some(kind) })).await.unwrap();
}

async fn heard(answers: &mut Answers) -> Option<From> {
    let said = answers.next().await?.unwrap();
    msg::FromDirectory::decode(said).unwrap().kind
}

#[tokio::test(start_paused = true)]
async fn a_session_that_does_not_read_is_closed_and_others_are_served() {
    let mut world = World::new();
    let (slow, mut unread) = world.join("slow", 4).await;
    let (quick, mut read) = world.join("quick", 64).await;
    assert!(matches!(heard(&mut read).await, Some(From::Welcome(_))));
    say(&slow, To::Subscribe(msg::Subscribe { name: "m/".to_owned(), loads: false })).await;
    for seq in 0..8 {
        let name = format!("m/{seq}");
        let service = msg::Service { name, ..Default::default() };
        say(&quick, To::Register(msg::Register { seq, services: vec![service] })).await;
        assert!(matches!(heard(&mut read).await, Some(From::Registered(registered)) if registered.code == 0));
    }
    // What was queued before is still read, then the stream ends; and the reading half is gone with it.
    let mut kept = 0;
    while heard(&mut unread).await.is_some() {
        kept += 1;
    }
    assert_eq!(kept, 4);
    slow.closed().await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_loop_ends_every_session() {
    let mut world = World::new();
    let (to, mut answers) = world.join("game-1", 64).await;
    assert!(matches!(heard(&mut answers).await, Some(From::Welcome(_))));
    world.over.cancel();
    assert!(heard(&mut answers).await.is_none());
    to.closed().await;
}

/// Under a paused clock the whole of H-11: three beats missed and a node is gone, from the loop's own ticks.
///
/// Holds: H-11.
#[tokio::test(start_paused = true)]
async fn the_loop_lets_leases_run_out() {
    let mut world = World::new();
    let (_to, mut answers) = world.join("game-1", 64).await;
    let begun = tokio::time::Instant::now();
    assert!(matches!(heard(&mut answers).await, Some(From::Welcome(_))));
    // At 15 s the directory, itself just started, is warm as well.
    let end = loop {
        match heard(&mut answers).await {
            Some(From::Warm(_)) => {}
            other => break other,
        }
    };
    assert!(matches!(end, Some(From::Refused(refused)) if refused.code == wire::code::TIMEOUT.number));
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(15) && took < Duration::from_secs(15) + 2 * TICK, "{took:?}");
}
