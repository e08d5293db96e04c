//! Reads which source file of a crate uses names of which other: every path that begins with `crate`, `super`, `self` or a
//! module declared in the file, in imports, in code and inside macros. Code under `#[cfg(test)]` is left out. A name that a
//! file passes on (`pub use`) counts for the file that defines it, and the file that passes it on uses it when its own code
//! says the name too.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

type Path = Vec<String>;

/// The source files of one crate.
pub(crate) struct Sources {
    files: BTreeMap<Path, File>,
}

struct File {
    name: String,
    /// Every path in the file, from the root of the crate.
    paths: BTreeSet<Path>,
    /// The names that the file passes on, and the path of each.
    passed_on: BTreeMap<String, Path>,
}

impl Sources {
    /// Reads files by their path below `src`. Binaries beside a library use its public names only and are left out.
    pub(crate) fn parse(texts: &BTreeMap<String, String>) -> Self {
        let root = if texts.contains_key("lib.rs") { "lib.rs" } else { "main.rs" };
        let is_module =
            |name: &str| !name.starts_with("bin/") && (name == root || !["lib.rs", "main.rs"].contains(&name));
        let files = texts.iter().filter(|(name, _)| is_module(name)).map(|(name, text)| {
            let module = module_of(name);
            let text = without_visibility(text);
            let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
            let mut reader = Reader { file: name.clone(), ..Reader::default() };
            reader.read(tokens, &module);
            reader.use_passed_on();
            (module, File { name: name.clone(), paths: reader.paths, passed_on: reader.passed_on })
        });
        Self { files: files.collect() }
    }

    /// Returns for each file the files whose names it uses.
    pub(crate) fn imports(&self) -> BTreeMap<String, BTreeSet<String>> {
        let of = |file: &File| {
            let used = file.paths.iter().filter_map(|path| self.defined_in(path, 0));
            (file.name.clone(), used.filter(|name| **name != file.name).cloned().collect())
        };
        self.files.values().map(of).collect()
    }

    /// Returns the file that defines the thing at `path`, which may be a module, a name in one, or a name in that.
    fn defined_in(&self, path: &[String], depth: u8) -> Option<&String> {
        let (module, rest) = (0..=path.len()).rev().find_map(|end| {
            let (module, rest) = path.split_at(end);
            self.files.contains_key(module).then_some((module, rest))
        })?;
        let file = &self.files[module];
        match rest.first().and_then(|name| file.passed_on.get(name)) {
            Some(target) if depth < 8 => {
                let path: Path = target.iter().chain(&rest[1..]).cloned().collect();
                self.defined_in(&path, depth + 1)
            }
            _ => Some(&file.name),
        }
    }
}

