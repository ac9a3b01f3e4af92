//! Files in, a typed value or the printed mistakes out.

use std::collections::BTreeMap;
use std::path::PathBuf;

use expect_test::{Expect, expect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::*;

/// A root as the `linkstead` binary composes one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Root {
    node: NodeConfig,
    linkd: Gate,
    modules: BTreeMap<String, Module>,
}

/// A gateway.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Gate {
    /// Players at once | hard limit.
    max_connections: u32,
    frame_max: Size,
    handshake: Time,
    secret: Secret,
    ports: Vec<u16>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Module {
    /// Requests that may wait.
    queue: u32,
}

impl Default for Gate {
    fn default() -> Self {
        let (frame_max, handshake) = (Size::kib(64), Time::secs(10));
        Self { max_connections: 50_000, frame_max, handshake, secret: Secret::default(), ports: vec![7710] }
    }
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn sources(&self, name: &str) -> Sources {
        Sources { files: vec![self.path(name)], presets: PRESETS.to_vec(), ..Sources::default() }
    }

    fn problems(&self, sources: &Sources) -> String {
        let problems = load::<Root>(sources).unwrap_err();
        let folder = format!("{}/", self.0.path().display());
        problems.iter().map(|problem| format!("{problem}\n").replace(&folder, "")).collect()
    }
}

