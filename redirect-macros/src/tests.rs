//! The macro without a compiler: blocks in, mistakes or generated items out.

use proc_macro2::TokenStream;

use crate::lock::Lock;

fn mistakes(args: &str, block: &str) -> Vec<String> {
    with_lock(args, block, None)
}

fn with_lock(args: &str, block: &str, lock: Option<&str>) -> Vec<String> {
    let parse = |text: &str| text.parse::<TokenStream>().expect("the test is Rust");
    let out = crate::expanded(parse(args), parse(block), &Lock::test(lock)).to_string();
    let mut found = Vec::new();
    let mut rest = out.as_str();
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
        "the first parameter after `&self` is `cx: &Cx`",
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
