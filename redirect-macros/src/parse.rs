//! Attributes and signatures as data. Says nothing about whether they make sense; `check` does.

use darling::ast::NestedMeta;
use darling::util::{PathList, SpannedValue};
use darling::{FromMeta, Result};
use proc_macro2::{Span, TokenStream};
use syn::{Attribute, Expr, FnArg, Ident, ImplItem, ImplItemFn, ItemImpl, Meta, Path, ReturnType, Type};

/// A block under `#[module]`.
pub struct Block {
    pub item: ItemImpl,
    pub args: ModuleArgs,
    /// What the module is called on the wire.
    pub name: String,
    pub handlers: Vec<Handler>,
    pub broken: Vec<ImplItemFn>,
}

#[derive(FromMeta, Default)]
pub struct ModuleArgs {
    #[darling(default)]
    pub id: Option<SpannedValue<Number>>,
    #[darling(default)]
    pub choice: Option<SpannedValue<Text>>,
    #[darling(default)]
    pub dynamic: Switch,
    #[darling(default)]
    pub name: Option<SpannedValue<Text>>,
    #[darling(default)]
    pub pushes: PathList,
    /// Of `pushes`.
    #[darling(default)]
    pub sheddable: PathList,
    /// Of `pushes`.
    #[darling(default)]
    pub critical: PathList,
}

#[derive(FromMeta, Default)]
pub struct HandlerArgs {
    #[darling(default)]
    pub level: Option<SpannedValue<Text>>,
    #[darling(default)]
    pub route_by: Option<SpannedValue<Number>>,
    #[darling(default)]
    pub id: Option<SpannedValue<Number>>,
    #[darling(default)]
    pub parallel: Switch,
    #[darling(default)]
    pub notify: Switch,
    #[darling(default)]
    pub once: Option<SpannedValue<Number>>,
}

/// One function under `#[handler]`.
pub struct Handler {
    pub args: HandlerArgs,
    pub method: ImplItemFn,
}

/// An `i32` that may be negative, as protocol ids often are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Number(pub i32);

impl FromMeta for Number {
    fn from_expr(expr: &Expr) -> Result<Self> {
        let text = quote::quote!(#expr).to_string().replace([' ', '_'], "");
        let wrong =
            || darling::Error::custom("write a whole number that fits 32 bits, such as `7`").with_span(expr);
        text.parse().map(Number).map_err(|_| wrong())
    }
}

/// A word in quotes.
pub struct Text(pub String);

impl FromMeta for Text {
    fn from_expr(expr: &Expr) -> Result<Self> {
        match expr {
            Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Ok(Self(text.value())),
            other => Err(darling::Error::custom("write a word in quotes").with_span(other)),
        }
    }

    fn from_word() -> Result<Self> {
        Err(darling::Error::custom("needs a word in quotes, such as `level = \"normal\"`"))
    }
}

/// Said or not.
#[derive(Clone, Copy, Default)]
pub struct Switch(bool);

impl Switch {
    pub fn is_on(self) -> bool {
        self.0
    }
}

impl FromMeta for Switch {
    fn from_word() -> Result<Self> {
        Ok(Self(true))
    }

    fn from_expr(expr: &Expr) -> Result<Self> {
        let text = "this is on when it is named and off when it is not; write it without a value";
        Err(darling::Error::custom(text).with_span(expr))
    }
}

impl Handler {
    pub fn ident(&self) -> &Ident {
        &self.method.sig.ident
    }

    /// Its second parameter is `&mut Tx`: it is a transaction.
    pub fn is_transaction(&self) -> bool {
        match self.method.sig.inputs.iter().nth(1) {
            Some(FnArg::Typed(arg)) => is_tx(&arg.ty),
            _ => false,
        }
    }

    /// The type of the third parameter, if there is one.
    pub fn request(&self) -> Option<&Type> {
        match self.method.sig.inputs.iter().nth(2) {
            Some(FnArg::Typed(arg)) => Some(&arg.ty),
            _ => None,
        }
    }

    /// The `T` of `-> Result<T>`.
    pub fn reply(&self) -> Option<&Type> {
        let ReturnType::Type(_, result) = &self.method.sig.output else { return None };
        result_arguments(result).next()
    }

