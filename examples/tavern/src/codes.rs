//! The tavern's own refusals. The number reaches the client in the result of its request; the text stays in the log.

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
                _ => "the tavern says no",
            }
        }
    };
}

codes! {
    BAD_ROOM_NAME = 1, "a room's name has 1 to 32 bytes without control characters";
    BAD_TEXT = 2, "what you say has 1 to 500 bytes without control characters";
    NOT_IN_ROOM = 3, "you are not in this room";
    ROOM_FULL = 4, "this room is full";
    NO_MORE_ROOMS = 5, "this server has no place for another room";
    TOO_MANY_ROOMS = 6, "you are in too many rooms";
    NOT_HERE = 7, "no such guest is here";
    NOT_KEEPER = 8, "only the keeper may do this";
    SHOWN_OUT = 9, "the keeper has shown you out";
}

/// A handler's refusal with one of these numbers.
pub fn refuse(code: i32) -> Error {
    Error::code(code, text(code))
}

/// Refuses words that are empty, endless or would disturb a terminal.
pub fn check_text(text: &str) -> Result<(), i32> {
    let fine = (1..=500).contains(&text.len()) && !text.chars().any(char::is_control);
    if fine { Ok(()) } else { Err(BAD_TEXT) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_bounded_and_clean() {
        assert!(check_text("héllo, 世界").is_ok());
        assert!(check_text(&"x".repeat(500)).is_ok());
        for bad in ["", "a\nb", "\u{1b}[2J", &"x".repeat(501)] {
            assert_eq!(check_text(bad), Err(BAD_TEXT), "{bad:?}");
        }
        assert_eq!(text(ROOM_FULL), "this room is full");
    }
}
