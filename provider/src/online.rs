//! Who is here: the sessions that gateways opened at this provider.

use base::generation::Owned;
use base::{Account, Generation, Role};
use parking_lot::RwLock;

use crate::links::LinkRef;

/// The sessions opened at this provider, by account and by role. Of two sessions of one account the newer is found; when
/// the older one ends, that changes nothing.
///
/// ```no_run
/// # fn example(cx: &linkstead::Cx) {
/// use linkstead::Account;
///
/// let online = cx.online();
/// let friend = Account::new("alice").ok().and_then(|alice| online.account(&alice));
/// let here = online.links();
/// # let _ = (friend, here);
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Online(RwLock<Tables>);

#[derive(Debug, Default)]
struct Tables {
    accounts: Owned<Account, LinkRef>,
    roles: Owned<Role, LinkRef>,
}

impl Online {
    /// The newest session of `account` here. Its linkd may have closed it a moment ago.
    pub fn account(&self, account: &Account) -> Option<LinkRef> {
        self.0.read().accounts.get(account).cloned()
    }

    /// The session that `role` plays on here.
    pub fn role(&self, role: Role) -> Option<LinkRef> {
        self.0.read().roles.get(&role).cloned()
    }

    /// Every account's newest session here, by account. Copies all of them: for a push to everybody here use it at most
    /// a few times a second.
    pub fn links(&self) -> Vec<LinkRef> {
        self.0.read().accounts.iter().map(|(_, _, link)| link.clone()).collect()
    }

    /// Accounts here.
    pub fn len(&self) -> usize {
        self.0.read().accounts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn open(&self, account: Account, owner: Generation, link: LinkRef) {
        self.0.write().accounts.insert(account, owner, link);
    }

    pub(crate) fn close(&self, account: &Account, owner: Generation) {
        self.0.write().accounts.remove(account, owner);
    }

    pub(crate) fn play(&self, role: Role, owner: Generation, link: LinkRef) {
        self.0.write().roles.insert(role, owner, link);
    }

    pub(crate) fn stop_playing(&self, role: Role, owner: Generation) {
        self.0.write().roles.remove(&role, owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Epoch, Generations, LinkSid, NodeId};

    fn link(n: u64) -> LinkRef {
        LinkRef { linkd: NodeId::new("linkd-1").unwrap(), epoch: Epoch(1), sid: LinkSid(n) }
    }

    /// Holds: Q7.
    #[test]
    fn the_end_of_an_older_session_leaves_the_newer_one() {
        let (online, mut next) = (Online::default(), Generations::default());
        let (alice, old, new) = (Account::new("alice").unwrap(), next.begin(), next.begin());
        online.open(alice.clone(), old, link(1));
        online.play(Role(7), old, link(1));
        online.open(alice.clone(), new, link(2));
        online.play(Role(7), new, link(2));
        online.close(&alice, old);
        online.stop_playing(Role(7), old);
        assert_eq!((online.account(&alice), online.role(Role(7))), (Some(link(2)), Some(link(2))));
        online.close(&alice, new);
        assert!(online.is_empty());
    }
}
