//! Tickets that are wrong, late, early, used or for somebody else.

use base::Account;
use wire::ticket::{Signer, Ticket};

use super::client::{Client, Got};
use super::table::After::{Closed, Open};
use super::table::Table;
use super::world::World;

/// A ticket that holds from now on for a minute, moved by so many seconds.
fn ticket(id: u8, moved: i64, change: impl FnOnce(&mut Ticket)) -> Ticket {
    let begins = node::clock::unix_seconds().saturating_add_signed(moved);
    let mut ticket = Ticket {
        kid: 1,
        issued: begins,
        not_before: begins,
        expires: begins + 60,
        id: [id; 16],
        app_main: 0,
        audience: "test".to_owned(),
        account: Account::new("ann").unwrap(),
    };
    change(&mut ticket);
    ticket
}

fn signed(signer: &Signer, ticket: Ticket) -> Vec<u8> {
    ticket.sign(signer).unwrap().into_bytes()
}

async fn show(world: &World, token: &[u8]) -> Got {
    Client::connect(&world.guarded.clients).await.log_in("ann", token).await
}

pub async fn run(world: &World, table: &mut Table) {
    let ours = |ticket| signed(&world.signer, ticket);
    let flipped = {
        let mut text = ours(ticket(1, 0, |_| {}));
        // The letter's lowest bit but one: another letter, and still base64.
        text[20] = if text[20] == b'A' { b'C' } else { b'A' };
        text
    };
    let whole = ours(ticket(2, 0, |_| {}));
    let year = 31_536_000;
    let invalid = ("TICKET_INVALID", Closed);
    // The time now is the test's own: a second passes at most between here and there.
    let cases = [
        ("BI-019", "expired for 32 s", ours(ticket(3, -92, |_| {})), ("TICKET_EXPIRED", Closed)),
        ("BI-019", "expired for a year", ours(ticket(4, -year, |_| {})), ("TICKET_EXPIRED", Closed)),
        (
            "BI-019",
            "expired for 20 s, within the clocks' difference",
            ours(ticket(5, -80, |_| {})),
            ("answered", Open),
        ),
        ("BI-020", "valid in 40 s", ours(ticket(6, 40, |_| {})), ("TICKET_NOT_YET_VALID", Closed)),
        (
            "BI-020",
            "valid in 29 s, within the clocks' difference",
            ours(ticket(7, 29, |_| {})),
            ("answered", Open),
        ),
        ("BI-021", "shown again", ours(ticket(7, 29, |_| {})), ("TICKET_REPLAYED", Closed)),
        ("BI-023", "one bit is another", flipped, invalid),
        ("BI-023", "cut short", whole[..whole.len() - 2].to_vec(), invalid),
        ("BI-023", "empty", Vec::new(), invalid),
        (
            "BI-024",
            "for another account",
            ours(ticket(8, 0, |t| t.account = Account::new("bob").unwrap())),
            ("TICKET_MISMATCH", Closed),
        ),
        (
            "BI-024",
            "for another cluster",
            ours(ticket(9, 0, |t| t.audience = "live".to_owned())),
            ("TICKET_MISMATCH", Closed),
        ),
        (
            "BI-025",
            "signed with a key that is retired",
            signed(&world.retired, ticket(10, 0, |t| t.kid = 2)),
            invalid,
        ),
        (
            "BI-025",
            "signed with a key of nobody's",
            signed(&Signer::new(1, &[3; 32]), ticket(11, 0, |_| {})),
            invalid,
        ),
    ];
    let mut shown = Vec::new();
    for (id, input, token, expected) in cases {
        table.row(world, id, &format!("a ticket: {input}"), expected, show(world, &token)).await;
        shown.push(String::from_utf8(token).unwrap());
    }
    let expected = ("TOO_MANY_ATTEMPTS", Closed);
    table.row(world, "BI-026", "guesses, one after another", expected, guess(world)).await;
    unwritten(&world.log(), &shown);
}

/// The gateway writes all it ever writes, and nothing of what was shown to it: the end of a ticket is its signature.
fn unwritten(log: &str, shown: &[String]) {
    assert!(log.contains("linkd runs"), "nothing was written at all");
    for ticket in shown.iter().filter(|ticket| !ticket.is_empty()) {
        let signature = &ticket[ticket.len() - 40..];
        assert!(!log.contains(signature), "{signature} was written");
    }
}

/// Guesses until no guess is looked at any more.
async fn guess(world: &World) -> Got {
    loop {
        let got = show(world, b"guess").await;
        if got.code != "TICKET_INVALID" {
            return got;
        }
    }
}
