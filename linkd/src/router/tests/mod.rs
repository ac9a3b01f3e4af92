//! Core: scripts in, text out. Each line of a script is one event; each line of the answer one action.
//!
//! Frames are written `req MODULE:PROTOCOL`, `say …` (one-way) and `answer …`; sids are written by the client's
//! letter, providers by their node.

mod auth;
mod binds;
mod choices;
mod clients;
mod delivery;
mod groups;
mod guards;
mod properties;
mod providers;

use std::collections::BTreeMap;

use base::generation::{Generation, Generations};
use base::{AppVersion, Epoch, LinkSid, ModuleId, Mono, NodeId, ProtocolId, Role, Span, TypeId};
use bytes::BytesMut;
use expect_test::Expect;
use wire::auth::{AUTH, Auth};
use wire::frame::{self, Decoded};
use wire::handshake::{CHANDSHAKE, CHANDSHAKE_DONE, KEEP_ALIVE};
use wire::link::message;
use wire::payload::{self, Head};

use super::{Action, Answer, Asked, Event, Judge, Narrow, Pushed, Rate, Request, Router, Rules, Who};

/// A router, and names for what it numbers.
pub struct World {
    pub router: Router,
    pub now: Mono,
    pub clients: BTreeMap<String, LinkSid>,
    pub conns: BTreeMap<String, Generation>,
    generations: Generations,
    calls: u64,
    loads: u64,
}

pub fn rules() -> Rules {
    Rules {
        worker: 0,
        region: String::new(),
        narrow: Narrow::default(),
        sessions_max: 100_000,
        auth_timeout: Span::secs(10),
        idle_timeout: Span::ZERO,
        judge: Judge::Nobody,
        owed_max: 64,
        unauthed_frames_max: 2,
        frames: Rate::OFF,
        bytes: Rate::OFF,
        out_bytes_per_second: 0,
        broadcasts_max: 16,
        broadcast_bytes_max: 64 * 1024,
        seed: 1,
    }
}

impl Default for World {
    fn default() -> Self {
        Self {
            router: Router::new(rules()),
            now: Mono(1_000_000),
            clients: BTreeMap::new(),
            conns: BTreeMap::new(),
            generations: Generations::default(),
            calls: 0,
            loads: 0,
        }
    }
}

/// As [`check`], under other rules.
pub fn check_with(change: impl FnOnce(&mut Rules), script: &str, expect: Expect) {
    let mut rules = rules();
    change(&mut rules);
    run_script(World { router: Router::new(rules), ..World::default() }, script, expect);
}

/// Runs the script and compares everything the router says.
pub fn check(script: &str, expect: Expect) {
    run_script(World::default(), script, expect);
}

fn run_script(mut world: World, script: &str, expect: Expect) {
    let mut out = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        out += &format!("> {line}\n");
        for action in world.run(line) {
            out += &format!("{}\n", world.show(&action));
        }
    }
    expect.assert_eq(&out);
}