/// Returns `text` with `pub` in place of each `pub(in PATH)`: to name who may use something is not to use it.
fn without_visibility(text: &str) -> String {
    let mut parts = text.split("pub(in ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |before, part| before + "pub" + part.split_once(')').map_or(part, |(_, rest)| rest))
}

fn module_of(name: &str) -> Path {
    let parts: Path = name.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    match parts.last().map(String::as_str) {
        Some("mod") => parts[..parts.len() - 1].to_vec(),
        Some("lib" | "main") if parts.len() == 1 => Vec::new(),
        _ => parts,
    }
}

#[derive(Default)]
struct Reader {
    file: String,
    children: BTreeSet<String>,
    paths: BTreeSet<Path>,
    passed_on: BTreeMap<String, Path>,
    /// The words that may be a name in scope: no part of a path behind its first, no field, no method, no declaration.
    words: BTreeSet<String>,
}

impl Reader {
    fn read(&mut self, tokens: TokenStream, module: &Path) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        self.children.extend(declared(&tokens));
        self.scan(&tokens, module);
    }

    fn scan(&mut self, tokens: &[TokenTree], module: &Path) {
        let mut at = 0;
        while at < tokens.len() {
            if is_cfg_test(&tokens[at..]) {
                at += 2 + item_length(&tokens[at + 2..]);
            } else if let Some((name, body)) = inline_module(&tokens[at..]) {
                let inner: Path = module.iter().cloned().chain([name]).collect();
                self.scan(&body.into_iter().collect::<Vec<_>>(), &inner);
                at += 3;
            } else if let Some(base) = self.path_start(tokens, at, module) {
                let public = word(tokens, at.wrapping_sub(1)) == Some("use".into())
                    && (word(tokens, at.wrapping_sub(2)) == Some("pub".into()) || is_group(tokens, at.wrapping_sub(2)));
                at = self.path(tokens, at + 1, base, public);
            } else {
                if let Some(name) = name_in_scope(tokens, at) {
                    self.words.insert(name);
                }
                if let TokenTree::Group(group) = &tokens[at] {
                    self.scan(&group.stream().into_iter().collect::<Vec<_>>(), module);
                }
                at += 1;
            }
        }
    }

    /// Adds the paths of the names that the file both passes on and says in its own code.
    fn use_passed_on(&mut self) {
        let used = self.passed_on.iter().filter(|(name, _)| self.words.contains(*name));
        self.paths.extend(used.map(|(_, path)| path.clone()));
    }

    /// Returns where a path leads that begins at `at`: the crate's root, a module above, or one below.
    fn path_start(&self, tokens: &[TokenTree], at: usize, module: &Path) -> Option<Path> {
        let first = word(tokens, at)?;
        let follows = at > 0 && is_colons_before(tokens, at);
        if follows || !is_colons(tokens, at + 1) {
            return None;
        }
        match first.as_str() {
            "crate" => Some(Vec::new()),
            "self" => Some(module.clone()),
            "super" => Some(module[..module.len().saturating_sub(1)].to_vec()),
            child if self.children.contains(child) && module_of(&self.file) == *module => {
                Some(module.iter().cloned().chain([child.to_owned()]).collect())
            }
            _ => None,
        }
    }

    /// Reads the rest of a path, `use` lists included; returns the position behind it.
    fn path(&mut self, tokens: &[TokenTree], mut at: usize, mut path: Path, public: bool) -> usize {
        while is_colons(tokens, at) {
            match tokens.get(at + 2) {
                Some(TokenTree::Ident(ident)) if ident == "super" => {
                    path.pop();
                    at += 3;
                }
                Some(TokenTree::Ident(ident)) => {
                    path.push(ident.to_string());
                    at += 3;
                }
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    for part in split_at_commas(group.stream()) {
                        let Some(TokenTree::Ident(first)) = part.first() else { continue };
                        let mut inner = path.clone();
                        if first != "self" {
                            inner.push(first.to_string());
                        }
                        self.path(&part, 1, inner, public);
                    }
                    return at + 3;
                }
                _ => break,
            }
        }
        if public && let Some(name) = path.last() {
            let renamed = word(tokens, at).filter(|found| found == "as").and_then(|_| word(tokens, at + 1));
            at += if renamed.is_some() { 2 } else { 0 };
            self.passed_on.insert(renamed.unwrap_or_else(|| name.clone()), path);
        } else {
            self.paths.insert(path);
        }
        at
    }
}

/// Returns the modules that `mod name;` declares at the top of a file.
fn declared(tokens: &[TokenTree]) -> impl Iterator<Item = String> {
    tokens.windows(3).filter_map(|three| match three {
        [TokenTree::Ident(keyword), TokenTree::Ident(name), TokenTree::Punct(end)]
            if keyword == "mod" && end.as_char() == ';' =>
        {
            Some(name.to_string())
        }
        _ => None,
    })
}

/// Returns the word at `at`, unless its neighbours show that it is not a name in scope.
fn name_in_scope(tokens: &[TokenTree], at: usize) -> Option<String> {
    const DECLARES: [&str; 9] = ["const", "enum", "fn", "let", "mod", "static", "struct", "trait", "type"];
    let name = word(tokens, at)?;
    let is = |at: usize, mark: char| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == mark);
    let before = at.wrapping_sub(1);
    let is_field = is(at + 1, ':') && !is_colons(tokens, at + 1);
    let is_member = is(before, '.') && !is(at.wrapping_sub(2), '.');
    let is_declared = word(tokens, before).is_some_and(|word| DECLARES.contains(&word.as_str()));
    (!is_field && !is_member && !is_declared && !is_colons_before(tokens, at)).then_some(name)
}

fn inline_module(tokens: &[TokenTree]) -> Option<(String, TokenStream)> {
    match tokens {
        [TokenTree::Ident(keyword), TokenTree::Ident(name), TokenTree::Group(body), ..] if keyword == "mod" => {
            Some((name.to_string(), body.stream()))
        }
        _ => None,
    }
}

fn is_cfg_test(tokens: &[TokenTree]) -> bool {
    let [TokenTree::Punct(hash), TokenTree::Group(attribute), ..] = tokens else { return false };
    hash.as_char() == '#' && attribute.stream().to_string().replace(' ', "") == "cfg(test)"
}

