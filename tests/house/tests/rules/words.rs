//! Locals, fields and functions are named for what they hold, not `said`, `told` or `told_once`; a text has the
//! glossary's word for a thing and the common word for what happens (decision 0023).

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;

use proc_macro2::{TokenStream, TokenTree};

use crate::modules::without_tests;
use crate::{ALL_FOLDERS, every_source, files, offences, read, top};

/// Names, and first and last parts of names, that say who speaks, and not what the value is.
const VAGUE: [&str; 2] = ["said", "told"];

/// The files in which a *folder* is the common prefix of objects of a bucket.
const PREFIXES: [&str; 3] = [
    "crates/protocol/src/audit/mod.rs",
    "crates/protocol/src/audit/verify/mod.rs",
    "runner/src/record/audit/bucket.rs",
];
/// The pages with such folders of a bucket, and the page that names the words which this file refuses.
const PAGES: [&str; 4] = [
    "docs/decisions/0023-words-and-shelves.md",
    "docs/decisions/0052-a-customer-verifies-the-audit.md",
    "docs/decisions/0055-a-replaced-runner-enrols-anew.md",
    "docs/decisions/0069-one-audit-chain-per-install.md",
];
/// The tests with a sentence that is only there to be broken into lines, and those that have the words which they look
/// for.
const TESTS: [&str; 2] = ["cli/src/output/help.rs", "tests/house/tests/rules/words.rs"];

