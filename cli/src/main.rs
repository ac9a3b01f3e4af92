//! The `linkstead` binary.

/// A request at a provider makes and frees a few small objects; this allocator does it in half the instructions.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod memory;

fn main() -> std::process::ExitCode {
    memory::give_back_soon();
    cli::main()
}
