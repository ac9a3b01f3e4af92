//! The program that libFuzzer drives. `LINKSTEAD_FUZZ` names the target. Built by `cargo fuzz`, not by hand: without the
//! flags that count which way the code went, it would search blindly.

#![no_main]

use std::sync::LazyLock;

use fuzz::Target;
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("LINKSTEAD_FUZZ").unwrap_or_default();
    Target::find(&name).unwrap_or_else(|| panic!("LINKSTEAD_FUZZ={name:?} names no target"))
});

fuzz_target!(|input: &[u8]| TARGET.check(input));
