//! What the compiler says about a wrong module and a wrong record.

/// Runs only with the compiler whose messages are kept in `tests/ui`.
#[test]
fn mistakes_are_said_where_they_are() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/right*.rs");
    cases.compile_fail("tests/ui/wrong_*.rs");
}
