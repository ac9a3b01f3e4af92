//! The smallest game: one request, one answer. It needs a directory and a gateway; `linkstead up` starts both.
//!
//! ```text
//! cargo run -p hello -- --set provider.server_id=2
//! cargo run -p hello -- protocols
//! ```

use linkstead::{Cx, Error, Result, module};

#[derive(Clone, PartialEq, prost::Message)]
pub struct Greet {
    #[prost(string, tag = "1")]
    pub name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Greeting {
    #[prost(string, tag = "1")]
    pub text: String,
}

pub struct Hello;

#[module(id = 7, choice = "hash_account")]
impl Hello {
    /// A client asks with `Hello::GREET` and gets a greeting, or code 1.
    #[handler]
    async fn greet(&self, cx: &Cx, request: Greet) -> Result<Greeting> {
        if request.name.is_empty() {
            return Err(Error::code(1, "a greeting needs a name"));
        }
        Ok(Greeting { text: format!("Hello, {}! You are {} here.", request.name, cx.account()) })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    linkstead::provider("hello").module(|_| Ok(Hello)).run().await
}
