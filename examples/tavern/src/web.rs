//! The page to play the tavern in a browser: its files, for whoever serves them. Beside them a page asks for
//! `config.json`, which says where the gateways are: `{"gateways": ["ws://127.0.0.1:7711"]}`, and with `"ticket": "PATH"` where
//! a ticket is had: the answer to a POST of the guest's name.

/// One file of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    /// What the browser asks for, without the leading `/`; empty is the page itself.
    pub path: &'static str,
    pub content_type: &'static str,
    pub text: &'static str,
}

const JS: &str = "text/javascript; charset=utf-8";

macro_rules! files {
    ($($path:literal, $content_type:expr, $from:literal;)*) => {
        /// All of them. The client library is the one of `clients/js`.
        pub const FILES: &[File] =
            &[$(File { path: $path, content_type: $content_type, text: include_str!($from) }),*];
    };
}

files! {
    "", "text/html; charset=utf-8", "../web/index.html";
    "style.css", "text/css; charset=utf-8", "../web/style.css";
    "icon.svg", "image/svg+xml", "../web/icon.svg";
    "app.js", JS, "../web/app.js";
    "view.js", JS, "../web/view.js";
    "words.js", JS, "../web/words.js";
    "tavern.js", JS, "../web/tavern.js";
    "linkstead.js", JS, "../../../clients/js/linkstead.js";
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;
    use crate::codes;

    fn text(path: &str) -> &'static str {
        FILES.iter().find(|file| file.path == path).unwrap().text
    }

    /// `UPDATE_EXPECT=1` rewrites the file.
    #[test]
    fn the_browsers_types_are_the_modules() {
        let written = crate::provider().types_js().unwrap();
        expect_file!["../web/tavern.js"].assert_eq(&written);
    }

    #[test]
    fn every_refusal_of_the_tavern_has_words_for_guests() {
        let words = text("words.js");
        for code in codes::ALL {
            assert!(words.contains(&format!("\n  {code}: \"")), "code {code} has no words in words.js");
        }
    }

    /// The framework's codes change their names; the page's words for them must follow.
    #[test]
    fn words_for_guests_name_codes_that_exist() {
        let (_, rest) = text("words.js").split_once("const FRAMEWORK = {\n").unwrap();
        let (table, _) = rest.split_once("\n};").unwrap();
        for name in table.lines().filter_map(|line| line.trim().split_once(": ")).map(|(name, _)| name) {
            assert!(linkstead::code::ALL.iter().any(|code| code.name == name), "{name} is no code any more");
        }
    }

    /// What a stranger wrote is only ever text: nothing here makes HTML of strings, and nothing comes from elsewhere.
    #[test]
    fn the_page_makes_no_html_of_strings() {
        for file in FILES {
            for bad in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "style=\""]
            {
                assert!(!file.text.contains(bad), "{} has {bad}", file.path);
            }
            let foreign = ["src=\"http", "href=\"http", "url(http", "from \"http", "@import"];
            assert!(
                !foreign.iter().any(|from| file.text.contains(from)),
                "{} loads from elsewhere",
                file.path
            );
        }
    }
}
