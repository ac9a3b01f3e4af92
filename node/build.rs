//! Generates the tonic stubs; the messages themselves are wire's.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=../wire/proto");
    // The directory's server is service-manager's own: it says one message to many, encoded once.
    for (file, server) in [("admin", true), ("directory", false)] {
        let descriptors = protox::compile([format!("../wire/proto/{file}.proto")], ["../wire/proto"])?;
        tonic_prost_build::configure()
            .bytes(".")
            .build_server(server)
            .extern_path(format!(".linkstead.{file}"), format!("::wire::{file}"))
            .emit_rerun_if_changed(false)
            .compile_fds(descriptors)?;
    }
    Ok(())
}
