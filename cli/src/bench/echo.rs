//! The bare echo that baselines stand in front of: our framed transport and nothing else. It answers each request
//! with a response of the same size.

use std::net::SocketAddr;
use std::rc::Rc;

use bytes::BufMut;
use net::inbox::{Inbox, SharedScratch};
use net::{Outbox, Tcp};
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use wire::frame::{self, Decoded, PAYLOAD_BYTES_CEILING};

/// Serves until the process ends. Prints the address it listens on.
pub async fn serve(listen: SocketAddr) -> anyhow::Result<()> {
    let listener = Tcp::listen(listen)?;
    super::process::say_ready(&listener.local_addr()?.to_string());
    let local = LocalSet::new();
    let accepting = async {
        let scratch = SharedScratch::default();
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::task::spawn_local(connection(stream, scratch.clone()));
        }
    };
    local.run_until(accepting).await
}

async fn connection(stream: TcpStream, mut scratch: SharedScratch) {
    let (mut read, write) = tokio::io::split(stream);
    let outbox = Rc::new(Outbox::new(write, 16 << 20, 64 * 1024));
    let driver = tokio::task::spawn_local(net::outbox::drive((*outbox).clone()));
    let mut inbox = Inbox::default();
    while let Ok(Some(Ok(()))) = inbox.receive(&mut read, &mut scratch, |bytes| decode(&outbox, bytes)).await
    {
    }
    driver.abort();
}

fn decode(outbox: &Outbox, bytes: &[u8]) -> (usize, Result<(), frame::BadFrame>) {
    let mut used = 0;
    loop {
        match frame::decode(&bytes[used..], PAYLOAD_BYTES_CEILING) {
            Ok(Decoded::Incomplete { .. }) => break,
            Ok(Decoded::Frame(frame)) => {
                used += frame.whole.len();
                // The family byte of a request becomes a response's; the rest comes back as it is.
                let pushed = outbox.push(frame.whole.len(), |out| {
                    out.put_slice(&frame.whole[..frame::HEADER_BYTES]);
                    out.put_u8(0);
                    out.put_slice(&frame.payload[1..]);
                });
                if pushed.is_err() {
                    break;
                }
            }
            Err(bad) => return (used, Err(bad)),
        }
    }
    outbox.flush();
    (used, Ok(()))
}
