//! The server's side against another implementation's client.

use bytes::Bytes;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;
use crate::Outbox;
use crate::ws::Origins;

type Client = WebSocketStream<DuplexStream>;

async fn pair(room: usize) -> (WebSocket<DuplexStream>, Client) {
    let (ours, theirs) = tokio::io::duplex(room);
    let upgrade = tokio_tungstenite::client_async("ws://linkd/", theirs);
    let (server, client) = tokio::join!(crate::ws::accept(ours, &Origins::Any, 1 << 20), upgrade);
    (server.unwrap(), client.unwrap().0)
}

/// The server's halves as a worker holds them: an outbox that is driven, and a reader.
fn serve(server: WebSocket<DuplexStream>) -> (Outbox, ReadHalf<WebSocket<DuplexStream>>) {
    let (read, write) = tokio::io::split(server);
    let outbox = Outbox::new(write, 1 << 20, 64);
    tokio::spawn(crate::outbox::drive(outbox.clone()));
    (outbox, read)
}

async fn send(client: &mut Client, message: Message) {
    use futures_util::SinkExt;
    client.send(message).await.unwrap();
}

async fn next(client: &mut Client) -> Option<Message> {
    use futures_util::StreamExt;
    client.next().await.map(Result::unwrap)
}

#[tokio::test]
async fn bytes_go_both_ways_whatever_the_room() {
    for room in [3, 64, 100_000] {
        let (server, mut client) = pair(room).await;
        let (outbox, mut read) = serve(server);
        let sent: Vec<u8> = (0..70_000u32).map(|n| n as u8).collect();
        let told = sent.clone();
        let echo = tokio::spawn(async move {
            let mut got = vec![0; 140_000];
            read.read_exact(&mut got).await.unwrap();
            outbox.push(got.len(), |out| out.extend_from_slice(&got)).unwrap();
            outbox.close();
            read.read_to_end(&mut got).await.unwrap();
        });
        let (front, back) = told.split_at(60_000);
        for part in [front, back, b"", &told] {
            send(&mut client, Message::Binary(Bytes::copy_from_slice(part))).await;
        }
        let mut back = Vec::new();
        loop {
            match next(&mut client).await {
                Some(Message::Binary(bytes)) => back.extend_from_slice(&bytes),
                Some(Message::Close(frame)) => assert_eq!(u16::from(frame.unwrap().code), 1000),
                Some(other) => panic!("{other:?}"),
                None => break,
            }
        }
        assert!(back == [sent.clone(), sent].concat());
        drop(client);
        echo.await.unwrap();
    }
}

#[tokio::test]
async fn a_ping_is_answered_and_felt_even_in_the_middle_of_a_frame() {
    let (server, mut client) = pair(32).await;
    let pulse = server.pulse();
    let (outbox, mut read) = serve(server);
    // More than the room: the frame stays in the middle until the client reads.
    outbox.push(100, |out| out.extend_from_slice(&[1; 100])).unwrap();
    outbox.flush();
    let reader = tokio::spawn(async move { read.read_u8().await });
    send(&mut client, Message::Ping("here".into())).await;
    assert_eq!(pulse.beats().await, 1);
    assert_eq!(next(&mut client).await, Some(Message::Binary(vec![1; 100].into())));
    assert_eq!(next(&mut client).await, Some(Message::Pong("here".into())));
    send(&mut client, Message::Binary(vec![9].into())).await;
    assert_eq!(reader.await.unwrap().unwrap(), 9);
}

#[tokio::test]
async fn what_breaks_the_protocol_is_an_error_once_and_then_nothing_is_heard() {
    let (server, mut client) = pair(1_000).await;
    let (outbox, mut read) = serve(server);
    send(&mut client, Message::Binary(vec![1, 2].into())).await;
    send(&mut client, Message::Text("hello".into())).await;
    send(&mut client, Message::Binary(vec![3].into())).await;
    let mut got = [0; 2];
    read.read_exact(&mut got).await.unwrap();
    assert_eq!(violation(&read.read_u8().await.unwrap_err()), Some(Violation::Text));
    outbox.close_with(|out| out.extend_from_slice(b"why"));
    assert_eq!(next(&mut client).await, Some(Message::Binary("why".into())));
    let Some(Message::Close(Some(frame))) = next(&mut client).await else { panic!() };
    assert_eq!(u16::from(frame.code), 1003);
    drop(client);
    assert_eq!(read.read(&mut got).await.unwrap(), 0);
}

#[tokio::test]
async fn a_close_of_the_client_is_returned_and_ends_the_stream() {
    let (server, mut client) = pair(1_000).await;
    let (outbox, mut read) = serve(server);
    send(&mut client, Message::Binary(vec![1].into())).await;
    client.close(None).await.unwrap();
    assert_eq!(read.read_u8().await.unwrap(), 1);
    assert_eq!(read.read_u8().await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert!(matches!(next(&mut client).await, Some(Message::Close(_))));
    outbox.push(1, |out| out.extend_from_slice(&[2])).unwrap();
    outbox.flush();
    drop((outbox, read));
    assert!(next(&mut client).await.is_none());
}

/// Holds: BI-049.
#[tokio::test]
async fn data_after_a_close_is_not_heard() {
    let (ours, mut raw) = tokio::io::duplex(1_000);
    let mut server = WebSocket::new(ours, 1_000);
    let close_then_data = [0x88, 0x80, 0, 0, 0, 0, 0x82, 0x81, 0, 0, 0, 0, 7];
    raw.write_all(&close_then_data).await.unwrap();
    assert_eq!(server.read(&mut [0; 10]).await.unwrap(), 0);
    assert_eq!(server.read(&mut [0; 10]).await.unwrap(), 0);
    let mut answer = [0; 4];
    raw.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, [0x88, 2, 0x03, 0xe8]);
    assert_eq!(server.write(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the sizes of writes and of the room, another implementation reads the same bytes.
    #[test]
    fn what_is_written_is_read(writes in prop::collection::vec(1..500usize, 1..20), room in 1..200usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (ours, theirs) = tokio::io::duplex(room);
            let mut server = WebSocket::new(ours, 1_000);
            let mut client = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
            let total: usize = writes.iter().sum();
            let write = async {
                for len in writes {
                    server.write_all(&vec![len as u8; len]).await.unwrap();
                }
            };
            let read = async {
                let mut got = 0;
                while got < total {
                    got += next(&mut client).await.unwrap().into_data().len();
                }
                got
            };
            assert_eq!(tokio::join!(write, read).1, total);
        });
    }
}