fn check(text: &str, expected: Expect) {
    let folder = Folder::new(&[("a.toml", text)]);
    expected.assert_eq(&folder.problems(&folder.sources("a.toml")));
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

#[test]
fn later_sources_win() {
    let folder = Folder::new(&[
        (
            "a.toml",
            "include = [\"b.toml\"]\n[node]\nid = \"file\"\ncluster = \"file\"\nhost = \"file\"\n[node.stop]\nsave = \"1s\"\n\
             [linkd]\nmax_connections = 1\n[profile.big.linkd]\nmax_connections = 3\nframe_max = \"3KiB\"\n",
        ),
        ("b.toml", "[node]\ncluster = \"include\"\n[linkd]\nmax_connections = 2\nhandshake = \"2s\"\n"),
    ]);
    let mut sources = folder.sources("a.toml");
    let loaded = load::<Root>(&sources).unwrap().config;
    assert_eq!((loaded.node.id.as_str(), loaded.node.cluster.as_str()), ("file", "include"));
    assert_eq!(loaded.linkd.max_connections, 2);
    sources.profile = Some("big".to_owned());
    let loaded = load::<Root>(&sources).unwrap().config;
    assert_eq!((loaded.linkd.max_connections, loaded.linkd.frame_max), (3, Size::kib(3)));
    sources.env = pairs(&[
        ("LINKSTEAD_LINKD__MAX_CONNECTIONS", "4"),
        ("LINKSTEAD_NODE__HOST", "7"),
        ("LINKSTEAD_LINKD__PORTS", "[1, 2]"),
        ("LINKSTEAD_PLANTED", "not configuration"),
        ("PATH", "x"),
    ]);
    sources.set = vec!["linkd.handshake=5s".to_owned(), "modules.chat.queue=9".to_owned()];
    let loaded = load::<Root>(&sources).unwrap();
    let root = &loaded.config;
    assert_eq!((root.linkd.max_connections, root.linkd.ports.as_slice()), (4, &[1, 2][..]));
    assert_eq!((root.node.host.as_str(), root.linkd.handshake), ("7", Time::secs(5)));
    assert_eq!(root.modules["chat"].queue, 9);
    assert_eq!(
        loaded.place("linkd.max_connections").to_string(),
        "environment LINKSTEAD_LINKD__MAX_CONNECTIONS"
    );
    let complaint = loaded.problem("linkd.frame_max", "too small").to_string();
    assert!(complaint.ends_with("a.toml:12: linkd.frame_max: too small"), "{complaint}");
}

/// Holds: BI-109.
#[test]
fn every_mistake_comes_out_with_line_and_nearest_key() {
    check(
        "[node]\nidd = 1\n[linkd]\nmax_conections = 7\nhandshake = 5\nframe_max = \"many\"\nports = [1, 70000]\n\
         [linkdd]\nx = 1\n[modules.chat]\nqueeu = 1\n[node.stop]\ngrace = \"1s\"\n",
        expect![[r#"
            a.toml:4: linkd.max_conections: unknown key; did you mean linkd.max_connections?
            a.toml:8: linkdd: unknown key; did you mean linkd?
            a.toml:11: modules.chat.queeu: unknown key; did you mean modules.chat.queue?
            a.toml:2: node.idd: unknown key; did you mean node.id?
            a.toml:13: node.stop.grace: unknown key; did you mean node.grace?
            a.toml:6: linkd.frame_max: "many" is not a size; write such as 64KiB, 2MB or 4096
            a.toml:5: linkd.handshake: invalid type: integer `5`, expected a time such as "5s" or "200ms"
            a.toml:7: linkd.ports.1: invalid value: integer `70000`, expected u16
        "#]],
    );
}

/// Holds: BI-109.
#[test]
fn a_syntax_error_names_its_line() {
    check(
        "[node]\nid = \"a\nhost = 1\n",
        expect![[r#"
        a.toml:2: invalid basic string, expected `"`
    "#]],
    );
    check(
        "[node]\nid = \"a\"\nid = \"b\"\n",
        expect![[r#"
        a.toml:3: duplicate key
    "#]],
    );
}

/// Holds: BI-108.
#[test]
fn a_file_that_can_not_be_one_is_one_line() {
    let folder = Folder::new(&[
        ("empty.toml", " \n"),
        ("bytes.toml", ""),
        ("loop.toml", "include = [\"loop.toml\"]\n"),
    ]);
    std::fs::write(folder.path("bytes.toml"), [0xff, 0xfe, b'a']).unwrap();
    let missing = folder.sources("missing.toml");
    assert_eq!(
        folder.problems(&missing),
        "missing.toml: can't be read: No such file or directory (os error 2)\n"
    );
    assert_eq!(folder.problems(&folder.sources("empty.toml")), "empty.toml: is empty\n");
    assert_eq!(folder.problems(&folder.sources("bytes.toml")), "bytes.toml: is not UTF-8 text\n");
    let directory = Sources { files: vec![folder.0.path().to_owned()], ..Sources::default() };
    assert!(folder.problems(&directory).ends_with("is a directory, not a file\n"));
    let circle = folder.problems(&folder.sources("loop.toml"));
    assert_eq!(circle, "loop.toml:1: include: includes go round in a circle or deeper than 8\n");
}

#[test]
fn flags_and_variables_are_named_when_they_are_wrong() {
    let folder = Folder::new(&[("a.toml", "[provider]\nx = 1\n")]);
    let mut sources = folder.sources("a.toml");
    sources.tolerated = vec!["provider".to_owned()];
    sources.env = pairs(&[("LINKSTEAD_LINKD__MAX_CONNECTIONS", "lots"), ("LINKSTEAD_LINKD__PROTS", "[]")]);
    sources.set = vec!["nonsense".to_owned(), "node.stopp.save=1s".to_owned()];
    expect![[r#"
        --set nonsense: write key=value
        environment LINKSTEAD_LINKD__PROTS: linkd.prots: unknown key; did you mean linkd.ports?
        --set node.stopp.save=1s: node.stopp: unknown key; did you mean node.stop?
        environment LINKSTEAD_LINKD__MAX_CONNECTIONS: linkd.max_connections: invalid type: string "lots", expected u32
    "#]]
    .assert_eq(&folder.problems(&sources));
}

#[test]
fn the_dev_profile_waits_for_nobody_unless_told() {
    let folder = Folder::new(&[
        ("a.toml", "[node]\nprofile = \"dev\"\n[node.stop]\nsave = \"1s\"\n"),
        ("b.toml", "[node]\nprofile = \"dev\"\n[node.stop]\npropagation = \"3s\"\n"),
        ("c.toml", "[node]\nprofile = \"devel\"\n[profile.prod]\n"),
    ]);
    let stop = |name: &str| load::<Root>(&folder.sources(name)).unwrap().config.node.stop;
    assert_eq!((stop("a.toml").propagation, stop("a.toml").save), (Time::secs(0), Time::secs(1)));
    assert_eq!(stop("b.toml").propagation, Time::secs(3));
    expect![[r#"
        c.toml:2: node.profile: no profile is called "devel"; known are dev, prod
    "#]]
    .assert_eq(&folder.problems(&folder.sources("c.toml")));
}

#[test]
fn nothing_at_all_is_the_default() {
    assert_eq!(load::<Root>(&Sources::default()).unwrap().config, Root::default());
}

#[test]
fn what_is_printed_can_be_read_back_but_for_secrets() {
    let mut root: Root =
        load(&Sources { set: vec!["linkd.secret=hush".to_owned()], ..Sources::default() }).unwrap().config;
    assert_eq!(root.linkd.secret.expose(), "hush");
    root.node.ops = Some("127.0.0.1:7700".parse().unwrap());
    let text = print_config(&root).unwrap();
    assert!(!text.contains("hush") && !format!("{root:?}").contains("hush"), "{text}");
    let folder = Folder::new(&[("a.toml", &text)]);
    let mut again = load::<Root>(&folder.sources("a.toml")).unwrap().config;
    again.linkd.secret = root.linkd.secret.clone();
    assert_eq!(again, root);
}

#[test]
fn the_reference_lists_every_key() {
    let page = reference(&schema_of::<Root>());
    let linkd: String = page.split_inclusive("\n## ").filter(|part| !part.contains("[node]`")).collect();
    expect![[r#"
        ## `[linkd]`

        A gateway.

        | key | type | default | meaning |
        |---|---|---|---|
        | `linkd.frame_max` | size | `"64KiB"` |  |
        | `linkd.handshake` | time | `"10s"` |  |
        | `linkd.max_connections` | number | `50000` | Players at once \| hard limit. |
        | `linkd.ports` | list | `[7710]` |  |
        | `linkd.secret` | secret | `""` |  |

        ## `[modules]`

        | key | type | default | meaning |
        |---|---|---|---|
        | `modules.<name>.queue` | number | `0` | Requests that may wait. |

        ## "#]]
    .assert_eq(&linkd);
    for row in
        ["| `node.log.format` | `\"text\"` or `\"json\"` | `\"text\"` |", "| `node.ops` | text | not set |"]
    {
        assert!(page.contains(row), "{row} is not in\n{page}");
    }
}

#[test]
fn units_read_as_people_write_and_print_exactly() {
    for (text, size) in [("64KiB", 65_536), ("2MB", 2_000_000), ("4096", 4_096), ("1GiB", 1 << 30)] {
        assert_eq!(text.parse(), Ok(Size(size)));
    }
    for size in [0, 1, 1_000, 1_536, 65_536, 3 << 20, 5 << 30] {
        assert_eq!(Size(size).to_string().parse(), Ok(Size(size)));
    }
    for text in ["5s", "200ms", "1m30s", "0s"] {
        let time: Time = text.parse().unwrap();
        assert_eq!(time.to_string().parse(), Ok(time));
    }
    for bad in ["", "5", "-1s", "five", "1e9s"] {
        assert!(bad.parse::<Time>().is_err(), "{bad}");
    }
    assert!("-1".parse::<Size>().is_err() && "x".parse::<Size>().is_err());
}
