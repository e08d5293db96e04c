//! A test that does not run says so: in Rust only `freehold-skips` tells the list with which `make test` ends, a test
//! returns early only in a statement that asks it, and no test has all its assertions below a condition that nobody asks
//! about.

#![cfg(test)]

use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The functions that say that a test is skipped, and those that do so and then return nothing to the test.
const SAY: [&str; 12] = [
    "skip",
    "skip_as",
    "have",
    "here",
    "here_under",
    "find",
    "start",
    "start_with_clock",
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
            let path = file.strip_prefix(top()).unwrap().display().to_string();
            silent_returns(&read(file)).into_iter().map(move |test| format!("{path}: `{test}`"))
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
    let names = [concat!("freehold_", "skips\""), concat!("println!(\"", "skip")];

    let elsewhere: Vec<String> = rust_files(top())
        .iter()
        .filter(|file| !file.starts_with(top().join("crates/skips")))
        .filter(|file| names.iter().any(|name| read(file).to_lowercase().contains(name)))
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

#[test]
fn a_return_beside_a_closure_or_a_method_of_the_name_of_a_skip_is_found() {
    let test = |body: &str| silent_returns(&format!("#[test]\nfn it_runs() {{ {body} works(); }}"));
    let silent = vec!["it_runs".to_owned()];

    assert_eq!(test("if !linux() || missing(\"bwrap\") { return; }"), silent);
    assert_eq!(test("match cloud() { Some(Kind::A | Kind::B) => {} _ => return }"), silent);
    assert_eq!(test("let Some(one) = all.iter().find(|one| one.is_here()) else { return };"), silent);
    assert_eq!(test("for one in all.iter().skip(1) { if one.is_none() { return; } }"), silent);
    assert_eq!(test("block_on(async { if missing() { return; } });"), silent);

    assert_eq!(test("all.retain(|one| match one { Some(_) => return true, None => false });"), [""; 0]);
    assert_eq!(test("let task = spawn(async move { loop { if done() { return; } } });"), [""; 0]);
    assert_eq!(test("fn first(all: &[u8]) -> u8 { return all[0]; }"), [""; 0]);
}

#[test]
fn a_test_whose_assertions_all_stand_below_a_condition_is_found() {
    let test = |body: &str| silent_returns(&format!("#[test]\nfn it_runs() {{ {body} }}"));
    let silent = vec!["it_runs".to_owned()];

    assert_eq!(test("let cloud = cloud(); if let Some(cloud) = cloud { assert!(cloud.works()); }"), silent);
    assert_eq!(test("if a() { assert!(b()); } else if c() { assert!(d()); }"), silent);
    assert_eq!(test("match cloud() { Some(cloud) => assert!(cloud.works()), None => {} }"), silent);
    assert_eq!(test("match cloud() { Some(cloud) => { assert!(cloud.works()) } None => () }"), silent);

    assert_eq!(test("if have(&[\"bwrap\"]) { assert!(works()); }"), [""; 0]);
    assert_eq!(test("if a() { assert!(b()); } else { assert!(c()); }"), [""; 0]);
    assert_eq!(test("if a() { assert!(b()); } assert!(c());"), [""; 0]);
    assert_eq!(test("match cloud() { Some(cloud) => assert!(cloud.works()), None => panic!() }"), [""; 0]);
}

/// Returns the names of the tests in a file that may end without an assertion and do not say that they are skipped.
fn silent_returns(text: &str) -> Vec<String> {
    let tokens: TokenStream = text.parse().unwrap();
    let mut found = Vec::new();
    collect(&Vec::from_iter(tokens), &mut found);
    found
}

fn collect(tokens: &[TokenTree], found: &mut Vec<String>) {
    let mut is_test = false;
    let (mut name, mut has_inputs) = (None, false);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(attribute) if attribute.delimiter() == Delimiter::Bracket => {
                let words = idents(&Vec::from_iter(attribute.stream()));
                is_test |= words.last().is_some_and(|word| word == "test")
                    || words.starts_with(&["tokio".into(), "test".into()]);
            }
            TokenTree::Ident(word) if *word == "fn" => name = tokens.get(at + 1).map(ToString::to_string),
            TokenTree::Group(inputs) if inputs.delimiter() == Delimiter::Parenthesis => {
                has_inputs = !inputs.stream().is_empty();
            }
            TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => {
                let body = Vec::from_iter(body.stream());
                match name.take() {
                    Some(name) if is_test => {
                        // A property test asserts for the inputs that fit, of which there are many.
                        let is_silent = returns_silently(&body) || (!has_inputs && asserts_silently(&body));
                        found.extend(is_silent.then_some(name));
                    }
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
    statements(body).into_iter().any(|statement| returns(statement) && !asks(statement))
}

/// Returns whether only such statements of the body assert something that may do nothing and ask nothing that says so.
fn asserts_silently(body: &[TokenTree]) -> bool {
    let asserting: Vec<&[TokenTree]> = statements(body).into_iter().filter(|statement| asserts(statement)).collect();
    !asserting.is_empty() && asserting.into_iter().all(|statement| may_do_nothing(statement) && !asks(statement))
}

/// Returns whether the tokens call a function that says that the test is skipped, or ask for the variable of an inner
/// test. A method of such a name says nothing: iterators have `find` and `skip`.
fn asks(tokens: &[TokenTree]) -> bool {
    tokens.iter().enumerate().any(|(at, token)| match token {
        TokenTree::Ident(word) => {
            let is_method = at > 0 && is_mark(&tokens[at - 1], '.');
            !is_method && SAY.contains(&word.to_string().as_str())
        }
        TokenTree::Group(group) => asks(&Vec::from_iter(group.stream())),
        TokenTree::Literal(literal) => literal.to_string().contains(INNER),
        TokenTree::Punct(_) => false,
    })
}

/// Returns whether the tokens return from the test. What a closure, a task or a function inside of it returns is its own.
fn returns(tokens: &[TokenTree]) -> bool {
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Ident(word) if *word == "return" => return true,
            TokenTree::Ident(word) if *word == "fn" => at += length_of_item(&tokens[at..]),
            TokenTree::Ident(word) if word.to_string().starts_with("spawn") => at += 1,
            TokenTree::Punct(_) if begins_closure(tokens, at) => at += length_of_closure(&tokens[at..]),
            TokenTree::Group(group) if returns(&Vec::from_iter(group.stream())) => return true,
            _ => {}
        }
        at += 1;
    }
    false
}

/// Returns whether the `|` at `at` begins the parameters of a closure: otherwise a value or a pattern is before it.
fn begins_closure(tokens: &[TokenTree], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    is_mark(&tokens[at], '|')
        && match before {
            None => true,
            Some(TokenTree::Ident(word)) => ["async", "else", "move", "return"].contains(&word.to_string().as_str()),
            Some(TokenTree::Punct(mark)) => !['?', '|'].contains(&mark.as_char()),
            Some(TokenTree::Group(_) | TokenTree::Literal(_)) => false,
        }
}

/// Returns how many tokens lie behind the first one up to the end of a closure: a comma or a semicolon.
fn length_of_closure(tokens: &[TokenTree]) -> usize {
    let body = tokens[1..].iter().position(|token| is_mark(token, '|')).map_or(tokens.len(), |at| at + 2);
    let rest = tokens.get(body..).unwrap_or_default();
    let end = rest.iter().position(|token| is_mark(token, ',') || is_mark(token, ';'));
    body + end.unwrap_or(rest.len())
}

/// Returns how many tokens lie behind the first one up to the body of a function.
fn length_of_item(tokens: &[TokenTree]) -> usize {
    let is_body = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
    tokens.iter().position(is_body).unwrap_or(tokens.len())
}

/// Returns whether a statement is an `if` without a last `else`, or a `match` with an arm that does nothing.
fn may_do_nothing(statement: &[TokenTree]) -> bool {
    let is_word = |at: usize, word: &str| matches!(statement.get(at), Some(TokenTree::Ident(found)) if *found == word);
    let last_else = (0..statement.len()).rev().find(|at| is_word(*at, "else"));
    if is_word(0, "if") {
        return last_else.is_none_or(|at| is_word(at + 1, "if"));
    }
    let Some(TokenTree::Group(arms)) = statement.last().filter(|_| is_word(0, "match")) else { return false };
    let arms = Vec::from_iter(arms.stream());
    arms.windows(3).any(|three| match three {
        [before, mark, TokenTree::Group(body)] => {
            is_mark(before, '=') && is_mark(mark, '>') && body.stream().is_empty()
        }
        _ => false,
    })
}

fn asserts(tokens: &[TokenTree]) -> bool {
    idents(tokens).iter().any(|word| word.starts_with("assert") || word.starts_with("prop_assert"))
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
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
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}
