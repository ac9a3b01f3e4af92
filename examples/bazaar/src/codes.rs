//! The bazaar's own refusals. The number reaches the client in the result of its request; the text stays in the log.

use linkstead::Error;

macro_rules! codes {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        $(
            #[doc = concat!($text, ".")]
            pub const $name: i32 = $number;
        )*

        /// Every number.
        pub const ALL: &[i32] = &[$($number),*];

        /// What a number means, for people.
        pub fn text(code: i32) -> &'static str {
            match code {
                $($number => $text,)*
                _ => "the bazaar says no",
            }
        }
    };
}

codes! {
    NO_ACCOUNT = 1, "this account has not been opened";
    NO_SUCH_KIND = 2, "nothing of this kind is traded here";
    BAD_AMOUNT = 3, "an amount or a price is nothing, or more than anybody can have";
    TOO_FEW_COINS = 4, "you have too few coins";
    TOO_FEW_ITEMS = 5, "you have too few of these items";
    SHELF_FULL = 6, "no more offers of this kind have a place; take one, or wait until one goes";
    TOO_MANY_OFFERS = 7, "you have as many open offers as anybody may";
    NO_SUCH_OFFER = 8, "there is no such offer any more";
    SAME_ACCOUNT = 9, "this is between two different accounts";
}

/// A handler's refusal with one of these numbers.
pub fn refuse(code: i32) -> Error {
    Error::code(code, text(code))
}
