//! `#[derive(Record)]`: what stands in `#[record(…)]` as data, every mistake in it at once, and the one `impl` it writes.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Ident, LitInt, LitStr, Path, Token, Type};

/// What `#[record(…)]` may say. `crate` is for crates of the framework itself, which do not see `linkstead`.
const ARGUMENTS: &[&str] = &["table", "id", "key", "durability"];
const DURABILITIES: &[(&str, &str)] = &[("memory", "Memory"), ("grouped", "Grouped"), ("sync", "Sync")];
const NAME_BYTES_MAX: usize = 64;
/// Ids from here on are kept back for the framework.
const ID_END: u32 = 1 << 31;
/// And from here on they are in use by it, under names that begin with `_`.
const ID_OURS: u32 = 0xf000_0000;

/// What was said, each with where. `None`: it was not, or could not be read.
#[derive(Default)]
struct Arguments {
    table: Option<LitStr>,
    id: Option<(u32, Span)>,
    key: Option<Type>,
    durability: Option<LitStr>,
    path: Option<Path>,
    /// The names, whether or not their values could be read.
    said: Vec<Ident>,
}

#[derive(Default)]
struct Mistakes(Option<Error>);

impl Mistakes {
    fn add(&mut self, at: Span, text: impl std::fmt::Display) {
        self.push(Error::new(at, text));
    }

    fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }
}

/// The `impl`, or every mistake.
pub fn derived(item: TokenStream) -> TokenStream {
    let item: DeriveInput = match syn::parse2(item) {
        Ok(item) => item,
        Err(error) => return error.to_compile_error(),
    };
    let mut mistakes = Mistakes::default();
    shape(&item, &mut mistakes);
    let mut arguments = Arguments::default();
    for attr in item.attrs.iter().filter(|attr| attr.path().is_ident("record")) {
        let read = |input: ParseStream<'_>| {
            all(input, &mut arguments, &mut mistakes);
            Ok(())
        };
        if let Err(error) = attr.meta.require_list().and_then(|list| read.parse2(list.tokens.clone())) {
            mistakes.push(error);
        }
    }
    missing(&item, &arguments, &mut mistakes);
    values(&arguments, &mut mistakes);
    match (mistakes.0, expand(&item, &arguments)) {
        (None, Some(expanded)) => expanded,
        (error, _) => error.map_or_else(TokenStream::new, |error| error.to_compile_error()),
    }
}

fn shape(item: &DeriveInput, mistakes: &mut Mistakes) {
    let (name, text) = (&item.ident, "a record is a struct with named fields");
    match &item.data {
        Data::Struct(data) if matches!(data.fields, Fields::Unnamed(_)) => {
            mistakes.add(
                data.fields.span(),
                format!("{text}; give each field a name, and a tag with `#[prost(…)]`"),
            );
        }
        Data::Struct(_) => {}
        Data::Enum(data) => {
            let more = format!(
                "put `{name}` into one as a field: `#[prost(oneof = …)]` or `#[prost(enumeration = …)]`"
            );
            mistakes.add(data.enum_token.span, format!("{text}; {more}"));
        }
        Data::Union(data) => mistakes.add(data.union_token.span, text),
    }
    if !item.generics.params.is_empty() {
        mistakes.add(item.generics.span(), "a record has no generic parameters: its table holds one type");
    }
}

/// `name = value, …`: what can't be read is said, and the reading goes on with the next argument.
fn all(input: ParseStream<'_>, arguments: &mut Arguments, mistakes: &mut Mistakes) {
    let begins = || input.peek(Ident::peek_any) && input.peek2(Token![=]);
    while !input.is_empty() {
        if let Err(error) = one(input, arguments) {
            mistakes.push(error);
            while !input.is_empty() && !input.peek(Token![,]) && !begins() {
                // A token of any kind is always read.
                let _ = input.parse::<proc_macro2::TokenTree>();
            }
        }
        if input.peek(Token![,]) {
            let _ = input.parse::<Token![,]>();
        }
    }
}

fn one(input: ParseStream<'_>, arguments: &mut Arguments) -> syn::Result<()> {
    let spelled = "write each argument with its name, such as `id = 101`";
    let name: Ident = input.call(Ident::parse_any).map_err(|error| Error::new(error.span(), spelled))?;
    let word = name.to_string();
    if word != "crate" && !ARGUMENTS.contains(&word.as_str()) {
        return Err(unknown(&name, &word));
    }
    if arguments.said.contains(&name) {
        return Err(Error::new(name.span(), format!("`{word}` is said twice")));
    }
    arguments.said.push(name.clone());
    let value = match word.as_str() {
        "id" => "a whole number",
        "key" => "a type",
        _ => "a word in quotes",
    };
    input
        .parse::<Token![=]>()
        .map_err(|_| Error::new(name.span(), format!("`{word}` needs {value}: `{}`", example(&word))))?;
    match word.as_str() {
        "table" => arguments.table = Some(text(input)?),
        "durability" => arguments.durability = Some(text(input)?),
        "crate" => arguments.path = Some(text(input)?.parse()?),
        "id" => arguments.id = Some(number(input)?),
        _ => {
            let wrong =
                |error: Error| Error::new(error.span(), "write a type, without quotes, such as `key = u64`");
            arguments.key = Some(input.parse().map_err(wrong)?);
        }
    }
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(());
    }
    Err(input.error(format!("a comma belongs behind the value of `{word}`")))
}

