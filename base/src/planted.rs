//! Planted faults: test-only switches that break a promise on purpose, so that the test which holds it is seen to
//! fail. Without the cargo feature `planted` every switch is a constant `false` and vanishes.

/// Whether the fault `name` is planted in this run: under feature `planted`, when the environment variable
/// `LINKSTEAD_PLANTED` names it.
#[cfg(feature = "planted")]
pub fn is(name: &str) -> bool {
    static PLANTED: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    PLANTED.get_or_init(|| std::env::var("LINKSTEAD_PLANTED").unwrap_or_default()) == name
}

/// Always `false`: this build has no planted faults.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn is(_name: &str) -> bool {
    false
}
