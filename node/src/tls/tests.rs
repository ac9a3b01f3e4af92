//! Files good and bad, at the start and while a process runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};

use super::*;
use crate::ops::Readiness;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn issue(authority: &Authority, dir: &Path, uri: &str, change: impl FnOnce(&mut CertificateParams)) {
    let mut params = CertificateParams::new(vec![net::tls::NODE_NAME.to_owned()]).unwrap();
    params.subject_alt_names.push(SanType::URI(uri.try_into().unwrap()));
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let cert = params.signed_by(&key, authority).unwrap();
    let node = uri.rsplit('/').next().unwrap();
    fs::write(dir.join("ca.pem"), authority.pem()).unwrap();
    fs::write(dir.join(format!("{node}.pem")), cert.pem()).unwrap();
    write_key(&dir.join(format!("{node}.key")), &key.serialize_pem());
}

fn write_key(path: &Path, pem: &str) {
    fs::write(path, pem).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

fn config(dir: &Path) -> NodeConfig {
    let mut config = NodeConfig { cluster: "dev".to_owned(), ..NodeConfig::default() };
    config.tls.dir = dir.to_owned();
    config
}

fn node() -> NodeId {
    NodeId::new("linkd-1").unwrap()
}

const LINKD: &str = "linkstead://dev/linkd/linkd-1";

#[test]
fn a_node_without_certificates_says_both_ways_out() {
    let refused = |config: &NodeConfig| secure(config, Role::Linkd, &node()).unwrap_err().to_string();
    let why = refused(&NodeConfig::default());
    assert!(
        why.contains("node.tls.dir") && why.contains("cert issue --dir certs --role linkd --node linkd-1"),
        "{why}"
    );
    assert!(why.contains("node.insecure = true"), "{why}");
    let insecure = NodeConfig { insecure: true, ..NodeConfig::default() };
    assert!(!secure(&insecure, Role::Linkd, &node()).unwrap().security.is_tls());
    let far = NodeConfig { directory: vec!["10.0.0.1:7720".to_owned()], ..insecure.clone() };
    assert!(refused(&far).starts_with("node.directory: 10.0.0.1:7720"), "{}", refused(&far));
    let both = NodeConfig { tls: config(Path::new("certs")).tls, ..insecure };
    assert!(refused(&both).starts_with("node.insecure: "), "{}", refused(&both));
}

/// Holds: BI-115.
#[test]
fn a_key_that_others_can_read_is_refused_by_name_and_mode() {
    let dir = tempfile::tempdir().unwrap();
    issue(&authority(), dir.path(), LINKD, |_| {});
    assert!(secure(&config(dir.path()), Role::Linkd, &node()).unwrap().security.is_tls());
    let key = dir.path().join("linkd-1.key");
    for (mode, good) in [(0o644, false), (0o640, false), (0o604, false), (0o400, true), (0o600, true)] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        match secure(&config(dir.path()), Role::Linkd, &node()) {
            Ok(_) => assert!(good, "{mode:o}"),
            Err(why) => {
                let why = why.to_string();
                assert!(!good && why.starts_with("node.tls.key: "), "{mode:o}: {why}");
                assert!(why.contains("linkd-1.key") && why.contains(&format!("{mode:04o}")), "{why}");
            }
        }
    }
}

/// Holds: BI-051, BI-112.
#[test]
fn certificates_that_can_not_serve_are_refused_at_the_start_by_their_cause() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |uri: &str, change: fn(&mut CertificateParams)| {
        issue(&authority(), dir.path(), uri, change);
        secure(&config(dir.path()), Role::Linkd, &node()).unwrap_err().to_string()
    };
    let expired = refused(LINKD, |params| params.not_after = rcgen::date_time_ymd(2001, 1, 1));
    assert!(expired.starts_with("node.tls.cert: ") && expired.contains("expired on 2001-01-01"), "{expired}");
    let early = refused(LINKD, |params| params.not_before = rcgen::date_time_ymd(2201, 1, 1));
    assert!(early.contains("before 2201-01-01"), "{early}");
    let role = refused("linkstead://dev/provider/linkd-1", |_| {});
    assert!(role.contains("dev/provider/linkd-1") && role.contains(LINKD), "{role}");
    let cluster = refused("linkstead://live/linkd/linkd-1", |_| {});
    assert!(cluster.contains("linkstead://live/linkd/linkd-1"), "{cluster}");
    issue(&authority(), dir.path(), LINKD, |_| {});
    write_key(&dir.path().join("linkd-1.key"), &KeyPair::generate().unwrap().serialize_pem());
    let mixed = secure(&config(dir.path()), Role::Linkd, &node()).unwrap_err().to_string();
    assert!(mixed.contains("can't be used together"), "{mixed}");
    fs::remove_file(dir.path().join("ca.pem")).unwrap();
    let missing = secure(&config(dir.path()), Role::Linkd, &node()).unwrap_err().to_string();
    assert!(missing.starts_with("node.tls.ca: ") && missing.contains("ca.pem"), "{missing}");
}

/// Holds: D93, X-15.
#[test]
fn changed_files_are_used_and_bad_ones_raise_an_alarm() {
    let dir = tempfile::tempdir().unwrap();
    let authority = authority();
    issue(&authority, dir.path(), LINKD, |_| {});
    let proven = secure(&config(dir.path()), Role::Linkd, &node()).unwrap();
    let (Security::Tls(tls), Some((files, digest, validity, _))) = (proven.security, proven.files) else {
        panic!("it has files")
    };
    let replaced = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let count = replaced.clone();
    let replace = move |new: &Material| {
        tls.replace(new)?;
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Ok(())
    };
    let readiness = Readiness::new(&[]);
    let kept = Kept { name: "node", alarm: "node_tls" };
    let mut keeper = Keeper::new(kept, files, digest, validity, Box::new(replace), readiness.clone());
    let mut look = |expected: u32| {
        keeper.look(false);
        assert_eq!(replaced.load(std::sync::atomic::Ordering::SeqCst), expected);
        readiness.warnings().get("node_tls").cloned()
    };
    assert_eq!(look(0), None);
    // Between the two writes of a renewal the pair does not fit; the alarm goes when it does.
    let key = fs::read_to_string(dir.path().join("linkd-1.key")).unwrap();
    issue(&authority, dir.path(), LINKD, |_| {});
    let new_key = fs::read_to_string(dir.path().join("linkd-1.key")).unwrap();
    write_key(&dir.path().join("linkd-1.key"), &key);
    assert!(look(0).unwrap().contains("can't be used together"));
    write_key(&dir.path().join("linkd-1.key"), &new_key);
    assert_eq!(look(1), None);
    // Somebody else's certificate, and garbage.
    issue(&authority, dir.path(), "linkstead://dev/linkd/linkd-2", |_| {});
    fs::copy(dir.path().join("linkd-2.pem"), dir.path().join("linkd-1.pem")).unwrap();
    write_key(&dir.path().join("linkd-1.key"), &fs::read_to_string(dir.path().join("linkd-2.key")).unwrap());
    assert!(look(1).unwrap().contains("linkd-2"));
    fs::write(dir.path().join("linkd-1.pem"), "nothing").unwrap();
    let alarm = look(1).unwrap();
    assert!(alarm.contains("node.tls.cert") && !alarm.contains("PRIVATE"), "{alarm}");
    assert!(readiness.reasons().is_empty(), "a bad file is no reason to serve nobody");
}
