//! A storage that processes share: kept by the test, reached over a socket. It stands for a database server.

use std::net::SocketAddr;
use std::ops::Bound;
use std::sync::Arc;

use base::{Epoch, Fence, NodeId};
use bytes::Bytes;
use net::{NetIo, Tcp};
use prost::Message;
use store::{StoreError, StoreId};
use tables::backend::{Answer, Applied, Backend, BackendError, Batch, Change, Csn, Granted, Stored, TableId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

/// Requests and answers, one after another.
#[derive(Clone, PartialEq, Message)]
struct Said {
    /// 1: load, 2: apply, 3: raise. In an answer: 0 fine, 1 fenced, 2 superseded, 3 other.
    #[prost(uint32, tag = "1")]
    what: u32,
    #[prost(uint32, tag = "2")]
    table: u32,
    #[prost(bytes = "vec", tag = "3")]
    key: Vec<u8>,
    #[prost(string, optional, tag = "4")]
    node: Option<String>,
    #[prost(uint64, repeated, tag = "5")]
    numbers: Vec<u64>,
    #[prost(message, repeated, tag = "6")]
    records: Vec<One>,
}

#[derive(Clone, PartialEq, Message)]
struct One {
    #[prost(uint32, tag = "1")]
    table: u32,
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
    /// Epoch, seq, version.
    #[prost(uint64, repeated, tag = "3")]
    numbers: Vec<u64>,
    #[prost(bytes = "vec", optional, tag = "4")]
    value: Option<Vec<u8>>,
}

async fn say(stream: &mut TcpStream, said: &Said) -> std::io::Result<()> {
    let bytes = said.encode_to_vec();
    stream.write_u32(bytes.len() as u32).await?;
    stream.write_all(&bytes).await
}

async fn hear(stream: &mut TcpStream) -> std::io::Result<Said> {
    let mut bytes = vec![0; stream.read_u32().await? as usize];
    stream.read_exact(&mut bytes).await?;
    Said::decode(bytes.as_slice()).map_err(std::io::Error::other)
}

/// Serves `backend` to whoever connects.
pub async fn serve(backend: Arc<dyn Backend>) -> SocketAddr {
    let listener = Tcp.bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let backend = backend.clone();
            tokio::spawn(async move {
                // Ends with its caller.
                while let Ok(said) = hear(&mut stream).await {
                    let answer = answer(&*backend, said).await;
                    if say(&mut stream, &answer).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    addr
}

async fn answer(backend: &dyn Backend, said: Said) -> Said {
    let node = said.node.as_deref().map(|node| NodeId::new(node).unwrap());
    match said.what {
        1 => match backend.load(TableId(said.table), &said.key).await {
            Ok(stored) => {
                Said { records: stored.map(one_of_stored).into_iter().collect(), ..Said::default() }
            }
            Err(error) => refused(&error),
        },
        2 => {
            let [epoch, session, first, last] = said.numbers[..] else { panic!("{said:?}") };
            let changes = said.records.into_iter().map(|one| Change {
                table: TableId(one.table),
                key: one.key.into(),
                granted: Granted { epoch: Epoch(one.numbers[0]), seq: one.numbers[1] },
                version: one.numbers[2],
                value: one.value.map(Bytes::from),
            });
            let batch = Batch {
                node: node.unwrap(),
                fence: Fence::new(Epoch(epoch), session),
                first: Csn(first),
                last: Csn(last),
                changes: changes.collect(),
            };
            backend.apply(batch).await.map_or_else(|error| refused(&error), |_| Said::default())
        }
        _ => {
            let fence = Fence::new(Epoch(said.numbers[0]), said.numbers[1]);
            backend.raise_fence(node, fence).await.map_or_else(|error| refused(&error), |()| Said::default())
        }
    }
}

fn one_of_stored(stored: Stored) -> One {
    let numbers = vec![stored.granted.epoch.0, stored.granted.seq, stored.version];
    One { numbers, value: Some(stored.value.to_vec()), ..One::default() }
}

fn refused(error: &BackendError) -> Said {
    let what = match error {
        BackendError::Fenced { .. } => 1,
        BackendError::Superseded { .. } => 2,
        _ => 3,
    };
    Said { what, ..Said::default() }
}

/// The storage as a provider reaches it.
#[derive(Debug)]
pub struct Remote {
    addr: SocketAddr,
    reading: Mutex<Option<TcpStream>>,
    writing: Mutex<Option<TcpStream>>,
}

impl Remote {
    pub fn new(addr: SocketAddr) -> Self {
        Self { addr, reading: Mutex::new(None), writing: Mutex::new(None) }
    }

    async fn ask(&self, line: &Mutex<Option<TcpStream>>, said: Said) -> Result<Said, BackendError> {
        let failed = |error: std::io::Error| BackendError::Storage(StoreError::Failed(error.to_string()));
        let mut line = line.lock().await;
        // A call that was dropped leaves no half of it behind.
        let mut stream = match line.take() {
            Some(stream) => stream,
            None => Tcp.connect(&self.addr.to_string()).await.map_err(failed)?,
        };
        say(&mut stream, &said).await.map_err(failed)?;
        let answer = hear(&mut stream).await.map_err(failed)?;
        *line = Some(stream);
        let (fence, granted) = (Fence::default(), Granted::default());
        match answer.what {
            0 => Ok(answer),
            1 => {
                let node = NodeId::new("it").unwrap();
                Err(BackendError::Fenced { node, fence, below: fence })
            }
            2 => Err(BackendError::Superseded { table: TableId(0), granted, stored: granted }),
            _ => Err(failed(std::io::Error::other("the storage refused"))),
        }
    }
}

impl Backend for Remote {
    fn name(&self) -> &'static str {
        "remote"
    }

    fn id(&self) -> Option<StoreId> {
        None
    }

    fn load<'a>(&'a self, table: TableId, key: &'a [u8]) -> Answer<'a, Option<Stored>> {
        let said = Said { what: 1, table: table.0, key: key.to_vec(), ..Said::default() };
        Box::pin(async move {
            let answer = self.ask(&self.reading, said).await?;
            Ok(answer.records.into_iter().next().map(|one| Stored {
                granted: Granted { epoch: Epoch(one.numbers[0]), seq: one.numbers[1] },
                version: one.numbers[2],
                value: one.value.unwrap_or_default().into(),
            }))
        })
    }

    fn apply(&self, batch: Batch) -> Answer<'_, Applied> {
        let records = batch.changes.iter().map(|change| One {
            table: change.table.0,
            key: change.key.to_vec(),
            numbers: vec![change.granted.epoch.0, change.granted.seq, change.version],
            value: change.value.as_ref().map(|value| value.to_vec()),
        });
        let said = Said {
            what: 2,
            node: Some(batch.node.to_string()),
            numbers: vec![batch.fence.epoch.0, batch.fence.session, batch.first.0, batch.last.0],
            records: records.collect(),
            ..Said::default()
        };
        Box::pin(async move { self.ask(&self.writing, said).await.map(|_| Applied::Now) })
    }

    fn raise_fence(&self, node: Option<NodeId>, below: Fence) -> Answer<'_, ()> {
        let node = node.map(|node| node.to_string());
        let said = Said { what: 3, node, numbers: vec![below.epoch.0, below.session], ..Said::default() };
        Box::pin(async move { self.ask(&self.reading, said).await.map(drop) })
    }

    fn durable(&self, _node: NodeId) -> Answer<'_, Option<(Fence, Csn)>> {
        Box::pin(async { Ok(None) })
    }

    fn scan<'a>(&'a self, _: TableId, _: Bound<&'a [u8]>, _: usize) -> Answer<'a, Vec<(Bytes, Stored)>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}
