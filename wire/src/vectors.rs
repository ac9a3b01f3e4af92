//! The golden bytes that this crate and the JavaScript client must both write: `vectors.txt`.

use base::{ModuleId, ProtocolId, TypeId};
use bytes::BytesMut;

use crate::payload::{self, Head};
use crate::{auth, handshake, report, varint};

/// What a line asks for, as this crate writes it.
fn written(what: &[&str]) -> BytesMut {
    let mut out = BytesMut::new();
    let number = |at: usize| what[at].parse::<i64>().unwrap();
    let small = |at: usize| what[at].parse::<i32>().unwrap();
    match what[0] {
        "long" => varint::write_long(&mut out, number(1)),
        "uint" => varint::write_uint(&mut out, what[1].parse().unwrap()),
        "auth" => {
            let field = |at: usize| if what[at] == "-" { &[] } else { what[at].as_bytes() };
            let (account, token, app_version, queue_token) = (field(1), field(2), field(3), field(4));
            let auth = auth::Auth { account, token, app_version, queue_token };
            payload::encode_frame(&mut out, auth::AUTH, Head::request(1), |out| auth.encode(out));
        }
        "keep_alive" => handshake::keep_alive(&mut out, number(1)),
        "keep_alive_answer" => handshake::keep_alive_answer(&mut out, number(1)),
        "refusal" => {
            let type_id = TypeId::new(ModuleId(small(1)), ProtocolId(small(2)));
            payload::encode_refusal(&mut out, type_id, number(3), number(4));
        }
        "report" => {
            let from = [report::From::Link, report::From::Provider, report::From::DynamicModule];
            report::encode(&mut out, from[number(1) as usize], small(2), &what[3..].join(" "));
        }
        other => panic!("a line of the unknown kind {other}"),
    }
    out
}

#[test]
fn the_golden_bytes_are_written() {
    let lines = include_str!("vectors.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut seen = 0;
    for line in lines {
        let (what, hex) = line.split_once(" = ").unwrap();
        let what: Vec<&str> = what.split(' ').collect();
        let bytes: String = written(&what).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(bytes, hex, "{line}");
        if what[0] == "long" {
            let read = varint::read_long(&mut &written(&what)[..]);
            assert_eq!(read.map(|value| value.to_string()), Ok(what[1].to_owned()));
        }
        seen += 1;
    }
    assert!(seen > 40, "{seen} lines");
}
