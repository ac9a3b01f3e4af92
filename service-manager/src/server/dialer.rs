//! Dials what nodes offer, to see whether somebody is there. Nothing is said on such a connection.

use base::NodeId;
use net::NetIo;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::session::Input;

/// One address to dial.
#[derive(Debug)]
pub(super) struct Dial {
    pub node: NodeId,
    pub name: String,
    pub address: String,
}

/// Dials until the hub is gone. The core bounds how many are dialled at once.
pub(super) async fn run<N: NetIo>(net: N, mut dials: mpsc::Receiver<Dial>, inputs: mpsc::Sender<Input>) {
    let mut dialling = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(ended) = dialling.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "dialling back panicked");
                }
            }
            dial = dials.recv() => match dial {
                Some(dial) => drop(dialling.spawn(try_one(net.clone(), dial, inputs.clone()))),
                None => return,
            },
        }
    }
}

async fn try_one<N: NetIo>(net: N, Dial { node, name, address }: Dial, inputs: mpsc::Sender<Input>) {
    let failed = net.connect(&address).await.err().map(|error| error.to_string());
    if let Some(why) = &failed {
        tracing::warn!(%node, service = name, "what it offers can't be dialled from here: {why}");
    }
    // Without a loop there is nobody left to tell.
    let _ = inputs.send(Input::Dialled { node, name, address, failed }).await;
}
