//! Compiles the `.proto` files with protox: no `protoc` is needed to build.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let mut files: Vec<_> =
        std::fs::read_dir("proto")?.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
    files.sort();
    let descriptors = protox::compile(&files, ["proto"])?;
    // Its token is a secret: `wire::link` shows it as `***`.
    let hidden = ["linkstead.link.Authenticate"];
    prost_build::Config::new().bytes(["."]).skip_debug(hidden).compile_fds(descriptors)?;
    Ok(())
}
