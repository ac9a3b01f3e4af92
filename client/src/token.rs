//! The proof of an account, fixed or fetched anew for each login.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use base::Secret;

type Fetched = Pin<Box<dyn Future<Output = Result<Secret, String>> + Send>>;

/// What a login is proven with; `Debug` shows `***`. A ticket is good for one login only, so a client that reconnects
/// needs [`Token::fresh`].
///
/// ```
/// use client::{Options, Token};
///
/// async fn ask_login_service() -> Result<String, String> {
///     Ok("a new ticket".to_owned())
/// }
///
/// let options = Options::new("127.0.0.1:7710", "alice").token(Token::fresh(ask_login_service));
/// assert!(format!("{options:?}").contains("***"));
/// ```
#[derive(Clone, Default)]
pub struct Token(Inner);

#[derive(Clone)]
enum Inner {
    Fixed(Secret),
    Fresh(Arc<dyn Fn() -> Fetched + Send + Sync>),
}

impl Default for Inner {
    fn default() -> Self {
        Self::Fixed(Secret::default())
    }
}

impl Token {
    /// Asks `fetch` before each login, within the time of [`Options::connect_timeout`](crate::Options). An error of it
    /// ends that try as [`Error::NoToken`](crate::Error::NoToken); it is logged, so it must not hold the token.
    pub fn fresh<F>(fetch: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        Self(Inner::Fresh(Arc::new(move || {
            let fetched = fetch();
            Box::pin(async move { fetched.await.map(Secret::new) })
        })))
    }

    pub(crate) async fn get(&self) -> Result<Secret, String> {
        match &self.0 {
            Inner::Fixed(secret) => Ok(secret.clone()),
            Inner::Fresh(fetch) => fetch().await,
        }
    }
}

impl From<&str> for Token {
    fn from(text: &str) -> Self {
        Self(Inner::Fixed(Secret::new(text)))
    }
}

impl From<String> for Token {
    fn from(text: String) -> Self {
        Self(Inner::Fixed(Secret::new(text)))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
