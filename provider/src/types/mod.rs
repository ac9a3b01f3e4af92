//! What a game's protocols look like, written down for clients in other languages: the verb `types`.
//!
//! The modules know the protocols and the names of their messages; the fields come from the game's `.proto` files, as
//! compiled descriptors.

mod js;
mod shapes;

use crate::module::Descriptor;
use crate::start::Builder;
use shapes::Shapes;

/// Why types can't be written. The game programmer's to mend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TypesError {
    #[error(
        "the provider knows no fields of its messages; give it the compiled `.proto` files with `.descriptors(…)`, see \
         docs/guides/browser.md"
    )]
    NoDescriptors,
    #[error("the descriptors can't be read: {0}; compile them with protox or protoc")]
    Unreadable(String),
    #[error(
        "no `.proto` file has a message `{name}`, which {protocol} uses; messages of protocols are described in \
         `.proto` files, in CamelCase"
    )]
    UnknownMessage { name: String, protocol: String },
    #[error(
        "{protocol} uses `{name}`, and the `.proto` files have several of that name: {found}; rename one"
    )]
    Ambiguous { name: String, protocol: String, found: String },
    #[error("`{0}` can't be described: {1}")]
    Unsupported(String, String),
    #[error("`{0}` can't be a name in JavaScript; give the module another with `name = \"…\"`")]
    Name(String),
}

impl Builder {
    /// Tells what the messages look like: a compiled `FileDescriptorSet` of the game's `.proto` files. Only the verb
    /// `types` reads it; a game without clients in other languages needs none.
    ///
    /// ```ignore
    /// const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
    /// linkstead::provider("tavern").descriptors(DESCRIPTORS)
    /// ```
    pub fn descriptors(mut self, compiled: &'static [u8]) -> Self {
        self.descriptors = Some(compiled);
        self
    }

    /// The JavaScript module of this provider's protocols, for `clients/js`. The verb `types js` prints it.
    ///
    /// # Errors
    /// Every message of a protocol must stand in the descriptors, once, in `proto3`.
    pub fn types_js(&self) -> Result<String, TypesError> {
        let shapes = Shapes::read(self.descriptors.ok_or(TypesError::NoDescriptors)?)?;
        js::module(&self.modules, &shapes)
    }
}

/// A message that a protocol names, and the protocol, for errors.
fn named(modules: &[Descriptor]) -> impl Iterator<Item = (&str, &str)> {
    modules.iter().flat_map(|module| {
        let handlers = module
            .protocols
            .iter()
            .flat_map(|protocol| [protocol.request, protocol.reply].map(|message| (message, protocol.name)));
        let pushes = module.pushes.iter().map(|&(name, _)| (last(name), name));
        handlers.chain(pushes).filter(|(message, _)| !message.is_empty())
    })
}

/// `Said` of `Rooms.Said`.
fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests;
