//! What the whole-system tests and their small tools share: the list of the
//! repository's files, the promises, the planted faults, the fuzzer and the commands
//! that the documents show. Never part of a release.

pub mod docs;
pub mod fuzz;
pub mod planted;
pub mod promises;
pub mod records;
pub mod repo;
pub mod sim;
