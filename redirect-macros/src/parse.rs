//! Attributes and signatures as data. Says nothing about whether they make sense; `check` does.

use darling::ast::NestedMeta;
use darling::util::{Flag, PathList, SpannedValue};
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

#[derive(FromMeta)]
pub struct ModuleArgs {
    pub id: SpannedValue<Number>,
    #[darling(default)]
    pub choice: Option<SpannedValue<String>>,
    #[darling(default)]
    pub dynamic: Flag,
    #[darling(default)]
    pub name: Option<SpannedValue<String>>,
    #[darling(default)]
    pub pushes: PathList,
}

#[derive(FromMeta)]
pub struct HandlerArgs {
    #[darling(default)]
    pub level: Option<SpannedValue<String>>,
    #[darling(default)]
    pub route_by: Option<SpannedValue<u32>>,
    #[darling(default)]
    pub id: Option<SpannedValue<Number>>,
    #[darling(default)]
    pub parallel: Flag,
    #[darling(default)]
    pub notify: Flag,
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

impl Handler {
    pub fn ident(&self) -> &Ident {
        &self.method.sig.ident
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
        let Type::Path(result) = &**result else { return None };
        let last = result.path.segments.last().filter(|segment| segment.ident == "Result")?;
        let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
        match arguments.args.first() {
            Some(syn::GenericArgument::Type(reply)) => Some(reply),
            _ => None,
        }
    }
}

impl Block {
    /// `Module.name`, from which an id is made.
    pub fn protocol(&self, of: &Ident) -> String {
        format!("{}.{}", self.name, bare(of))
    }

    /// A push's name is its type's.
    pub fn push(&self, path: &Path) -> String {
        path.segments.last().map_or_else(String::new, |segment| self.protocol(&segment.ident))
    }
}

/// Without the `r#` of a raw identifier.
pub fn bare(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map_or(text.clone(), str::to_owned)
}

/// Takes the attributes of ours out of `item`, so that what is left is the block as it was written.
pub fn block(args: TokenStream, item: &mut ItemImpl) -> syn::Result<Block> {
    let mut errors = darling::Error::accumulator();
    let args = errors.handle(attribute(args, "module"));
    let mut handlers = Vec::new();
    let mut broken = Vec::new();
    for entry in &mut item.items {
        let ImplItem::Fn(method) = entry else { continue };
        if let Some(attr) = take(&mut method.attrs, "on_broken") {
            if !matches!(attr.meta, Meta::Path(_)) {
                errors.push(darling::Error::custom("`#[on_broken]` takes no arguments").with_span(&attr));
            }
            broken.push(method.clone());
        }
        if let Some(attr) = take(&mut method.attrs, "handler") {
            let tokens = match &attr.meta {
                Meta::List(list) => list.tokens.clone(),
                _ => TokenStream::new(),
            };
            if let Some(args) = errors.handle(attribute(tokens, "handler")) {
                handlers.push(Handler { args, method: method.clone() });
            }
        }
    }
    errors.finish().map_err(syn::Error::from)?;
    let args: ModuleArgs =
        args.ok_or_else(|| syn::Error::new(Span::call_site(), "the arguments can't be read"))?;
    let name = args.name.as_ref().map_or_else(|| type_name(&item.self_ty), |name| name.as_ref().clone());
    Ok(Block { item: item.clone(), args, name, handlers, broken })
}

fn attribute<T: FromMeta>(tokens: TokenStream, what: &str) -> Result<T> {
    let list = NestedMeta::parse_meta_list(tokens).map_err(|error| {
        darling::Error::custom(format!("in `#[{what}]`: {error}")).with_span(&error.span())
    })?;
    T::from_list(&list)
}

/// Removes the attribute called `name`, by itself or as `linkstead::name`.
fn take(attrs: &mut Vec<Attribute>, name: &str) -> Option<Attribute> {
    let ours = |attr: &Attribute| attr.path().segments.last().is_some_and(|segment| segment.ident == name);
    attrs.iter().position(ours).map(|at| attrs.remove(at))
}

fn type_name(ty: &Type) -> String {
    match ty {
        Type::Path(path) => {
            path.path.segments.last().map_or_else(String::new, |segment| bare(&segment.ident))
        }
        _ => String::new(),
    }
}
