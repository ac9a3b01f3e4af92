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
