//! The binary as people use it, and the pages that are written from the code.

mod cluster;
mod process;
mod reference;
mod roles;
mod run;
mod up;
