//! Who may come in where: every port against every kind of certificate, and certificates that change under load.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::{Epoch, NodeId};
use cli::cert::{Authority, Issued};
use client::{Client, Options};
use linkstead::{Env, Linkds, Running};
use net::hello::{self, HelloError, Ours, Role};
use net::tls::{ClientTls, Identity, Material, NODE_NAME, NodeTls, Secured, Security, ServerTls};
use net::{Tcp, preface};
use node::config::{NodeConfig, Time};
use node::directory::JoinError;
use rcgen::CertificateParams;
use service_manager::ServiceManagerConfig;
use tavern::Tavern;
use tavern::messages::Login;
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

use crate::process::PATIENCE;

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
const SOON: Duration = Duration::from_secs(10);

fn id(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it took too long")
}

fn authority() -> Authority {
    Authority::new("test").unwrap().0
}

/// What a node shows and whom it believes, which may be two authorities.
fn security(believes: &Authority, issued: &Issued) -> Security {
    let (ca, cert, key) = (believes.pem.as_bytes(), issued.cert.as_bytes(), issued.key.as_bytes());
    Security::Tls(NodeTls::new(&Material::node(ca, cert, key).unwrap()).unwrap())
}

/// A directory, a gateway and a provider that prove to each other who they are.
struct World {
    authority: Authority,
    directory: SocketAddr,
    linkd: Arc<linkd::Linkd>,
    game: Running,
    _over: CancellationToken,
}

impl World {
    async fn start() -> Self {
        let authority = authority();
        let linkd = authority.security(Role::Linkd, &id("linkd-1")).unwrap();
        Self::start_with(authority, linkd).await
    }

    async fn start_with(authority: Authority, of_linkd: Security) -> Self {
        let listener = Tcp::listen(ANY).unwrap();
        let directory = listener.local_addr().unwrap();
        let config = NodeConfig { cluster: "test".into(), ..NodeConfig::default() };
        let mut parts = service_manager::server::Parts::new(&config, None, None).unwrap();
        parts.security = authority.security(Role::Directory, &parts.node).unwrap();
        let over = CancellationToken::new();
        let stop = over.clone();
        tokio::spawn(async move {
            let config = ServiceManagerConfig { warming: Some(Time::secs(0)), ..Default::default() };
            service_manager::run(&config, listener, parts, stop).await.unwrap();
        });
        let player = authority.issue(Role::Linkd, &id("linkd-1"), &[], 1).unwrap();
        let tls = Material::players(player.cert.as_bytes(), player.key.as_bytes()).unwrap();
        let tls = Some(ServerTls::players(&tls).unwrap());
        let joined = join(directory, "linkd-1", Role::Linkd, of_linkd.clone());
        let env =
            linkd::Env { security: of_linkd, tls, ..linkd::Env::insecure("test", id("linkd-1"), joined) };
        let ws_listen = linkd::config::Listen::Off;
        let config =
            linkd::Config { listen: ANY, ws_listen, provider_listen: ANY, workers: 2, ..Default::default() };
        let linkd = Arc::new(within(linkd::start(&config, env)).await.unwrap());
        let of_game = authority.security(Role::Provider, &id("game-1")).unwrap();
        let joined = join(directory, "game-1", Role::Provider, of_game.clone());
        let mut env = Env::new("test", id("game-1"), Linkds::Directory(joined));
        env.security = of_game;
        let config = linkstead::Config { max_online_new: u32::MAX, ..linkstead::Config::default() };
        let game = within(tavern::provider().start(config, env, over.clone())).await.unwrap();
        within(game.ready()).await;
        Self { authority, directory, linkd, game, _over: over }
    }

    async fn player(&self, account: &str) -> Result<Client, client::Error> {
        let options = Options::new(&self.linkd.client_addr.to_string(), account);
        within(Client::connect(options.tls(&self.authority.pem, NODE_NAME)?)).await
    }
}

fn join(directory: SocketAddr, name: &str, role: Role, security: Security) -> node::Directory {
    let joining = node::Join {
        cluster: "test".into(),
        node: id(name),
        role: role.as_str().into(),
        host: "here".into(),
        directory: vec![directory.to_string()],
        ops_address: String::new(),
        reconnect: net::dial::Backoff::new(Duration::from_millis(10), Duration::from_millis(100), 1),
        security,
    };
    node::directory::join(joining, CancellationToken::new())
}

