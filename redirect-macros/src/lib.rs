//! The macros of `linkstead`. A block under `#[module]` stays as it was written; beside it come one call per
//! handler, typed constants for clients and the description that is announced to the gateways.
//!
//! | room | is |
//! |---|---|
//! | `parse` | attributes and signatures as data |
//! | `check` | every mistake of a block at once, in the words of whoever wrote it |
//! | `lock` | `protocols.lock`, which keeps a rename from changing the wire unseen |
//! | `expand` | one function per generated item |
//! | `record` | `#[derive(Record)]`, from its arguments to its `impl` |

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;

mod check;
mod expand;
mod lock;
mod parse;
mod record;

/// Makes an `impl` block of a type a module: a numbered group of protocols that gateways route to a provider.
///
/// | argument | means | default |
/// |---|---|---|
/// | `id = 7` | the module's number in the cluster; not 0, 10000 or 11000–11999 | required |
/// | `choice = "…"` | how a gateway picks a provider: `request`, `hash_account`, `hash_role`, `hash_source`, `feed_full`, `load` | `request` |
/// | `dynamic` | bound for a session only by `Cx::bind`; else the first request binds it | static |
/// | `name = "…"` | what its protocols are called, and so what their ids are made from | the type's name |
/// | `pushes(A, B)` | messages that it sends to clients unasked | none |
/// | `sheddable(A)` | those of `pushes` that are given up first when a gateway sends more than it may | none |
/// | `critical(B)` | those of `pushes` that are never given up | none |
///
/// Inside the block `#[handler]` marks a client's request:
/// `async fn name(&self, cx: &Cx, request: Message) -> Result<Reply>`.
///
/// | argument | means | default |
/// |---|---|---|
/// | `level = "…"` | what is shed first under load: `sheddable`, `normal`, `critical`, `critical_plus` | `normal` |
/// | `route_by = 1` | the number of the request's field by whose value it is routed | the module's choice |
/// | `parallel` | may overlap with the session's other requests | one after another |
/// | `notify` | the client expects no answer | answered |
/// | `id = …` | the protocol's number | `hash32("Module.handler")` |
/// | `once = 1` | the number of the request's field that says which of its account's requests it is: sent again it is answered again, and not done again; `&mut Tx` only | done each time |
///
/// With `tx: &mut Tx` instead of `cx: &Cx` a handler is a transaction: see `linkstead::Tx`.
///
/// `#[on_broken] async fn name(&self, cx: &Cx)` runs once after the last request of a session that ended.
///
/// When `protocols.lock` lies beside the package's `Cargo.toml`, every protocol must stand in it with its number;
/// `LINKSTEAD_LOCK=off cargo run -- protocols > protocols.lock` writes it anew. A file that was just created is looked at
/// from the next change of the source on.
#[proc_macro_attribute]
pub fn module(args: TokenStream, block: TokenStream) -> TokenStream {
    expanded(args.into(), block.into(), &lock::Lock::of_package()).into()
}

/// Makes a message a record: what a table of the game holds.
///
/// ```ignore
/// #[derive(Clone, PartialEq, prost::Message, Record)]
/// #[record(table = "score", id = 101, key = u64)]
/// pub struct Score { #[prost(uint64, tag = "1")] pub best: u64 }
/// ```
///
/// | argument | means | default |
/// |---|---|---|
/// | `table = "…"` | what the table is called in messages and at the storage: 1 to 64 letters a to z, digits and `_`, not `_` first; it may be renamed | required |
/// | `id = 101` | what the table is at the storage and between nodes, 1 to 2147483647: never changed, and never used for another one | required |
/// | `key = u64` | the type of its key: a number, a text, an id, or a tuple of them (`linkstead::Key`) | required |
/// | `durability = "…"` | when a commit is safe: `memory`, `grouped`, `sync` (`linkstead::Durability`) | `grouped` |
#[proc_macro_derive(Record, attributes(record))]
pub fn record(item: TokenStream) -> TokenStream {
    record::derived(item.into()).into()
}

/// Marks a client's request, inside an `impl` block under [`macro@module`]. See there.
#[proc_macro_attribute]
pub fn handler(_args: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("handler", item.into()).into()
}

/// Marks what runs when a session is over, inside an `impl` block under [`macro@module`]. See there.
#[proc_macro_attribute]
pub fn on_broken(_args: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("on_broken", item.into()).into()
}

/// `#[module]` takes the attributes of its block out, so one that is still there stands somewhere else.
fn misplaced(what: &str, item: Tokens) -> Tokens {
    let text =
        format!("`#[{what}]` stands on a function of an `impl` block that is under `#[module(id = …)]`");
    let error = syn::Error::new(proc_macro2::Span::call_site(), text).to_compile_error();
    quote::quote!(#item #error)
}

/// The block as it was written, and beside it what it generates or every mistake in it.
fn expanded(args: Tokens, block: Tokens, lock: &lock::Lock) -> Tokens {
    let mut item: syn::ItemImpl = match syn::parse2(block.clone()) {
        Ok(item) => item,
        Err(_) => {
            let error =
                syn::Error::new(proc_macro2::Span::call_site(), "`#[module]` stands above an `impl` block");
            let error = error.to_compile_error();
            return quote::quote!(#error #block);
        }
    };
    let (block, unread) = parse::block(args, &mut item);
    let generated = match check::block(&block, unread) {
        Ok(()) => {
            // The lock's complaints stand beside the module, so that nothing else complains that it is missing.
            let locked = lock.check(&block).unwrap_or_else(|error| error.to_compile_error());
            expand::all(&block, lock, locked)
        }
        Err(error) => error.to_compile_error(),
    };
    quote::quote!(#item #generated)
}

#[cfg(test)]
mod tests;
