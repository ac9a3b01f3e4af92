//! `docs/reference/config.md` and `docs/reference/errors.md` are written from the code: `UPDATE_EXPECT=1` rewrites them.

use std::fmt::Write;
use std::path::PathBuf;

use base::{Blame, Retry};
use expect_test::expect_file;
use wire::code;

fn page(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/reference").join(name)
}

#[test]
fn the_configuration_page_is_the_code() {
    let head = "# Configuration\n\n\
        TOML. Later sources win: built-in profile < files < includes < `[profile.NAME]` < environment \
        (`LINKSTEAD_LINKD__LISTEN`) < `--set KEY=VALUE`. Unknown keys fail and name the nearest one. Durations are \
        `5s` or `200ms`, sizes `64KiB`.\n\n\
        `linkstead check-config` reads it and says what is wrong; `linkstead print-config` prints what is in effect. \
        This page is written from the code.\n\n";
    let keys = node::config::reference(&node::config::schema_of::<cli::config::Config>());
    expect_file![page("config.md")].assert_eq(&format!("{head}{}\n", keys.trim_end()));
}

#[test]
fn the_errors_page_is_the_registry() {
    let mut out = String::from(
        "# Errors\n\n\
         One registry for the whole wire. A close with a code is a ReportError from the linkd with this number and \
         name, then the end of the stream; a refused request carries the result. Between nodes the number stands in a \
         refusal. A game's own codes are `module id << 32 | code`. This page is written from the code.\n\n\
         | name | number | result | whose fault | retry | what happened | what to do |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for code in code::ALL {
        let blame = match code.blame {
            Blame::Client => "the client's",
            Blame::Peer => "a peer's",
            Blame::Us => "ours",
        };
        let (name, number, result, retry) = (code.name, code.number, code.result(), code.retry);
        let (what, remedy) = (code.what, code.remedy);
        writeln!(out, "| {name} | {number} | {result} | {blame} | {retry} | {what} | {remedy} |").unwrap();
    }
    expect_file![page("errors.md")].assert_eq(&out);
}

/// The JavaScript client is one file, so its table of codes stands in it, between two marks.
#[test]
fn the_codes_of_the_javascript_client_are_the_registry() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../clients/js/linkstead.js");
    let client = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = client.split_once("  // codes: begin").unwrap();
    let (first, rest) = rest.split_once('\n').unwrap();
    let (_, tail) = rest.split_once("  // codes: end\n").unwrap();
    let mut rows = String::new();
    for code in code::ALL {
        let blame = match code.blame {
            Blame::Client => "client",
            Blame::Peer => "peer",
            Blame::Us => "us",
        };
        let (retry, after_ms) = match code.retry {
            Retry::Never => ("never", 0),
            Retry::Now => ("now", 0),
            Retry::After(span) => ("after", span.as_millis()),
            Retry::Unknown => ("unknown", 0),
        };
        let (name, number, what, remedy) = (code.name, code.number, code.what, code.remedy);
        let words = serde_json::json!([what, remedy]).to_string();
        let words = words.trim_start_matches('[').trim_end_matches(']').replace("\",\"", "\", \"");
        writeln!(rows, "  code(\"{name}\", {number}, \"{blame}\", \"{retry}\", {after_ms}, {words}),")
            .unwrap();
    }
    expect_file![path].assert_eq(&format!("{head}  // codes: begin{first}\n{rows}  // codes: end\n{tail}"));
}

/// Whoever makes tickets in another language checks himself against the page, so the page must be right.
#[test]
fn the_ticket_of_the_guide_is_what_it_says() {
    use wire::ticket::{Expect, Hex, Keys, Signer, Ticket};
    let page = std::fs::read_to_string(page("../guides/authentication.md")).unwrap();
    let (_, vector) = page.split_once("```text\nprivate ").unwrap();
    let vector = format!("private {}", vector.split("```").next().unwrap());
    let value = |name: &str| {
        let line = vector.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.unwrap().split_whitespace().nth(1).unwrap().to_owned()
    };
    let bytes = |name: &str| -> Vec<u8> {
        let text = value(name);
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    };
    let signer = Signer::new(7, &bytes("private").try_into().unwrap());
    assert!(signer.public().to_string().contains(&value("public")));
    let ticket = Ticket {
        kid: 7,
        issued: 1_800_000_000,
        not_before: 1_800_000_000,
        expires: 1_800_000_300,
        id: bytes("ticket-id").try_into().unwrap(),
        app_main: 3,
        audience: "isles".into(),
        account: base::Account::new("ann").unwrap(),
    };
    assert_eq!(ticket.sign(&signer).unwrap(), value("ticket"));
    let (app, audience) = (base::AppVersion(0), "isles");
    let expect = Expect { now_unix: 1_800_000_001, audience, app, account: None };
    let keys = Keys::new([signer.public()]).unwrap();
    assert_eq!(Ticket::verify(value("ticket").as_bytes(), &keys, expect), Ok(ticket));
    // The parts, put together by hand.
    let whole = [bytes("body"), bytes("signature")].concat();
    assert_eq!((Hex(&whole[28..44]).to_string(), whole.len()), (value("ticket-id"), 120));
    assert_eq!(base64url(&whole), value("ticket"));
}

fn base64url(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits = |at: usize| {
        (0..6).fold(0, |sum, bit| {
            let bit = at * 6 + bit;
            let set = bytes.get(bit / 8).is_some_and(|byte| byte & (0x80 >> (bit % 8)) != 0);
            sum * 2 + usize::from(set)
        })
    };
    (0..(bytes.len() * 8).div_ceil(6)).map(|at| char::from(LETTERS[bits(at)])).collect()
}
