//! All mistakes of a block at once, in the words of whoever wrote it, each pointing at the token to change.

use proc_macro2::Span;
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Error, FnArg, ImplItemFn, ReturnType, Signature, Type};

use crate::parse::{Block, Handler};

/// How a gateway may pick a provider.
pub const CHOICES: &[&str] = &["request", "hash_account", "hash_role", "hash_source", "feed_full", "load"];
/// From what runs longest under load to what is shed first.
pub const LEVELS: &[&str] = &["critical_plus", "critical", "normal", "sheddable"];
/// The largest field number of a protobuf message.
const FIELD_MAX: i32 = (1 << 29) - 1;
const PROTOCOLS_MAX: usize = 1_024;

struct Mistakes(Option<Error>);

impl Mistakes {
    fn add(&mut self, at: impl Spanned, text: impl std::fmt::Display) {
        let error = Error::new(at.span(), text);
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }
}

/// `unread` is what `parse` could not make sense of.
pub fn block(block: &Block, unread: Option<Error>) -> Result<(), Error> {
    let mut mistakes = Mistakes(unread);
    shape(block, &mut mistakes);
    module(block, &mut mistakes);
    for handler in &block.handlers {
        arguments(handler, &mut mistakes);
        signature(handler, &mut mistakes);
    }
    ids(block, &mut mistakes);
    pushes(block, &mut mistakes);
    hooks(block, &mut mistakes);
    mistakes.0.map_or(Ok(()), Err)
}

fn shape(block: &Block, mistakes: &mut Mistakes) {
    let item = &block.item;
    if let Some((trait_, _)) = &item.trait_ {
        mistakes.add(trait_, "`#[module]` stands above the type's own `impl`, not above one of a trait");
    }
    if !item.generics.params.is_empty() {
        mistakes.add(&item.generics, "a module has no generic parameters: it is announced under one id");
    }
    if !matches!(&*item.self_ty, Type::Path(_)) {
        mistakes.add(&item.self_ty, "a module is a named type");
    }
}

fn module(block: &Block, mistakes: &mut Mistakes) {
    let args = &block.args;
    match &args.id {
        Some(id) if matches!(id.as_ref().0, 0 | 10_000 | 11_000..=11_999) => {
            let given = id.as_ref().0;
            let text =
                format!("module id {given} belongs to the framework; 0, 10000 and 11000 to 11999 are taken");
            mistakes.add(id.span(), text);
        }
        // An id that could not be read has been complained about.
        None if mistakes.0.is_none() => {
            let text = "a module needs a number of its own in the cluster: `#[module(id = 7)]`";
            mistakes.add(Span::call_site(), text);
        }
        _ => {}
    }
    if let Some(choice) = &args.choice {
        one_of(&choice.as_ref().0, CHOICES, "choice", choice.span(), mistakes);
    }
    if let Some(given) = &args.name {
        let name = &given.as_ref().0;
        let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_');
        if name.is_empty() || name.len() > 128 || !name.chars().all(allowed) {
            mistakes.add(given.span(), "a module's name has 1 to 128 letters, digits, `_` or `.`");
        }
    }
    if block.handlers.len() + args.pushes.len() > PROTOCOLS_MAX {
        mistakes
            .add(&block.item.self_ty, format!("a module has at most {PROTOCOLS_MAX} handlers and pushes"));
    }
}

fn one_of(given: &str, known: &[&str], what: &str, at: proc_macro2::Span, mistakes: &mut Mistakes) {
    if !known.contains(&given) {
        let known: Vec<_> = known.iter().map(|word| format!("\"{word}\"")).collect();
        mistakes.add(at, format!("{given:?} is no {what}; there are {}", known.join(", ")));
    }
}

fn arguments(handler: &Handler, mistakes: &mut Mistakes) {
    let args = &handler.args;
    if let Some(level) = &args.level {
        one_of(&level.as_ref().0, LEVELS, "level", level.span(), mistakes);
    }
    if let Some(field) = args.route_by.as_ref().filter(|field| !(1..=FIELD_MAX).contains(&field.as_ref().0)) {
        mistakes.add(field.span(), "`route_by` is the number of a field of the request, from 1 on");
    }
    if let Some(field) = &args.once {
        if !(1..=FIELD_MAX).contains(&field.as_ref().0) {
            let text = "`once` is the number of the request's field that says which request it is, from 1 on";
            mistakes.add(field.span(), text);
        }
        if !handler.is_transaction() {
            let text = "what is done once is written in the transaction that does it: take `tx: &mut Tx` instead of `cx: &Cx`";
            mistakes.add(field.span(), text);
        }
    }
}

fn signature(handler: &Handler, mistakes: &mut Mistakes) {
    let signature = &handler.method.sig;
    let name = handler.ident();
    common(signature, "handler", mistakes);
    let arguments: Vec<_> = signature.inputs.iter().skip(2).collect();
    match arguments.as_slice() {
        [FnArg::Typed(request)] => match &*request.ty {
            Type::Reference(reference) => {
                mistakes.add(reference, "a request is taken by value: it was decoded for this call alone");
            }
            Type::ImplTrait(given) => mistakes.add(given, "name the message's type"),
            _ => {}
        },
        [] => mistakes.add(
            name,
            format!("`{name}` takes no request; write `{name}(&self, cx: &Cx, request: Message)`"),
        ),
        [_, more, ..] => mistakes.add(more, "a handler takes one message; put more fields into it"),
        [FnArg::Receiver(receiver)] => mistakes.add(receiver, "`self` comes first"),
    }
    if let Some(error) = handler.error().filter(|error| !is_named(error, "Error")) {
        let text = "a client is told a `linkstead::Error`: write `Result<Reply>`, and `Error::code(…)` for your own codes";
        mistakes.add(error, text);
    }
    match (handler.reply(), &signature.output) {
        (None, ReturnType::Default) => {
            mistakes.add(
                name,
                format!("`{name}` returns nothing; a handler returns `Result<Reply>` or `Result<()>`"),
            );
        }
        (None, ReturnType::Type(_, given)) => {
            mistakes.add(given, "a handler returns `Result<Reply>` or `Result<()>`")
        }
        (Some(reply), _) if handler.args.notify.is_on() && !is_unit(reply) => {
            let text = "a `notify` handler answers nobody: return `Result<()>` or drop `notify`";
            mistakes.add(reply, text);
        }
        (Some(reply), _) if matches!(reply, Type::Reference(_)) => {
            mistakes.add(reply, "a reply is returned by value")
        }
        _ => {}
    }
}