impl World {
    /// One line of a script.
    pub fn run(&mut self, line: &str) -> Vec<Action> {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["client", name] => self.open(name, "10.0.0.1:5000"),
            ["client", name, addr] => self.open(name, addr),
            ["login", name] => {
                self.open(name, "10.0.0.1:5000");
                self.auth(name, name, "")
            }
            ["auth", name, account] => self.auth(name, account, ""),
            ["auth", name, account, version] => self.auth(name, account, version),
            ["judging", by] => {
                let judge = if by == "provider" { Judge::Provider } else { Judge::Shell };
                self.router = Router::new(Rules { judge, ..rules() });
                Vec::new()
            }
            ["judged", name, account] => {
                let (sid, result) = (self.sid(name), Ok(base::Account::new(account).unwrap()));
                self.step(Event::Authenticated { sid, result })
            }
            ["rejected", name, number] => {
                let code = wire::code::Code::find(number.parse().unwrap()).unwrap();
                self.step(Event::Authenticated { sid: self.sid(name), result: Err(code) })
            }
            ["done", name] => self.frame(name, CHANDSHAKE_DONE, Head::PROTOCOL, &[0]),
            ["handshake", name, "plain"] => self.frame(name, CHANDSHAKE, Head::PROTOCOL, &[0; 4]),
            ["handshake", name, "aes"] => self.frame(name, CHANDSHAKE, Head::PROTOCOL, &[1, 0, 0, 0]),
            ["ping", name] => self.frame(name, KEEP_ALIVE, Head::request(3), &[0]),
            ["req", name, id] => self.frame(name, type_id(id), Head::request(9), &[]),
            ["req", name, id, key] => self.frame(name, type_id(id), Head::request(9), &string_field(key)),
            ["say", name, id] => self.frame(name, type_id(id), Head::PROTOCOL, &[]),
            ["answer", name, id] => self.frame(name, type_id(id), Head::response(4, 0), &[]),
            ["close", name] => {
                let sid = self.clients[name];
                self.step(Event::ClientClosed { sid })
            }
            ["kick", account] => {
                let who = Who::Account(base::Account::new(account).unwrap());
                self.step(Event::Kick { who, code: &wire::code::KICKED, text: String::new() })
            }
            ["wait", ms] => {
                self.now += Span::millis(ms.parse().unwrap());
                self.step(Event::Tick)
            }
            ["stop"] => self.step(Event::Stop),
            ["registered", id] => {
                let modules = std::sync::Arc::new([ModuleId(id.parse().unwrap())].into());
                self.step(Event::Registered { modules: Some(modules) })
            }
            _ => self.provider_line(&words),
        }
    }

    fn provider_line(&mut self, words: &[&str]) -> Vec<Action> {
        match words[..] {
            ["provider", node] => self.connect(node, node, 1),
            ["provider", node, "as", conn] => self.connect(node, conn, 1),
            ["provider", node, "epoch", epoch] => self.connect(node, node, epoch.parse().unwrap()),
            ["up", node, ref modules @ ..] => self.up(node, modules),
            ["announce", node, server] => self.announce(node, server.parse().unwrap(), "0"),
            ["announce", node, server, version] => self.announce(node, server.parse().unwrap(), version),
            ["bind", node, ref modules @ ..] => self.bind(node, modules, false),
            ["subscribe", node, ref modules @ ..] => self.bind(node, modules, true),
            ["bindto", node, module, client] => {
                let modules = vec![module_spec(module, true)];
                let link_sids = vec![self.sid(client).0];
                self.call(node, Request::Bind(message::Bind { modules, link_sids }))
            }
            ["unbind", node, module, client] => {
                let modules = vec![module.parse().unwrap()];
                let link_sids = vec![self.sid(client).0];
                self.call(node, Request::UnBind(message::UnBind { modules, link_sids }))
            }
            ["unserve", node, module] => {
                let modules = vec![module.parse().unwrap()];
                self.call(node, Request::UnBind(message::UnBind { modules, link_sids: vec![] }))
            }
            ["disable", node] => self.call(node, Request::Disable(message::Disable { disabled: true })),
            ["kickby", node, client] => {
                let link_sid = self.sid(client).0;
                let kick = message::Kick { link_sid, code: 4, text: "again".into(), report_only: false };
                self.call(node, Request::Kick(kick))
            }
            ["load", node, ref pairs @ ..] => self.load(node, pairs),
            ["role", node, client, role] => {
                let (conn, sid) = (self.conns[node], self.sid(client));
                let role = role.parse().ok().map(Role);
                self.step(Event::UserState { conn, sid, role })
            }
            ["send", node, ref clients @ ..] => {
                let head: Vec<u8> = clients.iter().flat_map(|c| self.sid(c).0.to_le_bytes()).collect();
                let conn = self.conns[node];
                self.step(Event::Send { conn, call: 0, head: &head, pushed: pushed(100) })
            }
            ["broadcast", node, version] => self.broadcast(node, version, 100),
            ["broadcast", node, version, bytes] => self.broadcast(node, version, bytes.parse().unwrap()),
            ["fan"] => self.step(Event::FanOut),
            ["gone", conn] => {
                let conn = self.conns[conn];
                self.step(Event::ProviderClosed { conn })
            }
            _ => self.less_usual_line(words),
        }
    }

    fn less_usual_line(&mut self, words: &[&str]) -> Vec<Action> {
        match words[..] {
            ["announce", node, server, version, "region", region] => {
                let (server_id, app_version) =
                    (server.parse().unwrap(), version.parse::<AppVersion>().unwrap().0);
                let announce =
                    message::Announce { server_id, app_version, region: region.into(), ..Default::default() };
                self.call(node, Request::Announce(announce))
            }
            ["announce", node, server, "group", prefix] => {
                let announce = message::Announce {
                    server_id: server.parse().unwrap(),
                    prefix: prefix.into(),
                    ..Default::default()
                };
                self.call(node, Request::Announce(announce))
            }
            ["announces-closed", node, server] => {
                let announce = message::Announce {
                    server_id: server.parse().unwrap(),
                    disabled: true,
                    ..Default::default()
                };
                self.call(node, Request::Announce(announce))
            }
            ["judges", node, server] => {
                let server_id = server.parse().unwrap();
                let announce = message::Announce { server_id, authenticator: true, ..Default::default() };
                self.connect(node, node, 1);
                self.call(node, Request::Announce(announce))
            }
            ["sendcall", node, ref clients @ ..] => {
                let head: Vec<u8> = clients.iter().flat_map(|c| self.sid(c).0.to_le_bytes()).collect();
                let conn = self.conns[node];
                self.step(Event::Send { conn, call: 1, head: &head, pushed: pushed(100) })
            }
            ["reply", node, client, id] => {
                let (conn, head) = (self.conns[node], self.sid(client).0.to_le_bytes());
                let reply = Some(Asked { type_id: type_id(id), session: 9 });
                self.step(Event::Send { conn, call: 0, head: &head, pushed: Pushed { reply, ..pushed(100) } })
            }
            ["check", node, ref clients @ ..] => {
                let link_sids = clients.iter().map(|c| self.sid(c).0).collect();
                self.call(node, Request::Check(message::Check { link_sids }))
            }
            ["enable", node] => self.call(node, Request::Disable(message::Disable { disabled: false })),
            _ => panic!("no such line: {words:?}"),
        }
    }

    pub fn step(&mut self, event: Event<'_>) -> Vec<Action> {
        let mut actions = Vec::new();
        self.router.step(self.now, event, &mut actions);
        self.router.check();
        actions
    }

    fn open(&mut self, name: &str, addr: &str) -> Vec<Action> {
        let actions = self.step(Event::ClientOpened {
            token: 1,
            addr: addr.parse().unwrap(),
            since: self.now,
            handshaken: false,
        });
        if let Some(Action::Accept { sid, .. }) = actions.first() {
            self.clients.insert(name.into(), *sid);
        }
        actions
    }

    pub fn sid(&self, client: &str) -> LinkSid {
        self.clients.get(client).copied().unwrap_or(LinkSid(0xdead))
    }

    pub fn auth(&mut self, name: &str, account: &str, version: &str) -> Vec<Action> {
        let auth = Auth { account: account.as_bytes(), app_version: version.as_bytes(), ..Auth::default() };
        let mut body = Vec::new();
        auth.encode(&mut body);
        self.frame(name, AUTH, Head::request(1), &body)
    }

    pub fn frame(&mut self, name: &str, id: TypeId, head: Head, body: &[u8]) -> Vec<Action> {
        let mut bytes = BytesMut::new();
        payload::encode_frame(&mut bytes, id, head, |out| out.extend_from_slice(body));
        let Ok(Decoded::Frame(frame)) = frame::decode(&bytes, u32::MAX) else { panic!() };
        let sid = self.sid(name);
        self.step(Event::ClientFrame { sid, frame })
    }

    fn connect(&mut self, node: &str, conn: &str, epoch: u64) -> Vec<Action> {
        let generation = self.generations.begin();
        self.conns.insert(conn.into(), generation);
        let node = NodeId::new(node).unwrap();
        self.step(Event::ProviderOpened { conn: generation, node, epoch: Epoch(epoch) })
    }

    /// Connects, announces with a server id made from the name, and serves these static modules.
    fn up(&mut self, node: &str, modules: &[&str]) -> Vec<Action> {
        let server = node.bytes().map(u32::from).sum();
        self.connect(node, node, 1);
        self.announce(node, server, "0");
        let (dynamic, fixed): (Vec<&str>, Vec<&str>) = modules.iter().partition(|m| m.ends_with("/dynamic"));
        self.bind(node, &fixed, false);
        if !dynamic.is_empty() {
            self.bind(node, &dynamic, true);
        }
        self.load(node, &["online", "0", "max", "100"])
    }

    pub fn call(&mut self, node: &str, request: Request) -> Vec<Action> {
        self.calls += 1;
        let (conn, call) = (self.conns[node], self.calls);
        self.step(Event::ProviderCall { conn, call, request })
    }

    fn announce(&mut self, node: &str, server_id: u32, version: &str) -> Vec<Action> {
        let app_version = version.parse::<base::AppVersion>().unwrap().0;
        self.call(node, Request::Announce(message::Announce { server_id, app_version, ..Default::default() }))
    }

    fn bind(&mut self, node: &str, modules: &[&str], dynamic: bool) -> Vec<Action> {
        let modules = modules.iter().map(|m| module_spec(m, dynamic)).collect();
        match dynamic {
            false => self.call(node, Request::Bind(message::Bind { modules, link_sids: vec![] })),
            true => self.call(node, Request::Subscribe(message::Subscribe { modules })),
        }
    }

    pub fn load(&mut self, node: &str, pairs: &[&str]) -> Vec<Action> {
        self.loads += 1;
        let mut load = message::Load { seq: self.loads, propose_max_online: 100, ..Default::default() };
        for pair in pairs.chunks(2) {
            let value = pair[1].parse().unwrap();
            match pair[0] {
                "online" => load.online = value,
                "new" => load.online_new = value,
                "max" => load.propose_max_online = value,
                "maxnew" => load.max_online_new = value,
                "overload" => load.overload = value,
                "seq" => load.seq = value.into(),
                other => panic!("no such load field: {other}"),
            }
        }
        let conn = self.conns[node];
        self.step(Event::Loaded { conn, load })
    }

    fn broadcast(&mut self, node: &str, version: &str, bytes: usize) -> Vec<Action> {
        self.calls += 1;
        let (conn, call, version) = (self.conns[node], self.calls, version.parse().unwrap());
        self.step(Event::Broadcast { conn, call, version, pushed: pushed(bytes) })
    }

    fn client_name(&self, sid: LinkSid) -> String {
        let known = self.clients.iter().find(|(_, s)| **s == sid);
        known.map_or_else(|| format!("sid {sid}"), |(name, _)| name.clone())
    }

    fn names(&self, sids: &[u64]) -> String {
        sids.iter().map(|&sid| self.client_name(LinkSid(sid))).collect::<Vec<_>>().join(" ")
    }

    fn conn_name(&self, conn: Generation) -> String {
        let known = self.conns.iter().find(|(_, c)| **c == conn);
        known.map_or_else(|| conn.to_string(), |(name, _)| name.clone())
    }

    fn show(&self, action: &Action) -> String {
        let (client, conn) = (|sid| self.client_name(sid), |conn| self.conn_name(conn));
        match action {
            Action::Accept { .. } => "accept".into(),
            Action::RefuseClient { code, .. } => format!("refuse {}", code.name),
            Action::Dispatch { to, sid, type_id, .. } => {
                format!("dispatch {} {} {type_id}", conn(to.conn), client(*sid))
            }
            Action::Opened { to, opened } => {
                let role = opened.role.map_or(String::new(), |role| format!(" role {role}"));
                format!("opened {} {}{role}", conn(to.conn), opened.account)
            }
            Action::UserState { to, sid, role } => {
                format!(
                    "role {} {} {}",
                    conn(to.conn),
                    client(*sid),
                    role.map_or("none".into(), |r| r.to_string())
                )
            }
            Action::LinkBroken { to, sid, cause } => {
                format!("broken {} {} {cause}", conn(to.conn), client(*sid))
            }
            Action::Refuse { sid, session, result, .. } => {
                let name = wire::code::Code::of_result(*result).map_or("?", |code| code.name);
                format!("refuse {} call {session} {name}", client(*sid))
            }
            Action::KeepAlive { sid, session } => format!("keep-alive {} {session}", client(*sid)),
            Action::ServerHandshake { sid } => format!("handshake {}", client(*sid)),
            Action::Authenticate { sid, proof } => {
                let by = proof.by.map_or(String::new(), |to| format!(" by {}", conn(to.conn)));
                let account = proof.account.as_ref().map_or("?", |account| account.as_str());
                format!("judge {} as {account}{by}", client(*sid))
            }
            Action::AuthFailed { code, .. } => format!("failed {}", code.name),
            Action::Authed { sid, .. } => format!("authed {}", client(*sid)),
            Action::Report { sid, from, code, text } => {
                format!("report {} {from:?} {code} {text}", client(*sid))
            }
            Action::CloseClient { sid, from, code, text } => {
                format!("close {} {from:?} {code} {text}", client(*sid))
            }
            Action::Forward { sid } => format!("forward {}", client(*sid)),
            Action::Keep { broadcast } => format!("keep {broadcast}"),
            Action::ForwardKept { sid, broadcast } => format!("forward {} kept {broadcast}", client(*sid)),
            Action::Forget { broadcast } => format!("forget {broadcast}"),
            Action::Answer { answer, .. } => match answer {
                Answer::Broadcast(result) => format!("broadcast, sent {} shed {}", result.sent, result.shed),
                Answer::Done => "done".into(),
                Answer::Sent(result) => format!("sent, missed {}", self.names(&result.missed)),
                Answer::Checked(result) => format!("checked, gone {}", self.names(&result.gone)),
                Answer::Bound(result) => format!("bound, refused {:?}", result.codes),
                Answer::Refused { code, text } => format!("refused {}: {text}", code.name),
            },
            Action::CloseProvider { conn: c, code, text } => {
                format!("close {} {}: {text}", conn(*c), code.name)
            }
            Action::Clash { code, .. } => format!("clash {}", code.name),
            Action::Dropped(loss) => format!("dropped {}", loss.as_str()),
        }
    }
}

