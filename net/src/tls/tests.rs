//! Handshakes that must hold and handshakes that must not, over memory streams.

use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::hello::{Proof, Role};

const SOON: Duration = Duration::from_secs(5);

pub struct Authority(CertifiedIssuer<'static, KeyPair>);

pub struct Issued {
    pub cert: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn issue(&self, uris: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Issued {
        let mut params = CertificateParams::new(vec![NODE_NAME.to_owned()]).unwrap();
        for uri in uris {
            params.subject_alt_names.push(SanType::URI((*uri).try_into().unwrap()));
        }
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        Issued { cert: cert.pem(), key: key.serialize_pem() }
    }

    fn material(&self, uri: &str, change: impl FnOnce(&mut CertificateParams)) -> Material {
        let issued = self.issue(&[uri], change);
        Material::node(self.pem().as_bytes(), issued.cert.as_bytes(), issued.key.as_bytes()).unwrap()
    }

    fn security(&self, uri: &str) -> Security {
        Security::Tls(NodeTls::new(&self.material(uri, |_| {})).unwrap())
    }
}

const LINKD: &str = "linkstead://dev/linkd/linkd-1";
const GAME: &str = "linkstead://dev/provider/game-1";

type Met = (Result<Proof, TlsError>, Result<Proof, TlsError>);

/// Both ends' views after a handshake and one byte each way: in TLS 1.3 the dialling end learns only then.
async fn meet(server: &Security, client: &Security) -> Met {
    let (near, far) = tokio::io::duplex(4096);
    let from = "10.1.2.3:9".parse().unwrap();
    let accepting = async {
        let (mut stream, proof) = server.accept(far, from, SOON).await?;
        stream.write_all(b"s").await?;
        stream.flush().await?;
        Ok(proof)
    };
    let dialling = async {
        let (mut stream, proof) = client.dial(near, "linkd:7712", SOON).await?;
        stream.read_exact(&mut [0]).await?;
        Ok(proof)
    };
    tokio::join!(dialling, accepting)
}

fn cause(result: Result<Proof, TlsError>) -> Cause {
    result.unwrap_err().cause
}

#[tokio::test]
async fn two_nodes_of_one_authority_prove_who_they_are() {
    let authority = Authority::new();
    let (near, far) = meet(&authority.security(LINKD), &authority.security(GAME)).await;
    let is = |proof: Proof| match proof {
        Proof::Certificate(identity) => identity,
        other => panic!("{other:?}"),
    };
    assert_eq!(is(near.unwrap()).to_string(), LINKD);
    let game = is(far.unwrap());
    assert_eq!((game.cluster.as_str(), game.role, game.node.as_str()), ("dev", Role::Provider, "game-1"));
}

/// Holds: BI-051, D91.
#[tokio::test]
async fn certificates_that_do_not_hold_are_refused_by_cause_at_both_ends() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let node = |authority: &Authority, change: fn(&mut CertificateParams)| {
        Security::Tls(NodeTls::new(&authority.material(GAME, change)).unwrap())
    };
    let linkd = authority.security(LINKD);
    let expired = node(&authority, |params| params.not_after = rcgen::date_time_ymd(2001, 1, 1));
    assert_eq!(cause(meet(&linkd, &expired).await.1), Cause::Expired);
    assert_eq!(cause(meet(&linkd, &expired).await.0), Cause::Expired);
    let early = node(&authority, |params| params.not_before = rcgen::date_time_ymd(2201, 1, 1));
    assert_eq!(cause(meet(&linkd, &early).await.1), Cause::NotYetValid);
    let issued = stranger.issue(&[GAME], |_| {});
    let (cert, key) = (issued.cert.as_bytes(), issued.key.as_bytes());
    let other = Material::node(authority.pem().as_bytes(), cert, key).unwrap();
    let other = Security::Tls(NodeTls::new(&other).unwrap());
    assert_eq!(cause(meet(&linkd, &other).await.1), Cause::UnknownAuthority);
    let elsewhere = stranger.security(GAME);
    assert_eq!(cause(meet(&linkd, &elsewhere).await.0), Cause::UnknownAuthority);
}

/// Holds: D91, BI-050.
#[tokio::test]
async fn who_shows_no_certificate_is_nobody() {
    let authority = Authority::new();
    let linkd = authority.security(LINKD);
    let (near, far) = tokio::io::duplex(4096);
    let player = ClientTls::player(authority.pem().as_bytes(), NODE_NAME).unwrap();
    let dialling = async {
        let mut stream = player.connect(near, SOON).await?;
        stream.read_exact(&mut [0]).await?;
        Ok::<_, TlsError>(())
    };
    // Whoever is let in all the same finds the connection closed, so that nobody waits.
    let accepting = async { linkd.accept(far, "10.1.2.3:9".parse().unwrap(), SOON).await.map(|_closed| ()) };
    let (dialled, accepted) = tokio::join!(dialling, accepting);
    assert_eq!(accepted.unwrap_err().cause, Cause::NoCertificate);
    assert_eq!(dialled.unwrap_err().cause, Cause::NoCertificate);
}

#[test]
fn a_certificate_says_exactly_one_identity() {
    let authority = Authority::new();
    let read = |uris: &[&str]| {
        let issued = authority.issue(uris, |_| {});
        let material =
            Material::node(authority.pem().as_bytes(), issued.cert.as_bytes(), issued.key.as_bytes());
        material.map(|material| material.identity().unwrap().to_string()).map_err(|error| error.to_string())
    };
    assert_eq!(read(&[GAME, "spiffe://other/thing"]).unwrap(), GAME);
    for uris in [
        &[][..],
        &["spiffe://other/thing"],
        &[GAME, LINKD],
        &["linkstead://dev/provider"],
        &["linkstead://dev/king/game-1"],
        &["linkstead://dev/provider/game-1/x"],
        &["linkstead:///provider/game-1"],
    ] {
        let why = read(uris).unwrap_err();
        assert!(why.contains("linkstead:"), "{uris:?}: {why}");
    }
}

proptest::proptest! {
    /// Whatever stands in a certificate or in its URI, it is an identity or it is refused.
    #[test]
    fn strange_identities_are_refused_or_read_as_they_were_written(
        uri in "linkstead://[a-z./%_-]{0,12}(/linkd|/provider|)?/?[a-z0-9./ -]{0,12}",
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..600),
    ) {
        if let Ok(identity) = Identity::parse(&uri) {
            proptest::prop_assert_eq!(identity.to_string(), uri);
        }
        let _ = Identity::of_certificate(&bytes.into());
    }
}

