//! Temporary measurement.
use std::sync::Arc;
use std::time::{Duration, Instant};
use base::*;
use linkstead::*;
use net::{NetIo, Tcp, hello, link::{Closed, Handler, Link}};
use prost::Message;
use wire::{link, node::{Frame, Meta, Kind}, payload::Head};
#[derive(Clone, PartialEq, prost::Message)]
pub struct Word { #[prost(bytes = "vec", tag = "1")] pub text: Vec<u8> }
pub struct Hall;
#[linkstead::module(id = 7)]
impl Hall { #[handler] async fn echo(&self, _cx: &Cx, word: Word) -> Result<Word> { Ok(word) } }
struct Load { link: Link, n: u64, sessions: u64, window: u64, start: Option<Instant>, total: u64, body: Vec<u8>, introduced: u32 }
impl Load {
  fn go(&self, sid: u64) {
    let d = link::Dispatch { link_sid: LinkSid(sid), type_id: Hall::ECHO.type_id };
    self.link.push(&Meta::notice(link::DISPATCH), &d.encode(), &self.body).unwrap();
  }
}
impl Handler for Load {
  fn frame(&mut self, f: Frame<'_>) -> std::result::Result<(), Closed> {
    match f.meta.kind {
      link::SEND => {
        self.n += 1;
        let sid = link::send_sids(f.head).unwrap().next().unwrap().0;
        if self.n == self.total { let t = self.start.unwrap().elapsed(); println!("{}x{}: {} req in {:?}: {:.0}/s, {:.3} us each", self.sessions, self.window, self.n, t, self.n as f64 / t.as_secs_f64(), t.as_secs_f64()*1e6/self.n as f64);
          return Err(Closed::ByPeer) }
        if self.n + self.sessions*self.window <= self.total { self.go(sid); }
      }
      link::LOAD => { self.introduced += 1; if self.introduced == 1 { 
          for sid in 0..self.sessions { let o = link::message::Opened { link_sid: sid, account: format!("p{sid}"), ..Default::default() }; self.link.push_message(&Meta::notice(link::OPENED), &o).unwrap(); }
          self.start = Some(Instant::now());
          for _ in 0..self.window { for sid in 0..self.sessions { self.go(sid); } } } }
      Kind(k) if k >= 16 => { self.link.reply(f.meta.call, &()).unwrap(); }
      _ => {}
    }
    Ok(())
  }
  fn batch_end(&mut self) { self.link.outbox.flush(); }
}
#[tokio::main(flavor = "current_thread")]
async fn main() {
  for (sessions, window, total) in [(1u64,1u64,100_000u64),(64,1,1_000_000),(64,16,4_000_000),(1000,1,2_000_000)] {
    let listener = Tcp.bind(([127,0,0,1],0).into()).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let node = NodeId::new("linkd-1").unwrap();
    let ours = hello::Ours { cluster: "t".into(), node: node.clone(), role: hello::Role::Linkd, epoch: Epoch(3), worker: 0 };
    let (_s, linkds) = tokio::sync::watch::channel(Arc::new(vec![Linkd { node, epoch: Epoch(3), address, workers: 1 }]));
    let env = Env::new("t", NodeId::new("g").unwrap(), Linkds::Fixed { epoch: Epoch(7), linkds });
    let running = provider("g").module(|_| Ok(Hall)).start(Config::default(), env, Default::default()).await.unwrap();
    let (mut stream, from) = listener.accept().await.unwrap();
    stream.set_nodelay(true).unwrap();
    let peer = hello::accept(&mut stream, from, &ours, &[hello::Role::Provider]).await.unwrap();
    let (mut read, write) = stream.into_split();
    let link = Link::new(peer, Generation(1), write);
    tokio::spawn(net::outbox::drive(link.outbox.clone()));
    let mut body = Vec::new(); Head::request(5).encode(&mut body); Word { text: vec![7; 62] }.encode(&mut body).unwrap();
    let mut load = Load { link: link.clone(), n: 0, sessions, window, start: None, total, body, introduced: 0 };
    net::link::run(&link, &mut read, &mut vec![0; 65536], &mut load).await;
    println!("  {}", running.status()["counts"]);
    drop(running);
    tokio::time::sleep(Duration::from_millis(50)).await;
  }
}