/// A push of normal level.
pub fn pushed(bytes: usize) -> Pushed {
    Pushed { level: wire::Level::Normal, bytes, reply: None }
}

/// `7:5` is protocol 5 of module 7.
fn type_id(text: &str) -> TypeId {
    let (module, protocol) = text.split_once(':').unwrap();
    TypeId::new(ModuleId(module.parse().unwrap()), ProtocolId(protocol.parse().unwrap()))
}

/// `7`, or `7/load`, `7/dynamic`, `7/contract=9`, in any mix. Protocol 1 is routed by field 1 of a `/keyed` module and
/// protocol 2 is critical_plus.
fn module_spec(text: &str, dynamic: bool) -> message::Module {
    let mut words = text.split('/');
    let id: i32 = words.next().unwrap().parse().unwrap();
    let protocol = |id, route_by, level| message::Protocol { id, name: format!("p{id}"), route_by, level };
    let mut module = message::Module {
        id,
        name: format!("m{id}"),
        dynamic,
        choice: "hash_account".into(),
        contract: id as u64,
        protocols: vec![protocol(1, 0, 2), protocol(2, 0, 0)],
        queue_max: 0,
    };
    for word in words {
        match word.split_once('=') {
            Some(("contract", value)) => module.contract = value.parse().unwrap(),
            None if word == "keyed" => module.protocols[0].route_by = 1,
            None if word == "dynamic" => {}
            _ => module.choice = word.into(),
        }
    }
    module
}

/// A protobuf body whose field 1 is this string.
pub fn string_field(text: &str) -> Vec<u8> {
    let mut body = vec![0x0a, text.len() as u8];
    body.extend_from_slice(text.as_bytes());
    body
}