/// Returns how many tokens an item has: up to its `;` or its braces.
fn item_length(tokens: &[TokenTree]) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Punct(punct) => punct.as_char() == ';',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    tokens.iter().position(ends).map_or(tokens.len(), |end| end + 1)
}

fn split_at_commas(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
    tokens.split(is_comma).map(<[TokenTree]>::to_vec).collect()
}

fn word(tokens: &[TokenTree], at: usize) -> Option<String> {
    match tokens.get(at) {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

fn is_group(tokens: &[TokenTree], at: usize) -> bool {
    // `pub(crate) use`: the parentheses stand between the two words.
    matches!(tokens.get(at), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis)
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    let is_colon = |at| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
    is_colon(at) && is_colon(at + 1)
}

fn is_colons_before(tokens: &[TokenTree], at: usize) -> bool {
    at >= 2 && is_colons(tokens, at - 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(files: &[(&str, &str)]) -> BTreeMap<String, BTreeSet<String>> {
        let texts = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        Sources::parse(&texts).imports()
    }

    fn names(of: &[&str]) -> BTreeSet<String> {
        of.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn paths_are_found_in_imports_lists_code_and_macros() {
        let found = imports(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::{b::B, c::{self, C}};"),
            ("b.rs", "fn f() { format!(\"{}\", crate::c::name()) }"),
            ("c.rs", "fn f() { super::a::g(); }"),
        ]);

        assert_eq!(found["a.rs"], names(&["b.rs", "c.rs"]));
        assert_eq!(found["b.rs"], names(&["c.rs"]));
        assert_eq!(found["c.rs"], names(&["a.rs"]));
    }

    #[test]
    fn to_name_who_may_use_something_is_not_to_use_it() {
        let found = imports(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub(in crate::b) fn f() {} pub(crate) struct S;"),
            ("b.rs", "pub(in crate) fn g() { crate::a::f() }"),
        ]);

        assert_eq!(found["a.rs"], names(&[]));
        assert_eq!(found["b.rs"], names(&["a.rs"]));
    }

    #[test]
    fn a_name_that_is_passed_on_counts_for_the_file_that_defines_it() {
        let found = imports(&[
            ("lib.rs", "mod folder; mod user;"),
            ("folder/mod.rs", "mod inner; pub(crate) use inner::Thing; pub use self::inner::Other as Another;"),
            ("folder/inner.rs", "pub struct Thing; pub struct Other;"),
            ("user.rs", "use crate::folder::{Another, Thing};"),
        ]);

        assert_eq!(found["user.rs"], names(&["folder/inner.rs"]));
        assert_eq!(found["folder/mod.rs"], names(&[]));
    }

    #[test]
    fn a_name_that_is_passed_on_and_used_in_the_same_file_counts_for_both() {
        let found = imports(&[
            ("lib.rs", "mod folder;"),
            (
                "folder/mod.rs",
                "mod inner; pub use inner::{Other, Thing}; struct Parent { things: Vec<Thing> } fn Other() {}",
            ),
            ("folder/inner.rs", "use super::Parent; pub struct Thing; pub struct Other;"),
        ]);

        assert_eq!(found["folder/mod.rs"], names(&["folder/inner.rs"]));
        assert_eq!(found["folder/inner.rs"], names(&["folder/mod.rs"]));
    }

    #[test]
    fn a_word_that_only_looks_like_a_name_that_is_passed_on_is_not_a_use() {
        let found = imports(&[
            ("lib.rs", "mod folder;"),
            (
                "folder/mod.rs",
                "mod inner; pub use inner::{a, b}; struct S { a: u8 } fn f(s: S) -> u8 { s.a + other::b() }",
            ),
            ("folder/inner.rs", "pub fn a() {} pub fn b() {}"),
        ]);

        assert_eq!(found["folder/mod.rs"], names(&[]));
    }

    #[test]
    fn a_parent_that_calls_a_child_that_uses_the_parent_is_seen_both_ways() {
        let found = imports(&[
            ("lib.rs", "mod kinds;"),
            ("kinds/mod.rs", "mod image; pub struct Done; fn run() { image::run() }"),
            ("kinds/image.rs", "use super::Done; #[cfg(test)] mod tests { use crate::other::X; }"),
        ]);

        assert_eq!(found["kinds/mod.rs"], names(&["kinds/image.rs"]));
        assert_eq!(found["kinds/image.rs"], names(&["kinds/mod.rs"]));
    }
}