/// Holds: BI-044.
#[tokio::test(start_paused = true)]
async fn a_hello_in_single_bytes_meets_the_deadline() {
    let authority = Authority::new();
    let linkd = authority.security(LINKD);
    let (mut near, far) = tokio::io::duplex(64 * 1024);
    let began = tokio::time::Instant::now();
    let dripping = tokio::spawn(async move {
        let mut record = vec![0x16, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc, 3, 3];
        record.resize(16 * 1024, 0);
        for byte in record {
            if near.write_all(&[byte]).await.is_err() {
                return;
            }
            // Sleep: the point is a client that is slow; time is paused.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let met = linkd.accept(far, "10.1.2.3:9".parse().unwrap(), SOON).await;
    assert_eq!(met.unwrap_err().cause, Cause::Deadline);
    assert_eq!(began.elapsed(), SOON);
    dripping.abort();
}

/// Holds: D93, X-15.
#[tokio::test]
async fn replaced_certificates_hold_for_new_handshakes_and_cut_nobody() {
    let (old, new) = (Authority::new(), Authority::new());
    let issued = old.issue(&["linkstead://dev/linkd/linkd-1"], |_| {});
    let material = Material::players(issued.cert.as_bytes(), issued.key.as_bytes()).unwrap();
    let server = ServerTls::players(&material).unwrap();
    let dial = async |authority: &Authority| {
        let (near, far) = tokio::io::duplex(4096);
        let player = ClientTls::player(authority.pem().as_bytes(), NODE_NAME).unwrap();
        let (near, far) = tokio::join!(player.connect(near, SOON), server.accept(far, SOON));
        Ok::<_, TlsError>((near?, far?))
    };
    let (mut near, mut far) = dial(&old).await.unwrap();
    let issued = new.issue(&["linkstead://dev/linkd/linkd-1"], |_| {});
    let renewed = Material::players(issued.cert.as_bytes(), issued.key.as_bytes()).unwrap();
    server.replace_players(&renewed).unwrap();
    // A certificate with somebody else's key changes nothing.
    let mixed = Material::players(issued.cert.as_bytes(), old.issue(&[], |_| {}).key.as_bytes()).unwrap();
    assert!(matches!(server.replace_players(&mixed), Err(MaterialError::Unusable(_))));
    assert_eq!(dial(&old).await.unwrap_err().cause, Cause::UnknownAuthority);
    dial(&new).await.unwrap();
    near.write_all(b"still here").await.unwrap();
    near.flush().await.unwrap();
    let mut heard = [0; 10];
    far.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"still here");
    let node = NodeTls::new(&old.material(LINKD, |_| {})).unwrap();
    let why = node.replace(&old.material(GAME, |_| {})).unwrap_err().to_string();
    assert!(why.contains(GAME) && why.contains(LINKD), "{why}");
}

/// Holds: X-10.
#[test]
fn keys_never_show() {
    let issued = Authority::new().issue(&[GAME], |_| {});
    let material = Material::players(issued.cert.as_bytes(), issued.key.as_bytes()).unwrap();
    let secret = issued.key.lines().nth(1).unwrap();
    let shown = format!("{material:?} {:?}", ServerTls::players(&material).unwrap());
    assert!(shown.contains("***") && !shown.contains(secret), "{shown}");
    let torn = format!("-----BEGIN PRIVATE KEY-----\n{secret}");
    let why = Material::players(issued.cert.as_bytes(), torn.as_bytes()).unwrap_err();
    assert!(!format!("{why} {why:?}").contains(secret), "{why}");
}

/// An outbox inside TLS sends what it was given, all of it, without being asked again.
#[tokio::test]
async fn an_outbox_flushes_what_tls_keeps_back() {
    let authority = Authority::new();
    let (linkd, game) = (authority.security(LINKD), authority.security(GAME));
    // So small that no record fits at once.
    let (near, far) = tokio::io::duplex(64);
    let from = "127.0.0.1:9".parse().unwrap();
    let (near, far) = tokio::join!(game.dial(near, "localhost:1", SOON), linkd.accept(far, from, SOON));
    let (near, mut far) = (near.unwrap().0, far.unwrap().0);
    let outbox = crate::Outbox::new(near, 1 << 20, 64);
    let drive = tokio::spawn(crate::outbox::drive(outbox.clone()));
    let reading = async {
        let mut heard = vec![0; 100_000];
        far.read_exact(&mut heard).await.unwrap();
        heard
    };
    outbox.push(100_000, |buf| buf.extend_from_slice(&[7; 100_000])).unwrap();
    outbox.flush();
    let heard = tokio::time::timeout(SOON, reading).await.unwrap();
    assert!(heard.iter().all(|byte| *byte == 7));
    outbox.close();
    drive.await.unwrap().unwrap();
}