/// One kind of stranger.
enum Shows {
    Nothing,
    OldTls,
    Clear,
    Certificate(Security),
}

struct Case {
    name: &'static str,
    shows: Shows,
    /// What the hello says.
    says: (Role, &'static str),
    /// What comes of it at the provider port and at the directory.
    expected: [&'static str; 2],
}

fn cases(authority: &Authority) -> Vec<Case> {
    let stranger = self::authority();
    let game = |change: fn(&mut CertificateParams)| {
        let identity = Identity::new("test", Role::Provider, id("game-9")).unwrap();
        authority.sign(&identity, &[], change).unwrap()
    };
    let certificate = |issued: &Issued| Shows::Certificate(security(authority, issued));
    let says = (Role::Provider, "game-9");
    let issue = |role, node| authority.issue(role, &id(node), &[], 1).unwrap();
    let other_cluster = Identity::new("live", Role::Provider, id("game-9")).unwrap();
    let other_cluster = authority.sign(&other_cluster, &[], |_| {}).unwrap();
    vec![
        Case { name: "in clear", shows: Shows::Clear, says, expected: ["closed", "closed"] },
        Case {
            name: "no certificate",
            shows: Shows::Nothing,
            says,
            expected: ["no_certificate", "no_certificate"],
        },
        Case { name: "TLS 1.2", shows: Shows::OldTls, says, expected: ["version", "version"] },
        Case {
            name: "another authority",
            shows: certificate(&stranger.issue(Role::Provider, &id("game-9"), &[], 1).unwrap()),
            says,
            expected: ["unknown_authority", "unknown_authority"],
        },
        Case {
            name: "expired",
            shows: certificate(&game(|params| params.not_after = rcgen::date_time_ymd(2001, 1, 1))),
            says,
            expected: ["expired", "expired"],
        },
        Case {
            // TLS has one alert for both; the accepting side's counter tells them apart.
            name: "not yet valid",
            shows: certificate(&game(|params| params.not_before = rcgen::date_time_ymd(2201, 1, 1))),
            says,
            expected: ["expired", "expired"],
        },
        Case {
            name: "the right authority, the wrong role, told honestly",
            shows: certificate(&issue(Role::Arbiter, "game-9")),
            says: (Role::Arbiter, "game-9"),
            expected: ["ROLE_VIOLATION", "admitted"],
        },
        Case {
            name: "the right authority, the wrong role, denied",
            shows: certificate(&issue(Role::Arbiter, "game-9")),
            says,
            expected: ["ROLE_VIOLATION", "ROLE_VIOLATION"],
        },
        Case {
            name: "another node's name in the hello",
            shows: certificate(&issue(Role::Provider, "game-8")),
            says,
            expected: ["IDENTITY_MISMATCH", "IDENTITY_MISMATCH"],
        },
        Case {
            name: "another cluster of the same authority",
            shows: certificate(&other_cluster),
            says,
            expected: ["IDENTITY_MISMATCH", "IDENTITY_MISMATCH"],
        },
        Case {
            name: "who it says to be",
            shows: certificate(&issue(Role::Provider, "game-9")),
            says,
            expected: ["admitted", "admitted"],
        },
    ]
}

/// TLS as the case has it; what the other end says of it otherwise.
async fn shake(
    shows: &Shows,
    authority: &Authority,
    mut stream: tokio::net::TcpStream,
) -> Result<(Secured<tokio::net::TcpStream>, hello::Proof), String> {
    let label = |error: net::tls::TlsError| error.cause.label().to_owned();
    match shows {
        Shows::Certificate(security) => security.dial(stream, "localhost:1", SOON).await.map_err(label),
        Shows::Nothing => {
            let player = ClientTls::player(authority.pem.as_bytes(), NODE_NAME).unwrap();
            let stream = player.connect(stream, SOON).await.map_err(label)?;
            Ok((stream, hello::Proof::Loopback(ANY)))
        }
        Shows::OldTls => Err(old_tls(authority, stream).await),
        Shows::Clear => {
            let ours = ours((Role::Provider, "game-9"));
            let proof = hello::Proof::Loopback(ANY);
            let met = within(hello::offer(&mut stream, &proof, &ours, &[Role::Linkd])).await;
            Err(if met.is_err() { "closed".to_owned() } else { "admitted".to_owned() })
        }
    }
}

async fn old_tls(authority: &Authority, stream: tokio::net::TcpStream) -> String {
    use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    match within(connector.connect(ServerName::try_from(NODE_NAME).unwrap(), stream)).await {
        Ok(_) => "admitted".to_owned(),
        Err(error) => net::tls::TlsError::from(error).cause.label().to_owned(),
    }
}

fn ours((role, node): (Role, &str)) -> Ours {
    Ours { cluster: "test".into(), node: id(node), role, epoch: Epoch(1), worker: 0 }
}

async fn at_provider_port(world: &World, case: &Case) -> String {
    let mut stream = Tcp::dial(&world.linkd.provider_addr.to_string()).await.unwrap();
    preface::send(&mut stream, 0).await.unwrap();
    let (mut stream, proof) = match shake(&case.shows, &world.authority, stream).await {
        Ok(shaken) => shaken,
        Err(label) => return label,
    };
    match within(hello::offer(&mut stream, &proof, &ours(case.says), &[Role::Linkd])).await {
        Ok(_) => "admitted".to_owned(),
        Err(HelloError::RefusedByPeer(refusal)) => wire::Code::find(refusal.code).unwrap().name.to_owned(),
        Err(error) => error.label().to_owned(),
    }
}

async fn at_directory(world: &World, case: &Case) -> String {
    let stream = Tcp::dial(&world.directory.to_string()).await.unwrap();
    let (mut stream, _) = match shake(&case.shows, &world.authority, stream).await {
        Ok(shaken) => shaken,
        Err(label) => return label,
    };
    // The directory's HTTP/2 speaks first, to whom it lets in.
    if let Err(error) = within(stream.read_exact(&mut [0])).await {
        return HelloError::from(error).label().to_owned();
    }
    let Shows::Certificate(security) = &case.shows else { return "admitted".to_owned() };
    let joined = join(world.directory, case.says.1, case.says.0, security.clone());
    match within(joined.epoch()).await {
        Ok(_) => {
            joined.leave().await;
            "admitted".to_owned()
        }
        Err(JoinError::Refused { name, .. }) => name.to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Every port against every kind of certificate.
///
/// Holds: BI-043, BI-050, BI-051, BI-052, D91, D92, Q57, Q70.
#[tokio::test(flavor = "multi_thread")]
async fn each_port_takes_exactly_those_who_belong_there() {
    let world = World::start().await;
    let mut wrong = Vec::new();
    for case in cases(&world.authority) {
        let found = [at_provider_port(&world, &case).await, at_directory(&world, &case).await];
        println!("{:<52} provider port {:<18} directory {}", case.name, found[0], found[1]);
        if found != case.expected {
            wrong.push(format!("{}: {found:?}, not {:?}", case.name, case.expected));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Nobody who belongs noticed.
    let ann = world.player("ann").await.unwrap();
    within(ann.request(Tavern::LOGIN, Login::default())).await.unwrap();
    assert!(world.game.is_ready());
}

/// The players' port asks for no certificate, shows its own, and speaks nothing older than TLS 1.3.
///
/// Holds: BI-043, BI-005.
#[tokio::test(flavor = "multi_thread")]
async fn players_see_who_the_gateway_is() {
    let world = World::start().await;
    let addr = world.linkd.client_addr.to_string();
    let ann = world.player("ann").await.unwrap();
    within(ann.request(Tavern::LOGIN, Login::default())).await.unwrap();
    let refused =
        |options: Options| async { within(Client::connect(options)).await.map(|_| ()).unwrap_err() };
    let other = Options::new(&addr, "eve").tls(&authority().pem, NODE_NAME).unwrap();
    let error = refused(other).await;
    assert!(
        matches!(&error, client::Error::Unproven { reason, .. } if reason.contains("unknown_authority")),
        "{error}"
    );
    let name = Options::new(&addr, "eve").tls(&world.authority.pem, "play.example.com").unwrap();
    let error = refused(name).await;
    assert!(
        matches!(&error, client::Error::Unproven { reason, .. } if reason.contains("wrong_name")),
        "{error}"
    );
    let stream = Tcp::dial(&addr).await.unwrap();
    assert_eq!(old_tls(&world.authority, stream).await, "version");
    let clear = Options { connect_timeout: Duration::from_secs(20), ..Options::new(&addr, "eve") };
    refused(clear).await;
    assert!(Options::new(&addr, "eve").tls("no PEM", NODE_NAME).is_err());
}

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

/// The certificate that the other end of a provider port shows now.
async fn shown(world: &World, dialler: &Security) -> Vec<u8> {
    let mut stream = Tcp::dial(&world.linkd.provider_addr.to_string()).await.unwrap();
    preface::send(&mut stream, 0).await.unwrap();
    let (stream, _) = dialler.dial(stream, "localhost:1", SOON).await.unwrap();
    let Secured::Tls(stream) = stream else { panic!("in clear") };
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

/// Certificates are exchanged while players play: nobody is cut off, new handshakes see the new one, a bad file keeps it
/// and raises an alarm.
///
/// Holds: D93, X-15.
#[tokio::test(flavor = "multi_thread")]
async fn certificates_change_under_load_and_nobody_is_cut_off() {
    let (authority, dir) = (authority(), tempfile::tempdir().unwrap());
    let write = |issued: &Issued| {
        use std::os::unix::fs::PermissionsExt;
        let (cert, key) = (dir.path().join("linkd-1.pem"), dir.path().join("linkd-1.key"));
        std::fs::write(&key, &issued.key).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(cert, &issued.cert).unwrap();
    };
    let issue = |authority: &Authority| authority.issue(Role::Linkd, &id("linkd-1"), &[], 1).unwrap();
    std::fs::write(dir.path().join("ca.pem"), &authority.pem).unwrap();
    write(&issue(&authority));
    let mut config = NodeConfig { cluster: "test".into(), ..NodeConfig::default() };
    config.tls.dir = dir.path().to_owned();
    config.tls.look = Time::millis(20);
    let proven = node::tls::secure(&config, Role::Linkd, &id("linkd-1")).unwrap();
    let (security, readiness) = (proven.security.clone(), node::ops::Readiness::new(&[]));
    let keeping = proven.keep(readiness.clone()).unwrap();
    let world = World::start_with(authority, security).await;
    let ann = world.player("ann").await.unwrap();
    let before = world.linkd.summary().providers.len();

    let over = CancellationToken::new();
    let playing = tokio::spawn({
        let over = over.clone();
        async move {
            let mut answered = 0u32;
            while !over.is_cancelled() {
                within(ann.request(Tavern::LOGIN, Login::default())).await.unwrap();
                answered += 1;
            }
            answered
        }
    });
    let dialler = world.authority.security(Role::Provider, &id("game-9")).unwrap();
    for _ in 0..3 {
        let (old, new) = (shown(&world, &dialler).await, issue(&world.authority));
        write(&new);
        let began = Instant::now();
        while shown(&world, &dialler).await == old {
            assert!(began.elapsed() < PATIENCE, "the new certificate was never shown");
        }
    }
    let last = shown(&world, &dialler).await;
    std::fs::write(dir.path().join("linkd-1.pem"), "-----BEGIN NOTHING").unwrap();
    let began = Instant::now();
    while readiness.warnings().is_empty() {
        assert!(began.elapsed() < PATIENCE, "no alarm");
        tokio::task::yield_now().await;
    }
    assert!(readiness.warnings()["node_tls"].contains("linkd-1.pem"), "{:?}", readiness.warnings());
    assert_eq!(shown(&world, &dialler).await, last);
    assert!(readiness.reasons().is_empty());
    over.cancel();
    assert!(within(playing).await.unwrap() > 0);
    assert!(world.game.is_ready());
    assert_eq!(world.linkd.summary().providers.len(), before);
    keeping.abort();
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
