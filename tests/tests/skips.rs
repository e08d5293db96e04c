//! A test that does not run says so: in Rust only `freehold-skips` tells the list with which `make test` ends, and a test
//! returns early only in a statement that asks it.

#![cfg(test)]

use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The functions that say that a test is skipped, and those that do so and then return nothing to the test.
const SAY: [&str; 11] = [
    "skip",
    "skip_as",
    "have",
    "here",
    "here_under",
    "find",
    "start",
    "without_tenant",
    "real_apps",
    "again_out_of_reach",
    "with_clusters",
];

/// A test that another test runs in a process of its own does nothing without its variables, whose names begin so.
const INNER: &str = "FREEHOLD_TEST_";

#[test]
fn no_test_returns_early_without_saying_that_it_is_skipped() {
    let sources = rust_files(top());
    assert!(sources.len() > 200, "found only {} source files", sources.len());

    let silent: Vec<String> = sources
        .iter()
        .flat_map(|file| {
            let shown = file.strip_prefix(top()).unwrap().display().to_string();
            silent_returns(&read(file)).into_iter().map(move |test| format!("{shown}: `{test}`"))
        })
        .collect();

    assert!(
        silent.is_empty(),
        "these tests pass without having run; call freehold_skips::skip:\n{}",
        silent.join("\n")
    );
}

#[test]
fn rust_tells_the_list_in_one_place_only() {
    // In two parts, so that this file does not find itself.
    let names = [concat!("FREEHOLD_", "SKIPS"), concat!("println!(\"", "skip")];

    let elsewhere: Vec<String> = rust_files(top())
        .iter()
        .filter(|file| !file.starts_with(top().join("crates/skips")))
        .filter(|file| names.iter().any(|name| read(file).contains(name)))
        .map(|file| format!("{} tells of skips itself; call freehold_skips::skip", file.display()))
        .collect();

    assert!(elsewhere.is_empty(), "{}", elsewhere.join("\n"));
}

#[test]
fn a_return_that_says_nothing_is_found() {
    let test = |body: &str| silent_returns(&format!("#[tokio::test]\nasync fn it_runs() {{ {body} works(); }}"));
    let silent = vec!["it_runs".to_owned()];

    assert_eq!(test("if missing(\"bwrap\") { println!(\"no\"); return; }"), silent);
    assert_eq!(test("let Some(cloud) = cloud().await else { return };"), silent);
    assert_eq!(test("for one in all { if one.is_none() { return Ok(()); } }"), silent);

    assert_eq!(test("if !have(&[\"bwrap\"]) { return; }"), [""; 0]);
    assert_eq!(test("if missing { return skip(\"why\"); }"), [""; 0]);
    assert_eq!(test("let Some(cloud) = Cloud::here(TEST).await else { return };"), [""; 0]);
    assert_eq!(test("let Ok(file) = var(\"FREEHOLD_TEST_FILE\") else { return };"), [""; 0]);
    assert_eq!(test("let doubled = |x: u8| { return 2 * x; };"), [""; 0]);
}

/// Returns the names of the tests in a file that return in a statement which does not say that they are skipped.
fn silent_returns(text: &str) -> Vec<String> {
    let tokens: TokenStream = text.parse().unwrap();
    let mut found = Vec::new();
    collect(&Vec::from_iter(tokens), &mut found);
    found
}

fn collect(tokens: &[TokenTree], found: &mut Vec<String>) {
    let mut is_test = false;
    let mut name = None;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(attribute) if attribute.delimiter() == Delimiter::Bracket => {
                let words = idents(&Vec::from_iter(attribute.stream()));
                is_test |= words.last().is_some_and(|word| word == "test")
                    || words.starts_with(&["tokio".into(), "test".into()]);
            }
            TokenTree::Ident(word) if *word == "fn" => name = tokens.get(at + 1).map(ToString::to_string),
            TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => {
                let body = Vec::from_iter(body.stream());
                match name.take() {
                    Some(name) if is_test => found.extend(returns_silently(&body).then_some(name)),
                    _ => collect(&body, found),
                }
                is_test = false;
            }
            _ => {}
        }
    }
}

/// Returns whether a statement of the body returns from the test and asks nothing that says so.
fn returns_silently(body: &[TokenTree]) -> bool {
    statements(body).into_iter().any(|statement| {
        let words = idents(statement);
        let is_closure = statement.iter().any(|token| matches!(token, TokenTree::Punct(mark) if mark.as_char() == '|'));
        let text = statement.iter().map(ToString::to_string).collect::<String>();
        let asks = words.iter().any(|word| SAY.contains(&word.as_str())) || text.contains(INNER);
        words.iter().any(|word| word == "return") && !is_closure && !asks
    })
}

/// Splits a body at each semicolon, and after each block that no `else` follows.
fn statements(body: &[TokenTree]) -> Vec<&[TokenTree]> {
    let (mut all, mut from) = (Vec::new(), 0);
    for (at, token) in body.iter().enumerate() {
        let is_block = matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
            && !matches!(body.get(at + 1), Some(TokenTree::Ident(word)) if *word == "else")
            && !matches!(body.get(at + 1), Some(TokenTree::Punct(_)));
        let is_end = matches!(token, TokenTree::Punct(mark) if mark.as_char() == ';');
        if is_block || is_end {
            all.push(&body[from..at + usize::from(is_block)]);
            from = at + 1;
        }
    }
    all.push(&body[from..]);
    all
}

/// Returns the words of the tokens, at any depth, in order.
fn idents(tokens: &[TokenTree]) -> Vec<String> {
    let of = |token: &TokenTree| match token {
        TokenTree::Ident(word) => vec![word.to_string()],
        TokenTree::Group(group) => idents(&Vec::from_iter(group.stream())),
        TokenTree::Punct(_) | TokenTree::Literal(_) => Vec::new(),
    };
    tokens.iter().flat_map(of).collect()
}

/// Returns every Rust file of the workspace.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let folders = ["crates", "functions", "runner", "cli", "tests"];
    let mut todo: Vec<PathBuf> = folders.iter().map(|name| folder.join(name)).collect();
    let mut found = Vec::new();
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap()
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}
