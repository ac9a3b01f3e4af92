//! The macro without a compiler: blocks in, mistakes or generated items out.

use proc_macro2::TokenStream;

use crate::lock::Lock;

fn mistakes(args: &str, block: &str) -> Vec<String> {
    with_lock(args, block, None)
}

fn with_lock(args: &str, block: &str, lock: Option<&str>) -> Vec<String> {
    let parse = |text: &str| text.parse::<TokenStream>().expect("the test is Rust");
    said(&crate::expanded(parse(args), parse(block), &Lock::test(lock)).to_string())
}

/// The texts of the errors in what a macro wrote.
fn said(out: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = out;
    while let Some(at) = rest.find("compile_error !") {
        rest = &rest[at..];
        let open = rest.find('"').expect("a message");
        let close = open + 1 + end_of_string(&rest[open + 1..]);
        found.push(rest[open + 1..close].replace("\\\"", "\""));
        rest = &rest[close..];
    }
    found
}

fn end_of_string(text: &str) -> usize {
    let bytes = text.as_bytes();
    (0..bytes.len()).find(|&at| bytes[at] == b'"' && (at == 0 || bytes[at - 1] != b'\\')).expect("closed")
}

const SAY: &str = "impl Rank { #[handler] async fn say(&self, cx: &Cx, req: Say) -> Result<Said> { x } }";

#[test]
fn a_right_block_has_no_mistakes_and_stays_as_written() {
    assert_eq!(mistakes("id = 7", SAY), Vec::<String>::new());
    let out = crate::expanded("id = 7".parse().unwrap(), SAY.parse().unwrap(), &Lock::test(None)).to_string();
    assert!(out.starts_with("impl Rank { async fn say"), "{out}");
    assert!(out.contains("pub const SAY"), "{out}");
}

#[test]
fn all_mistakes_of_a_block_come_out_together() {
    let block = r#"impl Rank {
        #[handler(level = "low")] fn say(&mut self, cx: &Cx, req: &Say) {}
        #[handler(notify, id = 3)] async fn hum(&self, cx: &Cx, req: Hum) -> Result<u64> { x }
        #[handler(id = 3)] async fn sing(&self, req: Sing) -> Result<()> { x }
        #[on_broken] async fn gone(&self, cx: &Cx) -> u8 { x }
    }"#;
    let found = mistakes("id = 0, choice = \"random\"", block);
    let expected = [
        "module id 0 belongs to the framework; 0, 10000 and 11000 to 11999 are taken",
        "\"random\" is no choice; there are \"request\", \"hash_account\", \"hash_role\", \"hash_source\", \
         \"feed_full\", \"load\"",
        "\"low\" is no level; there are \"critical_plus\", \"critical\", \"normal\", \"sheddable\"",
        "a handler is an `async fn`",
        "write `&self`: many sessions call one module at once; keep what changes behind a lock",
        "a request is taken by value: it was decoded for this call alone",
        "`say` returns nothing; a handler returns `Result<Reply>` or `Result<()>`",
        "a `notify` handler answers nobody: return `Result<()>` or drop `notify`",
        "the first parameter after `&self` is `cx: &Cx`, or `tx: &mut Tx` for a transaction",
        "`sing` takes no request; write `sing(&self, cx: &Cx, request: Message)`",
        "id 3 is already used by `hum` in this module",
        "a hook returns nothing: nobody is left to answer",
    ];
    assert_eq!(found, expected);
}

#[test]
fn unknown_arguments_name_the_known_ones() {
    let found = mistakes("id = 7, chioce = \"load\"", SAY);
    assert!(found[0].contains("chioce") && found[0].contains("choice"), "{found:?}");
    assert_eq!(mistakes("", SAY), ["a module needs a number of its own in the cluster: `#[module(id = 7)]`"]);
    assert_eq!(mistakes("id = 7", "struct Rank;"), ["`#[module]` stands above an `impl` block"]);
}

#[test]
fn the_lock_notices_what_is_new_and_what_is_gone() {
    assert!(with_lock("id = 7", SAY, Some("Rank.say 7:5\nOther.gone 8:1\n")).is_empty());
    let found = with_lock("id = 7", SAY, Some("Rank.shout 7:5\n"));
    assert!(
        found[0].starts_with(
            "`Rank.say` does not stand in protocols.lock; if that is meant, run `LINKSTEAD_LOCK"
        )
    );
    assert!(found[1].starts_with("`Rank.shout` stands in protocols.lock and is gone"));
}