/// What handlers and hooks have in common: `async fn name(&self, cx: &Cx, …)`.
fn common(signature: &Signature, what: &str, mistakes: &mut Mistakes) {
    let name = &signature.ident;
    if signature.asyncness.is_none() {
        mistakes.add(signature.fn_token, format!("a {what} is an `async fn`"));
    }
    if let syn::Safety::Unsafe(token) = &signature.safety {
        mistakes.add(token, format!("a {what} is called by the framework, so it can't be `unsafe`"));
    }
    if !signature.generics.params.is_empty() {
        mistakes.add(
            &signature.generics,
            format!("a {what} has no generic parameters: its messages are one type each"),
        );
    }
    match signature.inputs.first() {
        Some(FnArg::Receiver(receiver)) if is_shared_self(receiver) => {}
        Some(FnArg::Receiver(receiver)) => {
            let text =
                "write `&self`: many sessions call one module at once; keep what changes behind a lock";
            mistakes.add(receiver, text);
        }
        _ => mistakes.add(name, format!("`{name}` has no `&self`")),
    }
    match signature.inputs.iter().nth(1) {
        Some(FnArg::Typed(cx)) if is_cx(&cx.ty) => {}
        Some(FnArg::Typed(tx)) if what == "handler" && crate::parse::is_tx(&tx.ty) => {}
        Some(other) if what == "handler" => mistakes
            .add(other, "the first parameter after `&self` is `cx: &Cx`, or `tx: &mut Tx` for a transaction"),
        Some(other) => mistakes.add(other, "the first parameter after `&self` is `cx: &Cx`"),
        None => mistakes.add(name, format!("`{name}` has no `cx: &Cx`")),
    }
}

fn is_shared_self(receiver: &syn::Receiver) -> bool {
    receiver.to_token_stream().to_string().replace(' ', "") == "&self"
}

fn is_cx(ty: &Type) -> bool {
    let Type::Reference(reference) = ty else { return false };
    let Type::Path(path) = &*reference.elem else { return false };
    reference.mutability.is_none() && path.path.segments.last().is_some_and(|segment| segment.ident == "Cx")
}

fn is_named(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|segment| segment.ident == name))
}

fn is_unit(ty: &Type) -> bool {
    matches!(ty, Type::Tuple(tuple) if tuple.elems.is_empty())
}

/// Numbers given by hand; those made from names are compared by the generated code, which has the hash.
fn ids(block: &Block, mistakes: &mut Mistakes) {
    for (index, handler) in block.handlers.iter().enumerate() {
        let Some(id) = &handler.args.id else { continue };
        let same =
            |other: &&Handler| other.args.id.as_ref().is_some_and(|other| other.as_ref() == id.as_ref());
        if let Some(first) = block.handlers[..index].iter().find(same) {
            mistakes.add(
                id.span(),
                format!("id {} is already used by `{}` in this module", id.as_ref().0, first.ident()),
            );
        }
    }
    for (index, handler) in block.handlers.iter().enumerate() {
        let constant = crate::expand::constant(handler.ident());
        let same = |other: &&Handler| crate::expand::constant(other.ident()) == constant;
        if let Some(first) = block.handlers[..index].iter().find(same) {
            let text =
                format!("`{}` and `{}` both get the constant `{constant}`", first.ident(), handler.ident());
            mistakes.add(handler.ident(), format!("{text}; rename one"));
        }
    }
}

fn pushes(block: &Block, mistakes: &mut Mistakes) {
    for (index, path) in block.args.pushes.iter().enumerate() {
        if block.args.pushes[..index].contains(path) {
            mistakes.add(path, "this message is named twice in `pushes`");
        }
    }
    for (list, paths) in [("sheddable", &block.args.sheddable), ("critical", &block.args.critical)] {
        for path in paths.iter().filter(|path| !block.args.pushes.contains(path)) {
            mistakes.add(path, format!("`{list}` names a message that is not in `pushes`"));
        }
    }
    for path in block.args.critical.iter().filter(|path| block.args.sheddable.contains(path)) {
        mistakes.add(path, "this message is both `sheddable` and `critical`");
    }
}

fn hooks(block: &Block, mistakes: &mut Mistakes) {
    for hook in &block.broken {
        common(&hook.sig, "hook", mistakes);
        extra(hook, mistakes);
    }
    for second in block.broken.iter().skip(1) {
        mistakes.add(&second.sig.ident, "a module has one `#[on_broken]`");
    }
}

fn extra(hook: &ImplItemFn, mistakes: &mut Mistakes) {
    if let Some(more) = hook.sig.inputs.iter().nth(2) {
        mistakes.add(more, "a hook takes `&self` and `cx: &Cx` only");
    }
    if let ReturnType::Type(_, given) = &hook.sig.output {
        mistakes.add(given, "a hook returns nothing: nobody is left to answer");
    }
}
