//! What a gateway writes while players log in, well and badly, never holds what they prove themselves with.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use linkd::auth::Way;
use parking_lot::Mutex;
use wire::link::{AUTHENTICATE, message};

use crate::auth::{gate, signer, ticket, tickets};
use crate::world::{World, settings};

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Holds: X-10, BI-027.
#[tokio::test]
async fn secrets_are_never_logged() {
    let page = Page::default();
    let writer = page.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();

    let world = World::guarded(settings(), gate(tickets(Vec::new(), vec![signer(1).public()])));
    let (good, bad) = (ticket(&signer(1), "ann", 1), ticket(&signer(2), "ann", 2));
    for text in [&good, &good, &bad] {
        world.connect().await.auth("ann", text.as_bytes()).await;
    }
    world.connect().await.auth("evil\u{202e}name", b"").await;
    world.stop().await;
    let way = Way::Module { timeout: Duration::from_secs(5) };
    let world = World::guarded(settings(), gate(way));
    let mut judge = world.authenticator("judge-1").await;
    for answered in [true, false] {
        let mut client = world.connect().await;
        let (_, ()) = tokio::join!(client.auth("ann", b"open sesame"), async {
            let call = judge.next(AUTHENTICATE).await;
            match answered {
                true => {
                    judge.link.reply(call.meta.call, &message::Authenticated { account: "a\u{2066}".into() })
                }
                false => judge.link.refuse(call.meta.call, &wire::code::EXCEPTION, "it was open sesame"),
            }
            .unwrap();
        });
    }
    world.stop().await;

    let written = String::from_utf8_lossy(&page.0.lock()).into_owned();
    assert!(written.contains("provider connected") && written.contains("can't be an account"), "{written}");
    let private = signer(1).secret_file();
    let signature = &good[good.len() - 80..];
    for secret in
        [good.as_str(), bad.as_str(), signature, private.split_whitespace().last().unwrap(), "sesame"]
    {
        assert!(!written.contains(secret), "{secret} in {written}");
    }
    assert!(!written.contains(['\u{202e}', '\u{2066}']), "{written}");
}