fn unknown(name: &Ident, word: &str) -> Error {
    let near = darling::Error::unknown_field_with_alts(word, ARGUMENTS).to_string();
    let known = ARGUMENTS.iter().map(|known| format!("`{known}`")).collect::<Vec<_>>().join(", ");
    let begin =
        if near.ends_with('?') { format!("{near} There") } else { format!("Unknown field: `{word}`; there") };
    Error::new(name.span(), format!("{begin} are {known}"))
}

fn example(word: &str) -> &'static str {
    match word {
        "table" => "table = \"score\"",
        "id" => "id = 101",
        "key" => "key = u64",
        "durability" => "durability = \"sync\"",
        _ => "crate = \"tables\"",
    }
}

fn text(input: ParseStream<'_>) -> syn::Result<LitStr> {
    input.parse().map_err(|error: Error| Error::new(error.span(), "write a word in quotes"))
}

fn number(input: ParseStream<'_>) -> syn::Result<(u32, Span)> {
    let wrong = |at: Span| Error::new(at, format!("write a whole number from 1 to {}", ID_END - 1));
    let literal: LitInt = input.parse().map_err(|error: Error| wrong(error.span()))?;
    let number = literal.base10_parse().map_err(|_| wrong(literal.span()))?;
    Ok((number, literal.span()))
}

fn missing(item: &DeriveInput, arguments: &Arguments, mistakes: &mut Mistakes) {
    let whys = [
        ("table", "a name"),
        ("id", "a number of its own, which it keeps for ever"),
        ("key", "the type of its key"),
    ];
    for (word, what) in whys {
        if !arguments.said.iter().any(|said| said == word) {
            let text = format!("a record's table needs {what}: `#[record({})]`", example(word));
            mistakes.add(item.ident.span(), text);
        }
    }
}

fn values(arguments: &Arguments, mistakes: &mut Mistakes) {
    // The framework's own tables stand where a game's can't.
    let ours = arguments.path.is_some();
    if let Some(table) = &arguments.table {
        let name = table.value();
        let allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_';
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(allowed) {
            let text = format!("a table's name has 1 to {NAME_BYTES_MAX} letters a to z, digits and `_`");
            mistakes.add(table.span(), text);
        } else if name.starts_with('_') && !ours {
            mistakes.add(table.span(), "names that begin with `_` belong to the framework");
        }
    }
    if let Some((id, at)) = arguments.id
        && !((1..ID_END).contains(&id) || ours && id >= ID_OURS)
    {
        let text = format!("table id {id} belongs to the framework; take one from 1 to {}", ID_END - 1);
        mistakes.add(at, text);
    }
    if let Some(durability) = &arguments.durability
        && variant(durability).is_none()
    {
        let known: Vec<_> = DURABILITIES.iter().map(|(word, _)| format!("{word:?}")).collect();
        let text = format!("{:?} is no durability; there are {}", durability.value(), known.join(", "));
        mistakes.add(durability.span(), text);
    }
}

fn variant(durability: &LitStr) -> Option<Ident> {
    let given = durability.value();
    let (_, variant) = DURABILITIES.iter().find(|(word, _)| *word == given)?;
    Some(Ident::new(variant, Span::call_site()))
}

/// Nothing without the three that a table needs; `missing` has complained then.
fn expand(item: &DeriveInput, arguments: &Arguments) -> Option<TokenStream> {
    let (name, table, key) = (&item.ident, arguments.table.as_ref()?, arguments.key.as_ref()?);
    let (id, _) = arguments.id?;
    let path = arguments.path.as_ref().map_or_else(|| quote!(::linkstead), |path| quote!(#path));
    let durability = match &arguments.durability {
        Some(durability) => variant(durability)?,
        None => Ident::new("Grouped", Span::call_site()),
    };
    // At the name, so that what the struct lacks is said there.
    let header = quote_spanned!(name.span()=> impl #path::Record for #name);
    let kept = quote_spanned!(name.span()=> #path::private::kept::<#name>());
    Some(quote! {
        #[automatically_derived]
        #header {
            type Key = #key;
            const TABLE: &'static str = #table;
            const ID: #path::TableId = #path::TableId(#id);
            const DURABILITY: #path::Durability = #path::Durability::#durability;
        }

        const _: () = #kept;
    })
}
