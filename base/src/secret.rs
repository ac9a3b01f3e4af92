//! Bytes that prove something, such as a player's token: wiped when dropped, shown as `***`.

use std::fmt;

use zeroize::Zeroizing;

/// A secret. Only [`Secret::expose`] shows it, so a search for that word finds everyone who looks.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }

    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: X-10.
    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::new(*b"hunter2");
        assert_eq!((format!("{secret:?}"), secret.expose()), ("***".to_owned(), &b"hunter2"[..]));
    }
}
