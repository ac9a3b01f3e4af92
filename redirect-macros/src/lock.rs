//! `protocols.lock`: one sorted line per protocol, `Module.name module:protocol`. A rename or a changed id is a
//! compile error instead of a client that gets no answer.

use std::path::PathBuf;

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::Error;

use crate::parse::Block;

const FILE: &str = "protocols.lock";
/// `off` builds without looking at the file, so that it can be written anew.
const SWITCH: &str = "LINKSTEAD_LOCK";
const REMEDY: &str = "if that is meant, run `LINKSTEAD_LOCK=off cargo run -- protocols > protocols.lock`";

/// The file as found.
pub struct Lock {
    pub path: Option<PathBuf>,
    text: Option<String>,
}

impl Lock {
    /// The file beside the `Cargo.toml` of the package that is being compiled. Absent: nothing is checked.
    pub fn of_package() -> Self {
        let folder = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let path = folder.map(|folder| folder.join(FILE)).filter(|path| path.exists());
        let off = std::env::var(SWITCH).is_ok_and(|value| value == "off");
        let text = path.as_ref().filter(|_| !off).and_then(|path| std::fs::read_to_string(path).ok());
        Self { path, text }
    }

    #[cfg(test)]
    pub fn test(text: Option<&str>) -> Self {
        Self { path: None, text: text.map(str::to_owned) }
    }

    /// What the compiler still has to compare, since ids made from names are known only to the generated code.
    pub fn check(&self, block: &Block) -> Result<TokenStream, Error> {
        let Some(text) = &self.text else { return Ok(TokenStream::new()) };
        let id = block.id();
        let mut asserts = TokenStream::new();
        let mut error: Option<Error> = None;
        let mut complain = |new: Error| match &mut error {
            Some(first) => first.combine(new),
            None => error = Some(new),
        };
        let known = crate::expand::protocols(block);
        for protocol in &known {
            let (name, value) = (&protocol.name, &protocol.id);
            let Some(locked) = locked(text, name) else {
                complain(Error::new(protocol.span, format!("`{name}` does not stand in {FILE}; {REMEDY}")));
                continue;
            };
            let message =
                format!("`{name}` is {}:{} in {FILE} and another id here; {REMEDY}", locked.0, locked.1);
            let (module, number) = locked;
            asserts.extend(quote_spanned! {protocol.span=>
                const _: () = ::core::assert!(#id == #module && #value == #number, #message);
            });
        }
        let prefix = format!("{}.", block.name);
        for name in text.lines().filter_map(|line| line.split_whitespace().next()) {
            let ours = name.strip_prefix(&prefix).is_some_and(|rest| !rest.contains('.'));
            if ours && !known.iter().any(|protocol| protocol.name == name) {
                let text =
                    format!("`{name}` stands in {FILE} and is gone; clients may still send it; {REMEDY}");
                complain(Error::new(block.id_span(), text));
            }
        }
        error.map_or(Ok(asserts), Err)
    }
}

/// Module and protocol id of `name`.
fn locked(text: &str, name: &str) -> Option<(i32, i32)> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let (_, ids) = lines.find(|(word, _)| *word == name)?;
    let (module, protocol) = ids.trim().split_once(':')?;
    Some((module.parse().ok()?, protocol.parse().ok()?))
}
