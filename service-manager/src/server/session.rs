//! One session's way to the core: a thin tonic adapter, and the reading half over message types. It decides nothing but
//! that a node speaks for itself only, which the connection knows and the core does not.

use base::{Generation, Generations, NodeId};
use net::hello::Proof;
use node::directory::NodeInfo;
use node::listen::Caller;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};
use wire::directory::{self as msg, from_directory, to_directory};

use super::outbox::{Answers, Outbox, encode, outbox};
use crate::directory::Refusal;

/// What the core's loop receives.
#[derive(Debug)]
pub enum Input {
    Opened {
        session: Generation,
        /// It comes from this machine.
        loopback: bool,
        outbox: Outbox,
        /// Cancelled when the core is done with the session.
        over: CancellationToken,
    },
    Said {
        session: Generation,
        message: to_directory::Kind,
    },
    Closed {
        session: Generation,
    },
    /// An address was dialled; `failed`: why it could not be.
    Dialled {
        node: NodeId,
        name: String,
        address: String,
        failed: Option<String>,
    },
    /// An operator asks who is here.
    Nodes {
        reply: oneshot::Sender<Vec<NodeInfo>>,
    },
}

/// Where connections become sessions of the core.
#[derive(Debug)]
pub(super) struct Sessions {
    inputs: mpsc::Sender<Input>,
    outbox_max: usize,
    outbox_bytes_max: usize,
    generations: Mutex<Generations>,
}

impl Sessions {
    pub fn new(inputs: mpsc::Sender<Input>, outbox_max: usize, outbox_bytes_max: usize) -> Self {
        Self { inputs, outbox_max, outbox_bytes_max, generations: Mutex::default() }
    }

    /// Begins a session; what is said to it comes out of the answer.
    pub fn begin(&self, request: Request<Streaming<msg::ToDirectory>>) -> Result<Response<Answers>, Status> {
        let (outbox, answers) = outbox(self.outbox_max, self.outbox_bytes_max);
        let caller = request.extensions().get::<Caller>().cloned();
        let Some(caller) = caller else {
            return Err(Status::internal("a connection without an address; this is a fault of ours"));
        };
        let generation = self.generations.lock().begin();
        let from = request.into_inner();
        tokio::spawn(session(generation, caller, from, outbox, self.inputs.clone()));
        Ok(Response::new(answers))
    }
}

/// Hands what a node says to the core, until either is done. `outbox` is where the core answers. A hello that says
/// something else than the caller's proof is refused here.
pub async fn session<S, E>(
    generation: Generation,
    caller: Caller,
    mut from: S,
    outbox: Outbox,
    inputs: mpsc::Sender<Input>,
) where
    S: Stream<Item = Result<msg::ToDirectory, E>> + Unpin,
    E: Into<Status>,
{
    let over = CancellationToken::new();
    let answers = outbox.clone();
    let loopback = caller.is_loopback();
    let opened = Input::Opened { session: generation, loopback, outbox, over: over.clone() };
    if inputs.send(opened).await.is_err() {
        return;
    }
    loop {
        let message = tokio::select! {
            biased;
            () = over.cancelled() => return,
            message = from.next() => message,
        };
        let said = match message {
            Some(Ok(msg::ToDirectory { kind: Some(message) })) => {
                if let Err(refusal) = judge(&caller.proof, &message) {
                    tracing::warn!(code = refusal.code.name, why = %refusal.text, "a node was refused");
                    let refused = from_directory::Kind::Refused(refusal.message());
                    // A peer whose queue is full does not listen either way.
                    let _ = answers.push(encode(refused));
                    break;
                }
                Input::Said { session: generation, message }
            }
            // A newer node may say things we don't know yet.
            Some(Ok(msg::ToDirectory { kind: None })) => continue,
            // What can't be read ends the session, and the peer is told why if it is still there.
            Some(Err(error)) => {
                answers.fail(error.into());
                break;
            }
            None => break,
        };
        if inputs.send(said).await.is_err() {
            return;
        }
    }
    // Without a loop there is nobody left to tell.
    let _ = inputs.send(Input::Closed { session: generation }).await;
}

/// A node says who it is once, in its hello, and everything it says later is taken as that node's.
fn judge(proof: &Proof, message: &to_directory::Kind) -> Result<(), Refusal> {
    let to_directory::Kind::Hello(hello) = message else { return Ok(()) };
    proof.judge(&hello.cluster, &hello.role, &hello.node).map_err(|(code, text)| Refusal::new(*code, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a newer node says and we don't know is passed over, and the session goes on.
    ///
    /// Holds: Q72.
    #[tokio::test]
    async fn what_is_unknown_is_passed_over() {
        let known = to_directory::Kind::Heartbeat(msg::Heartbeat { seq: 9 });
        let said = [None, Some(known.clone()), None].map(|kind| Ok::<_, Status>(msg::ToDirectory { kind }));
        let (outbox, _answers) = outbox(1, 1);
        let (inputs, mut heard) = mpsc::channel(8);
        let caller = Caller { addr: ([127, 0, 0, 1], 9).into(), proof: Proof::Simulated };
        session(Generation(1), caller, tokio_stream::iter(said), outbox, inputs).await;
        assert!(matches!(heard.recv().await, Some(Input::Opened { .. })));
        let Some(Input::Said { message, .. }) = heard.recv().await else { panic!("it was not heard") };
        assert_eq!(message, known);
        assert!(matches!(heard.recv().await, Some(Input::Closed { .. })));
        assert!(heard.recv().await.is_none());
    }
}
