//! A `select!` looks at its branches in the order they stand in, which is a decision; without `biased` it draws lots, and
//! a simulated run is another one each time.

use crate::complaint::{Complaint, lines};
use crate::rust::Rust;
use crate::tree::{judge, planted};

fn rule(file: &Rust) -> Vec<Complaint> {
    let lots = |window: &[crate::rust::Token]| {
        let word = |at: usize, text: &str| window[at].text == text;
        word(0, "select") && word(1, "!") && !word(3, "biased")
    };
    let found = file.tokens.windows(4).filter(|window| lots(window)).map(|window| window[0].line);
    let todo = "write `biased;` first and put the branches in the order that is meant";
    let complain = |line| Complaint::new(&file.path, line, "`select!` that draws lots", todo);
    found.filter(|line| !file.in_test(*line)).map(complain).collect()
}

#[test]
fn the_tree_draws_no_lots() {
    judge(rule);
}

#[test]
fn fires_on_a_select_without_an_order() {
    let text = "//! x\nasync fn a() {\n    tokio::select! { () = b() => {} }\n    select! { biased; () = b() => {} }\n}\n\
                // select! { in a comment }\n#[cfg(test)]\nmod tests { async fn c() { select! { () = d() => {} } } }\n";
    assert_eq!(lines(&rule(&planted("linkd/src/a.rs", text))), [3]);
}