#[test]
fn product_code_names_values_for_what_they_hold() {
    let wrong = offences(|file, text| {
        let lower = text.to_lowercase();
        if !is_product(file) || !VAGUE.iter().any(|word| lower.contains(word)) {
            return None;
        }
        vague(without_tests(text)).map(|name| format!("has a `{name}`; name it for what it holds"))
    });

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tests_name_values_for_what_they_hold() {
    let wrong = offences(|file, text| {
        let tests = if is_product(file) { text.strip_prefix(without_tests(text))? } else { text };
        if !VAGUE.iter().any(|word| tests.contains(word)) {
            return None;
        }
        // The name of a test is a sentence, which may have these words as its parts.
        let name = first_name(tests, |name| VAGUE.contains(&name))?;
        Some(format!("has a `{name}`; name it for what it holds"))
    });

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn product_code_and_pages_have_one_word_for_one_thing() {
    let product = offences(|file, text| if is_product(file) { uncommon(without_tests(text)) } else { None });
    let policies = ALL_FOLDERS.into_iter().flat_map(|folder| files(&top().join(folder), "rego"));
    let others = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "localstack/README.md"].map(|name| top().join(name));
    let pages = files(&top().join("docs"), "md").into_iter().chain(others).chain(policies).filter_map(|page| {
        // The row of the glossary that tells the two words apart has both.
        let text = read(&page);
        let text: Vec<&str> = text.lines().filter(|line| !line.starts_with("| directory, folder |")).collect();
        Some(format!("{} {}", page.strip_prefix(top()).unwrap().display(), uncommon(&text.join("\n"))?))
    });

    let excepted: Vec<&str> = PREFIXES.into_iter().chain(PAGES).collect();
    let wrong = not_excepted(product.into_iter().chain(pages), &excepted);
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn rust_tests_have_the_common_words() {
    let found = offences(|file, text| {
        let tests = if is_product(file) { text.strip_prefix(without_tests(text))? } else { text };
        // As scripts do, tests call each directory a folder.
        uncommon(&tests.to_lowercase().replace("folder", "directory"))
    });

    let wrong = not_excepted(found, &TESTS);
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn scripts_have_the_common_words() {
    let scripts = every_source().filter(|file| file.extension().unwrap_or_default() != "rs");

    // Scripts and tests call each directory a folder.
    let wrong: Vec<String> = scripts
        .filter_map(|file| {
            Some(format!(
                "{} {}",
                file.display(),
                uncommon(&read(&file).to_lowercase().replace("folder", "directory"))?
            ))
        })
        .collect();

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_exception_that_nothing_needs_is_named() {
    let found = ["a.rs has a `said`".to_owned(), "b.rs has a `told`".to_owned()];

    assert_eq!(not_excepted(found.clone(), &["a.rs", "b.rs"]), "");
    assert_eq!(not_excepted(found.clone(), &["a.rs"]), "b.rs has a `told`");
    assert_eq!(not_excepted(found, &["a.rs", "b.rs", "c.rs"]), "c.rs needs no exception");
}

/// Returns what was found in files that are not `excepted`, and the exceptions in whose files nothing was found.
fn not_excepted(found: impl IntoIterator<Item = String>, excepted: &[&str]) -> String {
    let (mut wrong, mut needed) = (Vec::new(), BTreeSet::new());
    for line in found {
        match excepted.iter().find(|file| line.split(' ').next() == Some(**file)) {
            Some(file) => needed.extend([*file]),
            None => wrong.push(line),
        }
    }
    let unneeded = excepted.iter().filter(|file| !needed.contains(*file));
    wrong.extend(unneeded.map(|file| format!("{file} needs no exception")));
    wrong.join("\n")
}

#[test]
fn a_vague_name_is_found_in_code_and_not_in_texts() {
    for text in [
        "fn f() { let said = 1; }",
        "fn told() {}",
        "struct A { told: u8 }",
        "fn f() { g(|said| said) }",
        "fn told_once() {}",
        "struct A { said_by: u8 }",
        "fn f() { let is_told = true; }",
        "const TOLD_SECS: u8 = 1;",
    ] {
        assert!(vague(text).is_some(), "{text}");
    }
    for text in [
        "/// What was said.\nfn f() {}",
        "const A: &str = \"told\";",
        "fn f() { let untold = 1; }",
        "struct A { #[serde(rename = \"told_away\")] away: u8 }",
        "fn is_told_apart() {}",
    ] {
        assert_eq!(vague(text), None, "{text}");
    }
}

#[test]
fn an_uncommon_word_is_found_across_lines_and_in_code() {
    for text in [
        "/// The folder of a\n/// file.",
        "let folder = 1;",
        "//! A file that is\n//! no record.",
        "# A script that goes\n# on.",
        "These are no records.",
        "the runner goes on.",
        "lets the job go on with it",
        "fn f() { self.check_can_go_on()?; }",
        "which it recognises",
    ] {
        assert!(uncommon(text).is_some(), "{text}");
    }
    for text in [
        "There is no file, and there are no others",
        "format!(\"there is no tenant `{name}`\")",
        "is no longer there",
        "the answer is no, or it is no or not proven",
        "turned on, so that it goes back",
        "the prefix `on`",
        "The zeros are: no effect is lost.",
        "let cargo_on_board = 1;",
    ] {
        assert_eq!(uncommon(text), None, "{text}");
    }
}

/// Returns whether a file has code that is shipped, and no tests alone.
fn is_product(file: &Path) -> bool {
    let is_test = file.ends_with("tests.rs") || file.components().any(|part| part.as_os_str() == "tests");
    !is_test && file.components().any(|part| part.as_os_str() == "src")
}

/// Returns the first vague name in the code of `text`.
fn vague(text: &str) -> Option<String> {
    fn is_vague(name: &str) -> bool {
        let name = name.to_lowercase();
        let (first, last) = (name.split('_').next(), name.rsplit('_').next());
        VAGUE.into_iter().any(|vague| first == Some(vague) || last == Some(vague))
    }
    first_name(text, is_vague)
}

/// Returns the first name in the code of `text` that `is_wanted`.
fn first_name(text: &str, is_wanted: fn(&str) -> bool) -> Option<String> {
    fn first(tokens: TokenStream, is_wanted: fn(&str) -> bool) -> Option<String> {
        tokens.into_iter().find_map(|token| match token {
            TokenTree::Ident(name) => Some(name.to_string()).filter(|name| is_wanted(name)),
            TokenTree::Group(group) => first(group.stream(), is_wanted),
            TokenTree::Punct(_) | TokenTree::Literal(_) => None,
        })
    }
    first(TokenStream::from_str(text).ok()?, is_wanted)
}

/// Returns what is wrong with the first uncommon word of `text`, if there is one.
fn uncommon(text: &str) -> Option<String> {
    let is_marker = |word: &&str| matches!(*word, "//" | "///" | "//!" | "#");
    let words: Vec<String> = text.split_whitespace().filter(|word| !is_marker(word)).map(str::to_lowercase).collect();
    let plain = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let at = |index: usize| words.get(index).map(|word| plain(word)).unwrap_or_default();

    (0..words.len()).find_map(|index| {
        let (word, next) = (at(index), at(index + 1));
        let passage = || words[index.saturating_sub(2)..words.len().min(index + 4)].join(" ");
        let instead = match word.as_str() {
            "is" | "are" | "was" | "were"
                if words[index].ends_with(&word) && words.get(index + 1).is_some_and(|next| next == "no") =>
            {
                let before = index.checked_sub(1).map(&at).unwrap_or_default();
                let is_usual = before.ends_with("there") || matches!(at(index + 2).as_str(), "longer" | "or");
                (!is_usual).then_some("`is not a`")
            }
            "go" | "goes" | "went" if next == "on" => Some("`continue` or `resume`"),
            _ if names_going_on(&word) => Some("`continue` or `resume`"),
            _ if word.contains("recognis") => Some("`recognize`"),
            _ if word.contains("folder") => Some("`directory`; a folder is a prefix of a bucket"),
            _ => None,
        };
        instead.map(|instead| format!("has `{}`; write {instead}", passage()))
    })
}

/// Returns whether an identifier in `word` has the parts `go` and `on`, as in `check_can_go_on`.
fn names_going_on(word: &str) -> bool {
    let parts: Vec<&str> = word.split(|c: char| !c.is_alphanumeric()).collect();
    parts.windows(2).any(|two| matches!(two, ["go" | "goes" | "went", "on"]))
}
