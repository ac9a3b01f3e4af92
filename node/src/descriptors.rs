//! How many files this process may have open: each connection is one. It never lowers a limit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are no client connections: listeners, providers, the directory, logs, certificates, the ops port.
const OTHERS: u64 = 256;

/// Raises the soft limit to the hard one, which needs no right, and answers the limit in force; `None` is no limit.
/// The soft limit is low by custom, for programs that use `select`; ours don't.
pub fn raise() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    // It can fail where the hard limit stands above what the system allows; then the soft one stays, and is answered.
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    }
}

/// What to tell the operator when `limit` files are too few for `connections_max` connections, the setting `key`.
pub fn too_few(limit: Option<u64>, key: &str, connections_max: usize) -> Option<String> {
    let limit = limit?;
    let room = limit.saturating_sub(OTHERS);
    (connections_max as u64 > room).then(|| {
        format!(
            "{key} is {connections_max}, but this process may have {limit} files open, which is enough \
             for about {room} connections; raise the hard limit (ulimit -n, LimitNOFILE=) or lower the setting"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_need_a_file_each_and_some_are_left_for_others() {
        assert_eq!(too_few(None, "linkd.connections_max", usize::MAX), None);
        assert_eq!(too_few(Some(1_256), "linkd.connections_max", 1_000), None);
        let said = too_few(Some(1_256), "linkd.connections_max", 1_001).unwrap();
        assert!(said.contains("1256 files") && said.contains("about 1000 connections"), "{said}");
        assert!(
            too_few(Some(10), "linkd.connections_max", 1)
                .is_some_and(|said| said.contains("about 0 connections"))
        );
    }

    #[test]
    fn the_limit_is_raised_to_what_is_allowed() {
        let limit = raise();
        assert_eq!(getrlimit(Resource::Nofile).current, limit);
        assert_eq!(raise(), limit);
    }
}
