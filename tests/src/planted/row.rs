//! A row of the table, by whom its fault must be seen.

use super::Fault;

/// A fault that the simulator of records must see, in a test of this name.
pub const fn of_records(name: &'static str, breaks: &'static str, filter: &'static str) -> Fault {
    Fault { name, package: "tests", breaks, filter }
}

/// A fault that the simulator must see.
pub const fn simulated(name: &'static str, breaks: &'static str) -> Fault {
    Fault { name, package: "tests", breaks, filter: "seeds_keep_every_promise" }
}

/// A fault that the shells in turmoil must show.
pub const fn in_turmoil(name: &'static str, breaks: &'static str, filter: &'static str) -> Fault {
    Fault { name, package: "tests", breaks, filter }
}

/// A fault that a test of its own package must see.
pub const fn in_package(
    name: &'static str,
    package: &'static str,
    breaks: &'static str,
    filter: &'static str,
) -> Fault {
    Fault { name, package, breaks, filter }
}
