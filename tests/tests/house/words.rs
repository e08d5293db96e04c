//! Locals, fields and functions are named for what they hold, not `said` or `told` (decision 0023).

use std::str::FromStr;

use proc_macro2::{TokenStream, TokenTree};

use crate::modules::without_tests;
use crate::offences;

/// Names that say who speaks, and not what the value is.
const VAGUE: [&str; 2] = ["said", "told"];

#[test]
fn product_code_names_values_for_what_they_hold() {
    let wrong = offences(|file, text| {
        let is_product = file.components().any(|part| part.as_os_str() == "src") && !file.starts_with("tests");
        let is_test = file.ends_with("tests.rs") || file.components().any(|part| part.as_os_str() == "tests");
        if !is_product || is_test || !VAGUE.iter().any(|word| text.contains(word)) {
            return None;
        }
        vague(without_tests(text)).map(|name| format!("has a `{name}`; name it for what it holds"))
    });

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_vague_name_is_found_in_code_and_not_in_texts() {
    for text in ["fn f() { let said = 1; }", "fn told() {}", "struct A { told: u8 }", "fn f() { g(|said| said) }"] {
        assert!(vague(text).is_some(), "{text}");
    }
    for text in ["/// What was said.\nfn f() {}", "const A: &str = \"told\";", "fn f() { let untold = 1; }"] {
        assert_eq!(vague(text), None, "{text}");
    }
}

/// Returns the first vague name in the code of `text`.
fn vague(text: &str) -> Option<&'static str> {
    fn first(tokens: TokenStream) -> Option<&'static str> {
        tokens.into_iter().find_map(|token| match token {
            TokenTree::Ident(name) => VAGUE.into_iter().find(|vague| name == *vague),
            TokenTree::Group(group) => first(group.stream()),
            TokenTree::Punct(_) | TokenTree::Literal(_) => None,
        })
    }
    first(TokenStream::from_str(text).ok()?)
}
