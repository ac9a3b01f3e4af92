//! Core: who a session is. It judges the shape of an Auth, lets somebody else judge the proof, and sets the account
//! once. Nothing changes the account of a session afterwards.

use std::net::SocketAddr;

use base::secret::Secret;
use base::{Account, AppVersion, LinkSid, hash};
use wire::auth::Auth;
use wire::code::{self, Code};
use wire::payload::Family;

use super::client::Inbound;
use super::provider::{OVERLOAD, Provider, ProviderRef};
use super::{Action, Router};

/// Who judges the proof of an Auth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Judge {
    /// Nobody: every account is believed.
    #[default]
    Nobody,
    /// The shell, by a ticket or a token.
    Shell,
    /// A provider that has announced that it does.
    Provider,
}

/// A proof to be judged. The shell answers with exactly one [`super::Event::Authenticated`].
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// What the client says; `None`: it leaves that to the proof.
    pub account: Option<Account>,
    pub token: Secret,
    pub app_version: AppVersion,
    pub addr: SocketAddr,
    /// [`Judge::Provider`]: which one.
    pub by: Option<ProviderRef>,
}

/// An Auth that is being judged.
#[derive(Debug, Clone, Copy)]
pub struct Authing {
    /// Its RPC session id.
    session: i64,
    version: AppVersion,
}

impl Router {
    pub(super) fn auth(&mut self, frame: Inbound<'_>, actions: &mut Vec<Action>) {
        let Some(session) = self.sessions.get(frame.sid) else { return };
        if frame.head.family != Family::Request {
            return self.close(frame.sid, &code::BAD_FRAME, actions);
        }
        if session.account.is_some() && !base::planted::is("account_changes") {
            return self.refuse(frame, &code::ALREADY_AUTHED, actions);
        }
        if session.authing.is_some() {
            return self.refuse(frame, &code::AUTH_RUNNING, actions);
        }
        let addr = session.addr;
        let authing = |version| Authing { session: frame.head.session, version };
        let (account, version, token) = match judge(frame.body) {
            Ok(auth) => auth,
            Err(code) => return self.auth_failed(frame.sid, authing(AppVersion(0)), code, actions),
        };
        let by = match (self.rules.judge, account) {
            (Judge::Nobody, Some(account)) => {
                return self.authed(frame.sid, authing(version), account, actions);
            }
            (Judge::Nobody, None) => {
                return self.auth_failed(frame.sid, authing(version), &code::NAME_INVALID, actions);
            }
            (Judge::Shell, account) => Ok((account, None)),
            (Judge::Provider, account) => {
                self.authenticator(account.as_ref(), version).map(|to| (account, Some(to)))
            }
        };
        match by {
            Ok((account, by)) => {
                let proof = Proof { account, token, app_version: version, addr, by };
                if let Some(session) = self.sessions.get_mut(frame.sid) {
                    session.authing = Some(authing(version));
                }
                actions.push(Action::Authenticate { sid: frame.sid, proof: Box::new(proof) });
            }
            Err(code) => self.auth_failed(frame.sid, authing(version), code, actions),
        }
    }

    /// The judgement came. A session that ended meanwhile is nobody's any more.
    pub(super) fn authenticated(
        &mut self,
        sid: LinkSid,
        result: Result<Account, &'static Code>,
        actions: &mut Vec<Action>,
    ) {
        let Some(authing) = self.sessions.get_mut(sid).and_then(|session| session.authing.take()) else {
            return;
        };
        match result {
            Ok(account) => self.authed(sid, authing, account, actions),
            Err(code) => self.auth_failed(sid, authing, code, actions),
        }
    }

    fn authed(&mut self, sid: LinkSid, authing: Authing, account: Account, actions: &mut Vec<Action>) {
        self.sessions.set_account(sid, account, authing.version);
        actions.push(Action::Authed { sid, session: authing.session });
    }

    /// What only time can mend leaves the connection open for another try; anything else ends it.
    fn auth_failed(
        &mut self,
        sid: LinkSid,
        authing: Authing,
        code: &'static Code,
        actions: &mut Vec<Action>,
    ) {
        let Some(session) = self.sessions.get(sid) else { return };
        actions.push(Action::AuthFailed { addr: session.addr, code });
        let (type_id, session) = (wire::auth::AUTH, authing.session);
        actions.push(Action::Refuse { sid, type_id, session, result: code.result() });
        let may_again = matches!(code.retry, base::Retry::After(_)) && code.blame != base::Blame::Client;
        if !may_again {
            self.close(sid, code, actions);
        }
    }

    /// Which provider judges: always the same one for an account, of those that say they do.
    fn authenticator(
        &self,
        account: Option<&Account>,
        version: AppVersion,
    ) -> Result<ProviderRef, &'static Code> {
        let key = account.map_or("", Account::as_str).as_bytes();
        let able = |p: &&Provider| p.announced && p.authenticator && version.matches(p.app_version);
        let weight = |p: &&Provider| hash::parts([key, p.node.as_str().as_bytes()]);
        let free = |p: &&Provider| !p.disabled && p.load.overload < OVERLOAD;
        match self.providers.iter().filter(able).filter(free).max_by_key(weight) {
            Some(provider) => Ok(provider.reference()),
            None if self.providers.iter().any(|p| able(&p) && !p.disabled) => Err(&code::BUSY),
            None => Err(&code::NO_PROVIDER),
        }
    }
}

/// Reads what an Auth says of itself.
fn judge(body: &[u8]) -> Result<(Option<Account>, AppVersion, Secret), &'static Code> {
    let auth = Auth::decode(body).map_err(|_| &code::DECODE_ERROR)?;
    let account = match auth.account {
        b"" => None,
        bytes => {
            let account = std::str::from_utf8(bytes).ok().and_then(|text| Account::new(text).ok());
            Some(account.ok_or(&code::NAME_INVALID)?)
        }
    };
    let version = std::str::from_utf8(auth.app_version).ok().and_then(|text| text.parse().ok());
    Ok((account, version.ok_or(&code::VERSION_INVALID)?, Secret::new(auth.token)))
}
