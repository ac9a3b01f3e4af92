//! What a provider says as the arbiter's core hears it, and what the core says as a provider hears it: without a wire between.

use base::RequestId;
use global_cache::arbiter::{Action, Ask, Event, Key, Seq, SessionId};

use super::{Heard, Word};

/// A word of the provider that has this session.
pub fn event(session: SessionId, word: Word) -> Event {
    match word {
        Word::Ask { request, want, have, key } => {
            let have = Some(have).filter(|seq| *seq > 0).map(Seq);
            let (request, key) = (RequestId(request), Key(wire::cache::record(&key)));
            Event::Acquire { session, ask: Ask { request, key, want, have } }
        }
        Word::Reduced { record, seq, to, flushed } => {
            Event::Reduced { session, key: Key(record), seq: Seq(seq), to, flushed }
        }
        Word::Refused { record, seq, until } => {
            Event::Refused { session, key: Key(record), seq: Seq(seq), until }
        }
        Word::Reassert { record, mode } => Event::Reassert { session, key: Key(record), mode },
    }
}

/// What the core says about records, and to whom. `None`: it is about sessions and their connections.
pub fn heard(action: &Action) -> Option<(SessionId, Heard)> {
    Some(match action {
        Action::Grant { session, request, grant } => {
            let heard = Heard::Granted {
                request: request.0,
                mode: grant.mode,
                seq: grant.seq.0,
                must_reload: grant.must_reload,
                version_min: grant.version_min,
                evicted: grant.evicted.clone(),
            };
            (*session, heard)
        }
        Action::Deny { session, request, why, retry_after } => {
            let (request, code, retry_after) = (request.0, why.code().number, *retry_after);
            (*session, Heard::Denied { request, code, retry_after })
        }
        Action::Reduce { session, key, seq, to, within } => {
            (*session, Heard::Reduce { record: key.0, seq: seq.0, to: *to, within: *within })
        }
        Action::Reasserted { session, key, seq } => {
            (*session, Heard::Reasserted { record: key.0, seq: seq.map(|seq| seq.0) })
        }
        _ => return None,
    })
}
