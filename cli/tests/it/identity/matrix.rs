//! Every port against every kind of certificate.

use std::sync::Arc;
use std::time::Duration;

use cli::cert::{Authority, Issued};
use client::{Client, Options};
use net::hello::{self, HelloError, Role};
use net::tls::{ClientTls, Identity, NODE_NAME, Secured, Security};
use net::{Tcp, preface};
use node::directory::JoinError;
use rcgen::CertificateParams;
use tavern::Tavern;
use tavern::messages::Login;
use tokio::io::AsyncReadExt;

use super::world::{ANY, SOON, World, authority, id, join, ours, security, within};

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
    /// What comes of it at the provider port and at the arbiter's, at the directory, and at the players' port, which asks for no certificate.
    expected: [&'static str; 3],
}

fn cases(ours: &Authority) -> Vec<Case> {
    let stranger = authority();
    let game = |change: fn(&mut CertificateParams)| {
        let identity = Identity::new("test", Role::Provider, id("game-9")).unwrap();
        ours.sign(&identity, &[], change).unwrap()
    };
    let certificate = |issued: &Issued| Shows::Certificate(security(ours, issued));
    let says = (Role::Provider, "game-9");
    let issue = |role, node| ours.issue(role, &id(node), &[], 1).unwrap();
    let other_cluster = Identity::new("live", Role::Provider, id("game-9")).unwrap();
    let other_cluster = ours.sign(&other_cluster, &[], |_| {}).unwrap();
    let nowhere = |name, shows, cause| Case { name, shows, says, expected: [cause; 3] };
    let refused = |name, issued: &Issued, cause| {
        let expected = [cause, cause, "admitted"];
        Case { name, shows: certificate(issued), says, expected }
    };
    vec![
        nowhere("in clear", Shows::Clear, "closed"),
        Case {
            name: "no certificate",
            shows: Shows::Nothing,
            says,
            expected: ["no_certificate", "no_certificate", "admitted"],
        },
        nowhere("TLS 1.2", Shows::OldTls, "version"),
        refused(
            "another authority",
            &stranger.issue(Role::Provider, &id("game-9"), &[], 1).unwrap(),
            "unknown_authority",
        ),
        refused("expired", &game(|params| params.not_after = rcgen::date_time_ymd(2001, 1, 1)), "expired"),
        // TLS has one alert for both; the accepting side's counter tells them apart.
        refused(
            "not yet valid",
            &game(|params| params.not_before = rcgen::date_time_ymd(2201, 1, 1)),
            "expired",
        ),
        Case {
            name: "the right authority, the wrong role, told honestly",
            shows: certificate(&issue(Role::Arbiter, "game-9")),
            says: (Role::Arbiter, "game-9"),
            expected: ["ROLE_VIOLATION", "admitted", "admitted"],
        },
        Case {
            name: "the right authority, the wrong role, denied",
            shows: certificate(&issue(Role::Arbiter, "game-9")),
            says,
            expected: ["ROLE_VIOLATION", "ROLE_VIOLATION", "admitted"],
        },
        Case {
            name: "another node's name in the hello",
            shows: certificate(&issue(Role::Provider, "game-8")),
            says,
            expected: ["IDENTITY_MISMATCH", "IDENTITY_MISMATCH", "admitted"],
        },
        Case {
            name: "another cluster of the same authority",
            shows: certificate(&other_cluster),
            says,
            expected: ["IDENTITY_MISMATCH", "IDENTITY_MISMATCH", "admitted"],
        },
        Case {
            name: "who it says to be",
            shows: certificate(&issue(Role::Provider, "game-9")),
            says,
            expected: ["admitted", "admitted", "admitted"],
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

async fn at_provider_port(world: &World, case: &Case) -> String {
    let mut stream = Tcp::dial(&world.linkd.provider_addr.to_string()).await.unwrap();
    preface::send(&mut stream, 0).await.unwrap();
    let (mut stream, proof) = match shake(&case.shows, &world.authority, stream).await {
        Ok(shaken) => shaken,
        Err(label) => return label,
    };
    said(within(hello::offer(&mut stream, &proof, &ours(case.says), &[Role::Linkd])).await)
}

async fn at_arbiter(world: &World, case: &Case) -> String {
    let stream = Tcp::dial(&world.arbiter.addr.to_string()).await.unwrap();
    let (mut stream, proof) = match shake(&case.shows, &world.authority, stream).await {
        Ok(shaken) => shaken,
        Err(label) => return label,
    };
    said(within(hello::offer(&mut stream, &proof, &ours(case.says), &[Role::Arbiter])).await)
}

fn said(hello: Result<net::Peer, HelloError>) -> String {
    match hello {
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

async fn at_players_port(world: &World, case: &Case) -> String {
    let stream = Tcp::dial(&world.linkd.client_addr.to_string()).await.unwrap();
    let (mut stream, _) = match shake(&case.shows, &world.authority, stream).await {
        Ok(shaken) => shaken,
        Err(label) => return label,
    };
    // The gateway greets whom it lets in.
    match within(stream.read_exact(&mut [0])).await {
        Ok(_) => "admitted".to_owned(),
        Err(error) => HelloError::from(error).label().to_owned(),
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
        let found = [
            at_provider_port(&world, &case).await,
            at_directory(&world, &case).await,
            at_players_port(&world, &case).await,
        ];
        let arbiter = at_arbiter(&world, &case).await;
        println!("{:<52} {}, arbiter {arbiter}", case.name, found.join(", "));
        if arbiter != case.expected[0] {
            wrong.push(format!("{}: {arbiter} at the arbiter, not {}", case.name, case.expected[0]));
        }
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
