//! Makes Rust of `proto/bazaar.proto`, and descriptors for clients in other languages. No `protoc` is needed.

use std::path::PathBuf;

use prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(["proto/bazaar.proto"], ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("bazaar.bin"), descriptors.encode_to_vec())?;
    prost_build::Config::new().btree_map(["."]).compile_fds(descriptors)?;
    Ok(())
}
