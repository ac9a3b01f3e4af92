//! What a block generates, one function per item. All of it is calls and constants; what they do is `linkstead`'s.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::Ident;

use crate::check::CHOICES;
use crate::lock::Lock;
use crate::parse::{Block, Handler, bare, type_name};

/// One protocol of the module, be it a handler's or a push's.
pub struct Protocol {
    pub name: String,
    /// An `i32` expression.
    pub id: TokenStream,
    pub span: Span,
}

pub fn all(block: &Block, lock: &Lock, asserts: TokenStream) -> TokenStream {
    let parts = [module(block), constants(block), pushes(block), distinct(block), asserts, watch(lock)];
    parts.into_iter().collect()
}

/// The constant that names a handler's protocol: `SAY` for `say`.
pub fn constant(handler: &Ident) -> Ident {
    format_ident!("{}", bare(handler).to_uppercase(), span = handler.span())
}

/// Handlers in the order of the block, then pushes.
pub fn protocols(block: &Block) -> Vec<Protocol> {
    let hashed = |name: &str| quote!(::linkstead::private::hash32(#name));
    let handlers = block.handlers.iter().map(|handler| {
        let name = block.protocol(handler.ident());
        let id = handler.args.id.as_ref().map(|id| id.as_ref().0);
        Protocol {
            id: id.map_or_else(|| hashed(&name), |id| quote!(#id)),
            name,
            span: handler.ident().span(),
        }
    });
    let pushes = block.args.pushes.iter().map(|path| {
        let name = block.push(path);
        let span = path.segments.last().map_or_else(Span::call_site, |segment| segment.ident.span());
        Protocol { id: hashed(&name), name, span }
    });
    handlers.chain(pushes).collect()
}

/// `impl Module`: the description and the table of handlers.
fn module(block: &Block) -> TokenStream {
    let ty = &block.item.self_ty;
    let (id, name) = (block.id(), &block.name);
    let choice = block.args.choice.as_ref().map_or(CHOICES[0], |choice| choice.as_ref().0.as_str());
    let dynamic = block.args.dynamic.is_on();
    let protocols = protocols(block);
    let (handlers, pushes) = protocols.split_at(block.handlers.len());
    let described =
        block.handlers.iter().zip(handlers).map(|(handler, protocol)| describe(handler, protocol));
    let pushed = pushes.iter().map(|Protocol { name, id, .. }| quote!((#name, #id)));
    let calls = block.handlers.iter().enumerate().map(|(index, handler)| call(index, handler));
    let broken = block.broken.first().map(|hook| {
        let hook = &hook.sig.ident;
        quote_spanned! {hook.span()=>
            handlers.broken(|module, cx| async move { Self::#hook(&module, &cx).await });
        }
    });
    quote! {
        impl ::linkstead::Module for #ty {
            const DESCRIPTOR: ::linkstead::Descriptor = ::linkstead::Descriptor {
                id: #id,
                name: #name,
                choice: #choice,
                dynamic: #dynamic,
                package: ::core::env!("CARGO_PKG_NAME"),
                protocols: &[#(#described),*],
                pushes: &[#(#pushed),*],
            };

            fn handlers(handlers: &mut ::linkstead::Handlers<Self>) {
                #(#calls)*
                #broken
            }
        }
    }
}

fn describe(handler: &Handler, Protocol { name, id, .. }: &Protocol) -> TokenStream {
    let level = match handler.args.level.as_ref().map(|level| level.as_ref().0.as_str()) {
        Some("critical_plus") => quote!(CriticalPlus),
        Some("critical") => quote!(Critical),
        Some("sheddable") => quote!(Sheddable),
        _ => quote!(Normal),
    };
    let route_by = handler.args.route_by.as_ref().map_or(0, |field| field.as_ref().0 as u32);
    let (parallel, notify) = (handler.args.parallel.is_on(), handler.args.notify.is_on());
    let (request, reply) = (handler.request(), handler.reply());
    let [request, reply] = [request, reply].map(|ty| ty.map_or_else(String::new, type_name));
    quote! {
        ::linkstead::Protocol {
            id: #id, name: #name, route_by: #route_by, level: ::linkstead::Level::#level,
            parallel: #parallel, notify: #notify,
            request: #request, reply: #reply,
        }
    }
}

/// One call per handler; whatever happens around it is the framework's.
fn call(index: usize, handler: &Handler) -> TokenStream {
    let name = handler.ident();
    let rpc = constant(name);
    if handler.is_transaction() {
        let once = handler.args.once.as_ref().map_or(0, |field| field.as_ref().0 as u32);
        return quote_spanned! {name.span()=>
            handlers.transaction(
                &<Self as ::linkstead::Module>::DESCRIPTOR.protocols[#index],
                #once,
                Self::#rpc,
                |module, mut tx, request| async move { Self::#name(&module, &mut tx, request).await },
            );
        };
    }
    quote_spanned! {name.span()=>
        handlers.request(
            &<Self as ::linkstead::Module>::DESCRIPTOR.protocols[#index],
            Self::#rpc,
            |module, cx, request| async move {
                let result = Self::#name(&module, &cx, request).await;
                (cx, result)
            },
        );
    }
}

/// Typed constants for clients: `Rank::SUBMIT`.
fn constants(block: &Block) -> TokenStream {
    let ty = &block.item.self_ty;
    let module = block.id();
    let protocols = protocols(block);
    let constants = block.handlers.iter().zip(&protocols).map(|(handler, Protocol { name, id, span })| {
        let constant = constant(handler.ident());
        let (request, reply) = (handler.request(), handler.reply());
        let doc = format!("Protocol `{name}`, for `client.request` and `client.notify`.");
        quote_spanned! {*span=>
            #[doc = #doc]
            pub const #constant: ::linkstead::Rpc<#request, #reply> = ::linkstead::Rpc::new(#module, #id, #name);
        }
    });
    quote! {
        #[allow(dead_code)]
        impl #ty { #(#constants)* }
    }
}

fn pushes(block: &Block) -> TokenStream {
    let module = block.id();
    let protocols = protocols(block);
    let named = block.args.pushes.iter().zip(&protocols[block.handlers.len()..]);
    let impls = named.map(|(path, Protocol { name, id, span })| {
        let level = match path {
            path if block.args.sheddable.contains(path) => quote!(Sheddable),
            path if block.args.critical.contains(path) => quote!(Critical),
            _ => quote!(Normal),
        };
        quote_spanned! {*span=>
            impl ::linkstead::Push for #path {
                const TYPE_ID: ::linkstead::private::TypeId = ::linkstead::private::type_id(#module, #id);
                const NAME: &'static str = #name;
                const LEVEL: ::linkstead::Level = ::linkstead::Level::#level;
            }
        }
    });
    impls.collect()
}

/// Two names may hash to one number; the hash is the framework's, so the generated code compares.
fn distinct(block: &Block) -> TokenStream {
    let protocols = protocols(block);
    let mut out = TokenStream::new();
    for (index, protocol) in protocols.iter().enumerate().skip(1) {
        let before = protocols[..index].iter().map(|other| &other.id);
        let id = &protocol.id;
        let message = format!(
            "the id of `{}` is already used by another protocol of this module; give one of them its own with `id = …`",
            protocol.name
        );
        out.extend(quote_spanned! {protocol.span=>
            const _: () = ::core::assert!(!::linkstead::private::contains(&[#(#before),*], #id), #message);
        });
    }
    out
}

/// Has the compiler look again when the lock file or its switch changes.
fn watch(lock: &Lock) -> TokenStream {
    let Some(path) = lock.path.as_ref().and_then(|path| path.to_str()) else { return TokenStream::new() };
    quote! {
        const _: (&[u8], ::core::option::Option<&str>) =
            (::core::include_bytes!(#path), ::core::option_env!("LINKSTEAD_LOCK"));
    }
}
