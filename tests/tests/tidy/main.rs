//! Tidy: the rules of the house that a machine can hold. One file per idea; each
//! rule is a function from a path and its text to complaints, each file ends
//! with a test over the tree and one that shows the rule firing.
//! Nothing here builds or runs the other crates, so tidy works while they don't.

mod card;
mod codes;
mod complaint;
mod faults;
mod imports;
mod links;
mod markdown;
mod metrics;
mod pages;
mod promises;
mod purity;
mod rust;
mod selects;
mod size;
mod sockets;
mod text;
mod tree;
mod words;
