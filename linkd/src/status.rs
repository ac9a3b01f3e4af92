//! What a linkd shows of itself: `/status`, and the sessions an operator looks for.

use std::collections::BTreeMap;

use base::{Account, NodeId};
use net::NetIo;
use serde_json::{Value, json};

use crate::Linkd;
use crate::router::{Found, Seen, Summary};

impl<N: NetIo> Linkd<N> {
    /// What every worker saw at its last tick, put together. Waits for nobody.
    pub fn summary(&self) -> Summary {
        let mut all = Summary::default();
        for one in self.shared.summaries.iter().map(|summary| summary.load_full()) {
            all.sessions += one.sessions;
            all.authed += one.authed;
            all.modules.extend(one.modules.clone());
            all.groups.extend(one.groups.clone());
            all.clashes.extend(one.clashes.clone());
            all.hot.add(&one.hot);
            for (node, seen) in &one.providers {
                // Disabled is who no worker chooses any more.
                let disabled = seen.disabled && all.providers.get(node).is_none_or(|before| before.disabled);
                all.providers.insert(node.clone(), Seen { disabled, ..seen.clone() });
            }
        }
        all
    }

    /// What `/status` shows.
    pub fn status(&self) -> Value {
        let summary = self.summary();
        let providers: BTreeMap<_, _> =
            summary.providers.iter().map(|(node, seen)| (node.to_string(), provider(seen))).collect();
        let modules: BTreeMap<_, Vec<_>> = summary
            .modules
            .iter()
            .map(|(name, nodes)| (name, nodes.iter().map(NodeId::to_string).collect()))
            .collect();
        let hot =
            |(account, percent): (&Account, u64)| json!({"account": account.as_str(), "percent": percent});
        json!({
            "node": self.node.to_string(),
            "role": "linkd",
            "epoch": self.directory.current_epoch().to_string(),
            "client_addr": self.client_addr.to_string(),
            "ws_addr": self.ws_addr.map(|addr| addr.to_string()),
            "provider_addr": self.provider_addr.to_string(),
            "workers": self.crew.workers.len(),
            "sessions": summary.sessions,
            "authed": summary.authed,
            "providers": providers,
            "modules": modules,
            "clashes": summary.clashes,
            "hot_accounts": summary.hot.top().into_iter().map(hot).collect::<Vec<_>>(),
            "auth_failures": self.shared.gate.failures(),
            "totals": self.totals(),
            "turned_away": self.door.turned(),
        })
    }
}

fn provider(seen: &Seen) -> Value {
    json!({
        "server_id": seen.server.0,
        "app_version": seen.app_version.to_string(),
        "region": seen.region,
        "group": seen.group,
        "disabled": seen.disabled,
        "online": seen.load.online,
        "max": seen.load.propose_max_online,
        "overload": seen.load.overload,
    })
}

/// A session that was looked for. Its number is a text, since JSON readers round numbers of this size.
pub fn found(found: &Found) -> Value {
    let binds: BTreeMap<_, _> =
        found.binds.iter().map(|(module, node)| (module.to_string(), node.to_string())).collect();
    json!({
        "sid": found.sid.0.to_string(),
        "account": found.account.as_str(),
        "role": found.role.map(|role| role.0.to_string()),
        "client_addr": found.addr.to_string(),
        "app_version": found.app_version.to_string(),
        "binds": binds,
        "unanswered": found.owed,
    })
}

#[cfg(test)]
mod tests {
    use base::{LinkSid, Role};

    use super::*;

    /// Holds: C-08.
    #[test]
    fn a_session_that_was_found_has_its_numbers_exactly() {
        for number in [1, (1 << 53) + 1, u64::MAX] {
            let session = Found {
                sid: LinkSid(number),
                account: Account::new("ann").unwrap(),
                role: Some(Role(number)),
                addr: ([127, 0, 0, 1], 9).into(),
                app_version: "1.0.0.0".parse().unwrap(),
                binds: Vec::new(),
                owed: 0,
            };
            let shown: Value = serde_json::from_str(&found(&session).to_string()).unwrap();
            assert_eq!(
                (&shown["sid"], &shown["role"]),
                (&json!(number.to_string()), &json!(number.to_string()))
            );
        }
    }
}
