//! The JavaScript client's protobuf agrees with the providers' about every kind of field: the types it is given and
//! the golden bytes of its test are written here. `UPDATE_EXPECT=1` rewrites them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use expect_test::expect_file;
use linkstead::{Cx, Result, module};
use prost::Message;

/// `clients/js/test/everything.proto`, by hand.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Everything {
    #[prost(int32, tag = "1")]
    int32: i32,
    #[prost(int64, tag = "2")]
    int64: i64,
    #[prost(uint32, tag = "3")]
    uint32: u32,
    #[prost(uint64, tag = "4")]
    uint64: u64,
    #[prost(sint32, tag = "5")]
    sint32: i32,
    #[prost(sint64, tag = "6")]
    sint64: i64,
    #[prost(fixed32, tag = "7")]
    fixed32: u32,
    #[prost(fixed64, tag = "8")]
    fixed64: u64,
    #[prost(sfixed32, tag = "9")]
    sfixed32: i32,
    #[prost(sfixed64, tag = "10")]
    sfixed64: i64,
    #[prost(float, tag = "11")]
    float: f32,
    #[prost(double, tag = "12")]
    double: f64,
    #[prost(bool, tag = "13")]
    bool: bool,
    #[prost(string, tag = "14")]
    string: String,
    #[prost(bytes = "vec", tag = "15")]
    bytes: Vec<u8>,
    #[prost(int32, tag = "16")]
    color: i32,
    #[prost(message, optional, boxed, tag = "17")]
    inner: Option<Box<Everything>>,
    #[prost(string, repeated, tag = "18")]
    many_strings: Vec<String>,
    #[prost(sint32, repeated, tag = "19")]
    packed_numbers: Vec<i32>,
    #[prost(uint32, repeated, packed = "false", tag = "20")]
    loose_numbers: Vec<u32>,
    #[prost(message, repeated, tag = "21")]
    many_inner: Vec<Everything>,
    #[prost(btree_map = "string, int64", tag = "22")]
    counts: BTreeMap<String, i64>,
    #[prost(btree_map = "int32, message", tag = "23")]
    by_number: BTreeMap<i32, Everything>,
    #[prost(uint32, optional, tag = "24")]
    maybe: Option<u32>,
    #[prost(oneof = "Choice", tags = "25, 26")]
    choice: Option<Choice>,
    #[prost(uint32, tag = "536870911")]
    far: u32,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Choice {
    #[prost(string, tag = "25")]
    Left(String),
    #[prost(message, tag = "26")]
    Right(Box<Everything>),
}

struct Mirror;

#[module(id = 99, pushes(Everything))]
impl Mirror {
    #[handler]
    async fn look(&self, _cx: &Cx, request: Everything) -> Result<Everything> {
        Ok(request)
    }

    #[handler(notify)]
    async fn wave(&self, _cx: &Cx, _message: Everything) -> Result<()> {
        Ok(())
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../clients/js/test")
}

#[test]
fn the_types_of_every_kind_of_field_are_written() {
    let folder = folder();
    let descriptors = protox::compile([folder.join("everything.proto")], [&folder]).unwrap();
    let compiled: &'static [u8] = descriptors.encode_to_vec().leak();
    let written =
        linkstead::provider("mirror").descriptors(compiled).module(|_| Ok(Mirror)).types_js().unwrap();
    let here = written.replace("./linkstead.js", "../linkstead.js");
    expect_file![folder.join("everything.js")].assert_eq(&here);
}

/// The values themselves stand in `clients/js/test/message.test.js`, under the same names.
#[test]
fn the_golden_bytes_are_the_providers() {
    let small = |n: u32| Everything { uint32: n, ..Default::default() };
    let low = Everything {
        int32: i32::MIN,
        int64: i64::MIN,
        sint32: i32::MIN,
        sint64: i64::MIN,
        sfixed32: i32::MIN,
        sfixed64: i64::MIN,
        float: f32::NEG_INFINITY,
        double: -1.5,
        color: -1,
        ..Default::default()
    };
    let high = Everything {
        int32: i32::MAX,
        int64: i64::MAX,
        uint32: u32::MAX,
        uint64: u64::MAX,
        sint32: i32::MAX,
        sint64: i64::MAX,
        fixed32: u32::MAX,
        fixed64: u64::MAX,
        sfixed32: i32::MAX,
        sfixed64: i64::MAX,
        float: 0.5,
        double: f64::MAX,
        bool: true,
        string: "héllo, 世界 🍺".into(),
        bytes: vec![0, 255, 128],
        color: 5,
        far: 1,
        ..Default::default()
    };
    let many = Everything {
        inner: Some(Box::new(Everything { inner: Some(Box::new(small(7))), ..Default::default() })),
        many_strings: vec!["a".into(), String::new(), "c".into()],
        packed_numbers: vec![0, -1, 1, i32::MIN],
        loose_numbers: vec![0, 300],
        many_inner: vec![small(0), small(1)],
        counts: [("".into(), 5), ("a".into(), 0), ("b".into(), -2)].into(),
        by_number: [(-1, small(3)), (0, small(4))].into(),
        maybe: Some(0),
        choice: Some(Choice::Left(String::new())),
        ..Default::default()
    };
    let right = Everything { choice: Some(Choice::Right(Box::new(small(9)))), ..Default::default() };
    let mut out = String::from(
        "# The bytes of everything.proto as the providers' library writes them. Written by a test.\n",
    );
    for (name, value) in [("empty", small(0)), ("low", low), ("high", high), ("many", many), ("right", right)]
    {
        let hex: String = value.encode_to_vec().iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(out, "{name} {hex}").unwrap();
    }
    expect_file![folder().join("everything.txt")].assert_eq(&out);
}
