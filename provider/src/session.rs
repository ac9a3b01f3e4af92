//! One client session at this provider, from `Opened` to its end.

use std::sync::Arc;

use base::{Account, AppVersion, Generation, LinkSid, Role};
use parking_lot::Mutex;
use wire::code;

use crate::conn::Conn;
use crate::error::{Error, Result};
use crate::links::LinkRef;
use crate::send;

/// What never changes of a session, and who plays on it now.
pub(crate) struct Session {
    pub conn: Arc<Conn>,
    pub sid: LinkSid,
    /// Of this session, not of its connection: two sessions of one account may share a connection.
    pub generation: Generation,
    pub account: Account,
    pub client_addr: String,
    pub app_version: AppVersion,
    login: Mutex<Login>,
}

#[derive(Default)]
struct Login {
    role: Option<Role>,
    /// The code of the cause, once the session is over.
    end: Option<i32>,
}

/// What an Opened says.
pub(crate) struct Opened {
    pub sid: LinkSid,
    pub account: Account,
    pub role: Option<Role>,
    pub client_addr: String,
    pub app_version: AppVersion,
}

impl Session {
    /// Registers it as online.
    pub fn open(conn: Arc<Conn>, opened: Opened) -> Arc<Self> {
        let generation = conn.hub.next_generation();
        let Opened { sid, account, role, client_addr, app_version } = opened;
        let login = Mutex::new(Login { role, end: None });
        let session = Arc::new(Self { conn, sid, generation, account, client_addr, app_version, login });
        let hub = &session.conn.hub;
        hub.online.open(session.account.clone(), generation, session.link());
        if let Some(role) = role {
            hub.online.play(role, generation, session.link());
        }
        hub.meters.logins.add(1);
        session
    }

    pub fn link(&self) -> LinkRef {
        let peer = &self.conn.link.peer;
        LinkRef { linkd: peer.node.clone(), epoch: peer.epoch, sid: self.sid }
    }

    pub fn role(&self) -> Option<Role> {
        self.login.lock().role
    }

    pub fn end(&self) -> Option<i32> {
        self.login.lock().end
    }

    /// The game logs a role in or out: the linkd is told, on the session's own queue, before anything sent later.
    pub fn set_role(&self, role: Option<Role>) -> Result<()> {
        let mut login = self.login.lock();
        if login.end.is_some() {
            return Err(Error::framework(&code::UNKNOWN_SESSION, "the session is over"));
        }
        send::user_state(&self.conn, self.sid, role)?;
        self.change(&mut login, role);
        Ok(())
    }

    /// Another provider logged a role in or out.
    pub fn role_changed(&self, role: Option<Role>) {
        let mut login = self.login.lock();
        if login.end.is_none() {
            self.change(&mut login, role);
        }
    }

    fn change(&self, login: &mut Login, role: Option<Role>) {
        let online = &self.conn.hub.online;
        if let Some(old) = login.role.filter(|old| Some(*old) != role) {
            online.stop_playing(old, self.generation);
        }
        if let Some(role) = role {
            online.play(role, self.generation, self.link());
        }
        login.role = role;
    }

    /// It is over: nobody finds it any more, and no role can be set on it.
    pub fn close(&self, cause: i32) {
        let mut login = self.login.lock();
        login.end = Some(cause);
        let online = &self.conn.hub.online;
        if let Some(role) = login.role {
            online.stop_playing(role, self.generation);
        }
        online.close(&self.account, self.generation);
    }
}
