//! A test may name only promises that exist.

use tests::{promises, repo};

use crate::complaint::{Complaint, demand_none};

#[test]
fn the_tree_names_only_known_promises() {
    let book = promises::Book::load().expect("tests/promises.txt can be read");
    let found = promises::scan(&repo::root(), &book).expect("the sources can be read");
    let todo = "correct it, or add the promise to tests/promises.txt";
    let complain = |unknown: &promises::Unknown| {
        Complaint::new(&unknown.path, unknown.line, format!("no promise is called `{}`", unknown.word), todo)
    };
    demand_none(found.unknown.iter().map(complain).collect());
}