    /// The `E` of `-> Result<T, E>`.
    pub fn error(&self) -> Option<&Type> {
        let ReturnType::Type(_, result) = &self.method.sig.output else { return None };
        result_arguments(result).nth(1)
    }
}

fn result_arguments(result: &Type) -> impl Iterator<Item = &Type> {
    let last = match result {
        Type::Path(result) => result.path.segments.last().filter(|segment| segment.ident == "Result"),
        _ => None,
    };
    let arguments = last.and_then(|last| match &last.arguments {
        syn::PathArguments::AngleBracketed(arguments) => Some(&arguments.args),
        _ => None,
    });
    arguments.into_iter().flatten().filter_map(|argument| match argument {
        syn::GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

impl Block {
    /// The module's number; `check` has refused a block without one.
    pub fn id(&self) -> i32 {
        self.args.id.as_ref().map_or(0, |id| id.as_ref().0)
    }

    /// Where the number stands.
    pub fn id_span(&self) -> Span {
        self.args.id.as_ref().map_or_else(Span::call_site, SpannedValue::span)
    }

    /// `Module.name`, from which an id is made.
    pub fn protocol(&self, of: &Ident) -> String {
        format!("{}.{}", self.name, bare(of))
    }

    /// A push's name is its type's.
    pub fn push(&self, path: &Path) -> String {
        path.segments.last().map_or_else(String::new, |segment| self.protocol(&segment.ident))
    }
}

/// `&mut Tx`.
pub fn is_tx(ty: &Type) -> bool {
    let Type::Reference(reference) = ty else { return false };
    let Type::Path(path) = &*reference.elem else { return false };
    let named = path.path.segments.last().is_some_and(|segment| segment.ident == "Tx");
    named && reference.mutability.is_some()
}

/// Without the `r#` of a raw identifier.
pub fn bare(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map_or(text.clone(), str::to_owned)
}

/// Takes the attributes of ours out of `item`, so that what is left is the block as it was written. What can't be read
/// is an error, and stands in the block as if it had not been said, so that `check` still sees the rest.
pub fn block(args: TokenStream, item: &mut ItemImpl) -> (Block, Option<syn::Error>) {
    let mut errors = darling::Error::accumulator();
    let args: ModuleArgs = errors.handle(attribute(args, "module")).unwrap_or_default();
    let mut handlers = Vec::new();
    let mut broken = Vec::new();
    for entry in &mut item.items {
        let ImplItem::Fn(method) = entry else {
            errors.handle(no_function(entry));
            continue;
        };
        errors.handle(places(method));
        let (hook, handler) = (take(&mut method.attrs, "on_broken"), take(&mut method.attrs, "handler"));
        method.attrs.retain(|attr| !is(attr, "on_broken") && !is(attr, "handler"));
        if let Some(attr) = hook {
            if !matches!(attr.meta, Meta::Path(_)) {
                errors.push(darling::Error::custom("`#[on_broken]` takes no arguments").with_span(&attr));
            }
            broken.push(method.clone());
        }
        if let Some(attr) = handler {
            let tokens = match &attr.meta {
                Meta::List(list) => list.tokens.clone(),
                _ => TokenStream::new(),
            };
            let args = errors.handle(attribute(tokens, "handler")).unwrap_or_default();
            handlers.push(Handler { args, method: method.clone() });
        }
    }
    let name = args.name.as_ref().map_or_else(|| type_name(&item.self_ty), |name| name.as_ref().0.clone());
    let block = Block { item: item.clone(), args, name, handlers, broken };
    (block, errors.finish().err().map(syn::Error::from))
}

/// Attributes of ours where they mean nothing.
fn no_function(entry: &mut ImplItem) -> Result<()> {
    let attrs = match entry {
        ImplItem::Const(item) => &mut item.attrs,
        ImplItem::Type(item) => &mut item.attrs,
        _ => return Ok(()),
    };
    match take(attrs, "handler").or_else(|| take(attrs, "on_broken")) {
        Some(attr) => Err(darling::Error::custom("only an `async fn` can be called").with_span(&attr)),
        None => Ok(()),
    }
}

fn places(method: &ImplItemFn) -> Result<()> {
    let ours: Vec<_> =
        method.attrs.iter().filter(|attr| is(attr, "handler") || is(attr, "on_broken")).collect();
    if let [_, second, ..] = ours.as_slice() {
        let text = "a function is one handler or one hook; write a second function";
        return Err(darling::Error::custom(text).with_span(second));
    }
    let under = method.attrs.iter().find(|attr| is(attr, "cfg")).filter(|_| !ours.is_empty());
    match under {
        Some(cfg) => {
            let text = "a handler can't be left out by `#[cfg]`: providers of one module would announce different \
                        protocols; put the `#[cfg]` inside it";
            Err(darling::Error::custom(text).with_span(cfg))
        }
        None => Ok(()),
    }
}

fn attribute<T: FromMeta>(tokens: TokenStream, what: &str) -> Result<T> {
    let list = NestedMeta::parse_meta_list(tokens).map_err(|error| {
        darling::Error::custom(format!("in `#[{what}]`: {error}")).with_span(&error.span())
    })?;
    if let Some(bare) = list.iter().find(|item| matches!(item, NestedMeta::Lit(_))) {
        let text = "write each argument with its name, such as `id = 7`";
        return Err(darling::Error::custom(text).with_span(bare));
    }
    T::from_list(&list)
}

/// Removes the attribute called `name`.
fn take(attrs: &mut Vec<Attribute>, name: &str) -> Option<Attribute> {
    attrs.iter().position(|attr| is(attr, name)).map(|at| attrs.remove(at))
}

/// By itself or as `linkstead::name`.
fn is(attr: &Attribute, name: &str) -> bool {
    attr.path().segments.last().is_some_and(|segment| segment.ident == name)
}

/// The last part of a type's path; empty for what has none, such as `()`.
pub fn type_name(ty: &Type) -> String {
    match ty {
        Type::Path(path) => {
            path.path.segments.last().map_or_else(String::new, |segment| bare(&segment.ident))
        }
        _ => String::new(),
    }
}