fn record_mistakes(item: &str) -> Vec<String> {
    said(&crate::record::derived(item.parse().expect("the test is Rust")).to_string())
}

const SCORE: &str = r#"#[record(table = "score", id = 101, key = u64)] pub struct Score { best: u64 }"#;

#[test]
fn a_right_record_is_one_impl_for_games_and_for_crates_of_ours() {
    let derived = |item: &str| crate::record::derived(item.parse().unwrap()).to_string();
    let out = derived(SCORE);
    assert!(out.starts_with("# [automatically_derived] impl :: linkstead :: Record for Score {"), "{out}");
    assert!(out.contains("Durability :: Grouped") && out.contains("TableId (101u32)"), "{out}");
    let key = "key = (Vec<u8>, BTreeMap<u8, u8>, [u8; 4])";
    let ours = format!(
        r#"#[record(crate = "crate", table = "_owner", id = 0xF000_0000, {key}, durability = "memory")]"#
    );
    let out = derived(&format!("{ours} struct Owner {{}}"));
    assert!(out.contains("impl crate :: Record for Owner") && out.contains("4026531840u32"), "{out}");
    assert!(out.contains("type Key = (Vec < u8 > , BTreeMap < u8 , u8 > , [u8 ; 4])"), "{out}");
    // An argument list may end with a comma, and stand in several attributes.
    assert!(record_mistakes(r#"#[record(table = "a",)] #[record(id = 1, key = u8,)] struct A;"#).is_empty());
}

#[test]
fn all_mistakes_of_a_record_come_out_together() {
    let found = record_mistakes(
        r#"#[record(tabel = "a", 5, id = 0, id = 7, key = "u64", durability = "often")] enum Score<T> { A(T) }"#,
    );
    let expected = [
        "a record is a struct with named fields; put `Score` into one as a field: `#[prost(oneof = …)]` or \
         `#[prost(enumeration = …)]`",
        "a record has no generic parameters: its table holds one type",
        "Unknown field: `tabel`. Did you mean `table`? There are `table`, `id`, `key`, `durability`",
        "write each argument with its name, such as `id = 101`",
        "`id` is said twice",
        "write a type, without quotes, such as `key = u64`",
        "a record's table needs a name: `#[record(table = \"score\")]`",
        "table id 0 belongs to the framework; take one from 1 to 2147483647",
        "\"often\" is no durability; there are \"memory\", \"grouped\", \"sync\"",
    ];
    assert_eq!(found, expected);
}

#[test]
fn numbers_and_names_of_tables_have_bounds() {
    let record = |table: &str, id: &str| {
        record_mistakes(&format!("#[record(table = {table:?}, id = {id}, key = u64)] struct A {{}}"))
    };
    let longest = "a".repeat(64);
    for (table, id) in [("a", "1"), (longest.as_str(), "2147483647"), ("a_9", "0x7fff_ffff")] {
        assert!(record(table, id).is_empty(), "{table} {id}");
    }
    let long = "a".repeat(65);
    for (table, id) in
        [("", "1"), (long.as_str(), "1"), ("Score", "1"), ("a-b", "1"), ("é", "1"), ("_a", "1")]
    {
        assert_eq!(record(table, id).len(), 1, "{table} {id}");
    }
    for id in ["0", "2147483648", "0xF000_0000", "4294967296", "-1", "1.5", "\"1\"", "ID"] {
        assert_eq!(record("a", id).len(), 1, "{id}");
    }
    assert_eq!(record_mistakes("struct A {}").len(), 3);
    assert_eq!(record_mistakes("#[record] struct A {}").len(), 4);
    assert_eq!(record_mistakes("#[record(table, id, key)] struct A(u8);").len(), 4);
    let found = record_mistakes("#[record(table = \"a\" id = 1, key = u8 u8, ix = 3)] struct A {}");
    let comma = |word: &str| format!("a comma belongs behind the value of `{word}`");
    let unknown = "Unknown field: `ix`; there are `table`, `id`, `key`, `durability`".to_owned();
    assert_eq!(found, [comma("table"), comma("key"), unknown]);
}
