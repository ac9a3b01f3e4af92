//! Generates the tonic stubs; the messages themselves are wire's.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=../wire/proto");
    let files = ["../wire/proto/admin.proto", "../wire/proto/directory.proto"];
    let descriptors = protox::compile(files, ["../wire/proto"])?;
    tonic_prost_build::configure()
        .bytes(".")
        .extern_path(".linkstead.admin", "::wire::admin")
        .extern_path(".linkstead.directory", "::wire::directory")
        .emit_rerun_if_changed(false)
        .compile_fds(descriptors)?;
    Ok(())
}
