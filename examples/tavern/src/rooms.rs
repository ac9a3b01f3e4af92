//! Module `Rooms`: every request names a room and is routed by that name, so that a room lives on one provider and all
//! its guests meet there, whichever gateway they came through. Dynamic: being in a room ties nobody to its provider.

use linkstead::{Cx, LinkRef, Result, module};
use parking_lot::Mutex;

use crate::codes;
use crate::hall::{Departure, Hall};
use crate::messages::{Enter, Entered, Heard, Joined, Leave, Left, Members, Said, Say, Who};

/// The rooms that live on this provider.
#[derive(Debug, Default)]
pub struct Rooms {
    hall: Mutex<Hall<LinkRef>>,
}

/// Pushes are queued while the hall is locked: sending never waits, and so all members of a room see the same order.
#[module(id = 2, dynamic, choice = "hash_account", pushes(Said, Joined, Left))]
impl Rooms {
    /// Entering a room again is no error; from another session it moves the member there.
    #[handler(route_by = 1)]
    async fn enter(&self, cx: &Cx, request: Enter) -> Result<Entered> {
        let account = cx.account().as_str();
        let mut hall = self.hall.lock();
        let entry = hall.enter(&request.room, account, &cx.link()).map_err(codes::refuse)?;
        cx.push_all(&entry.told, &Joined { room: request.room, account: account.to_owned() });
        Ok(Entered { members: entry.members })
    }

    #[handler(route_by = 1)]
    async fn leave(&self, cx: &Cx, request: Leave) -> Result<()> {
        let mut hall = self.hall.lock();
        let left = hall.leave(&request.room, cx.account().as_str(), &cx.link()).map_err(codes::refuse)?;
        tell(cx, left);
        Ok(())
    }

    /// Talk is what can be done without when the provider is overloaded.
    #[handler(route_by = 1, level = "sheddable")]
    async fn say(&self, cx: &Cx, request: Say) -> Result<Heard> {
        codes::check_text(&request.text).map_err(codes::refuse)?;
        let from = cx.account().as_str();
        let hall = self.hall.lock();
        let audience = hall.audience(&request.room, from, &cx.link()).map_err(codes::refuse)?;
        let said = Said { room: request.room, from: from.to_owned(), text: request.text };
        Ok(Heard { by: cx.push_all(&audience, &said) as u32 })
    }

    /// Anybody may look through the door.
    #[handler(route_by = 1, level = "sheddable")]
    async fn who(&self, _cx: &Cx, request: Who) -> Result<Members> {
        Ok(Members { members: self.hall.lock().who(&request.room) })
    }

    /// A guest whose connection ended leaves every room here.
    #[on_broken]
    async fn gone(&self, cx: &Cx) {
        let mut hall = self.hall.lock();
        for left in hall.broken(cx.account().as_str(), &cx.link()) {
            tell(cx, left);
        }
    }
}

fn tell(cx: &Cx, left: Departure<LinkRef>) {
    let Departure { room, account, told } = left;
    cx.push_all(&told, &Left { room, account });
}
