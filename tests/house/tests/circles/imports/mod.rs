//! Reads which source file of a crate uses names of which other: every path that begins with `crate`, `super`, `self` or a
//! module declared or imported in the file, in imports, in code, inside macros and in the strings of attributes
//! (`#[serde(with = "crate::time")]`). A call of a macro is a use of the file that defines it. Code under `#[cfg(test)]` is
//! left out. A name that a file passes on (`pub use`) counts for the file that defines it, and the file that passes it on
//! uses it when its own code says the name too.

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
    /// The names that the file passes on, behind the names of the modules around them in the file, and the path of each.
    passed_on: BTreeMap<Path, Path>,
    /// The macros that the file defines.
    macros: BTreeSet<String>,
    /// The macros that the file calls by their name alone.
    calls: BTreeSet<String>,
    /// The modules of which the file imports all names at once.
    globs: BTreeSet<Path>,
    /// Whether a module of the file is in a file of another name.
    has_path: bool,
}

impl Sources {
    /// Reads files by their path below `src`. Binaries beside a library use its public names only and are left out.
    pub(crate) fn parse(texts: &BTreeMap<String, String>) -> Self {
        let root = if texts.contains_key("lib.rs") { "lib.rs" } else { "main.rs" };
        let is_module =
            |name: &str| !name.starts_with("bin/") && (name == root || !["lib.rs", "main.rs"].contains(&name));
        let mut tests = BTreeSet::new();
        let files = texts.iter().filter(|(name, _)| is_module(name)).map(|(name, text)| {
            let module = module_of(name);
            let text = without_visibility(text);
            let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
            let mut reader = Reader { file: name.clone(), ..Reader::default() };
            reader.read(tokens, &module);
            reader.use_names();
            tests.append(&mut reader.tests);
            let Reader { file: name, paths, passed_on, macros, calls, globs, has_path, .. } = reader;
            (module, File { name, paths, passed_on, macros, calls, globs, has_path })
        });
        let mut files: BTreeMap<Path, File> = files.collect();
        files.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        Self { files }
    }

    /// Returns for each file the files whose names it uses.
    pub(crate) fn imports(&self) -> BTreeMap<String, BTreeSet<String>> {
        let of = |file: &File| {
            let used = file.paths.iter().filter_map(|path| self.defined_in(path, 0));
            let used = used.chain(self.macros_of(file));
            (file.name.clone(), used.filter(|name| **name != file.name).cloned().collect())
        };
        self.files.values().map(of).collect()
    }

    /// Returns what the files say in a form that hides whose names they use: a module whose names are imported all at
    /// once, and a module in a file of another name.
    pub(crate) fn hidden(&self) -> Vec<String> {
        let of = |file: &File| {
            let globs = file.globs.iter().filter(|path| self.files.contains_key(*path));
            let globs = globs.map(|path| format!("{}: `{}::*`; import by name", file.name, path.join("::")));
            let path = file.has_path.then(|| format!("{}: `#[path]`; give the file its module's name", file.name));
            globs.chain(path).collect::<Vec<_>>()
        };
        self.files.values().flat_map(of).collect()
    }

    /// Returns the files that define macros which `file` calls and does not define.
    fn macros_of<'a>(&'a self, file: &'a File) -> impl Iterator<Item = &'a String> {
        let called = file.calls.difference(&file.macros);
        called.flat_map(|name| self.files.values().filter(|other| other.macros.contains(name)).map(|other| &other.name))
    }

    /// Returns the file that defines the thing at `path`, which may be a module, a name in one, or a name in that.
    fn defined_in(&self, path: &[String], depth: u8) -> Option<&String> {
        let (module, rest) = (0..=path.len()).rev().find_map(|end| {
            let (module, rest) = path.split_at(end);
            self.files.contains_key(module).then_some((module, rest))
        })?;
        let file = &self.files[module];
        match (1..=rest.len()).find_map(|end| Some((file.passed_on.get(&rest[..end])?, end))) {
            Some((target, end)) if depth < 8 => {
                let path: Path = target.iter().chain(&rest[end..]).cloned().collect();
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
    passed_on: BTreeMap<Path, Path>,
    /// The names that the file imports or passes on, and the path of each.
    names: BTreeMap<String, Path>,
    /// The paths that begin with another word than `crate`, `super`, `self` and a module declared in the file.
    others: BTreeSet<Path>,
    macros: BTreeSet<String>,
    calls: BTreeSet<String>,
    globs: BTreeSet<Path>,
    has_path: bool,
    /// The modules in other files that only tests have.
    tests: BTreeSet<Path>,
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
                let end = at + 2 + item_length(&tokens[at + 2..]);
                let tests = declared(&tokens[at + 2..end]);
                self.tests.extend(tests.map(|name| module.iter().cloned().chain([name]).collect::<Path>()));
                at = end;
            } else if let Some((name, body)) = inline_module(&tokens[at..]) {
                let inner: Path = module.iter().cloned().chain([name]).collect();
                self.scan(&body.into_iter().collect::<Vec<_>>(), &inner);
                at += 3;
            } else if let Some(base) = self.path_start(tokens, at, module) {
                at = self.path(tokens, at + 1, base, &importing(tokens, at, &module_of(&self.file), module));
            } else {
                if let Some(name) = name_in_scope(tokens, at) {
                    if is_mark(tokens, at + 1, '!') {
                        match word(tokens, at + 2).filter(|_| name == "macro_rules") {
                            Some(defined) => self.macros.insert(defined),
                            None => self.calls.insert(name.clone()),
                        };
                    }
                    self.others.extend(plain_path(tokens, at, &name));
                    self.words.insert(name);
                }
                match &tokens[at] {
                    TokenTree::Group(group) => {
                        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                        self.has_path |=
                            is_mark(tokens, at.wrapping_sub(1), '#') && word(&inner, 0) == Some("path".into());
                        self.scan(&inner, module);
                    }
                    TokenTree::Literal(literal) => self.quoted(&literal.to_string(), module),
                    _ => {}
                }
                at += 1;
            }
        }
    }

    /// Adds the paths of the names that the file both passes on and says in its own code, and those that begin with a
    /// name which it imports.
    fn use_names(&mut self) {
        let used = self.passed_on.iter().filter(|(name, _)| name.len() == 1 && self.words.contains(&name[0]));
        self.paths.extend(used.map(|(_, path)| path.clone()));
        let whole = self.others.iter().filter_map(|path| {
            let start = self.names.get(&path[0])?;
            Some(start.iter().chain(&path[1..]).cloned().collect::<Path>())
        });
        self.paths.extend(whole);
    }

    /// Reads a string that is a path, as attributes have them. The text of a comment begins with a space.
    fn quoted(&mut self, literal: &str, module: &Path) {
        let text = literal.trim_matches('"');
        let is_path = text.contains("::") && text.starts_with(|first: char| first.is_ascii_alphabetic());
        let tokens: Vec<TokenTree> = match text.parse::<TokenStream>() {
            Ok(tokens) if is_path => tokens.into_iter().collect(),
            _ => return,
        };
        if let Some(base) = self.path_start(&tokens, 0, module) {
            self.path(&tokens, 1, base, &Importing::Nothing);
        }
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
    fn path(&mut self, tokens: &[TokenTree], mut at: usize, mut path: Path, importing: &Importing) -> usize {
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
                        let mut inner = path.clone();
                        match part.first() {
                            Some(TokenTree::Ident(first)) if first == "self" => {}
                            Some(TokenTree::Ident(first)) if first == "super" => drop(inner.pop()),
                            Some(TokenTree::Ident(first)) => inner.push(first.to_string()),
                            Some(_) => drop(self.globs.insert(path.clone())),
                            None => continue,
                        }
                        self.path(&part, 1, inner, importing);
                    }
                    return at + 3;
                }
                Some(TokenTree::Punct(mark)) if mark.as_char() == '*' => {
                    self.globs.insert(path.clone());
                    break;
                }
                _ => break,
            }
        }
        let renamed = word(tokens, at).filter(|found| found == "as").and_then(|_| word(tokens, at + 1));
        if let (Importing::Public(_) | Importing::Private, Some(last)) = (importing, path.last()) {
            at += if renamed.is_some() { 2 } else { 0 };
            let name = renamed.unwrap_or_else(|| last.clone());
            self.names.insert(name.clone(), path.clone());
            if let Importing::Public(inside) = importing {
                self.passed_on.insert(inside.iter().cloned().chain([name]).collect(), path);
                return at;
            }
        }
        self.paths.insert(path);
        at
    }
}

/// What a path is part of.
enum Importing {
    /// `pub use`, behind the names of the modules around it in the file.
    Public(Path),
    /// `use`
    Private,
    /// Code.
    Nothing,
}

/// Returns what the path is part of that begins at `at`, in a file's `module`.
fn importing(tokens: &[TokenTree], at: usize, file: &Path, module: &Path) -> Importing {
    if word(tokens, at.wrapping_sub(1)) != Some("use".into()) {
        return Importing::Nothing;
    }
    let is_public = word(tokens, at.wrapping_sub(2)) == Some("pub".into()) || is_group(tokens, at.wrapping_sub(2));
    match is_public {
        true => Importing::Public(module[file.len()..].to_vec()),
        false => Importing::Private,
    }
}

/// Returns the words of the path of at least two that begins at `at`.
fn plain_path(tokens: &[TokenTree], mut at: usize, first: &str) -> Option<Path> {
    let mut path = vec![first.to_owned()];
    while let Some(next) = word(tokens, at + 3).filter(|_| is_colons(tokens, at + 1)) {
        path.push(next);
        at += 3;
    }
    (path.len() > 1).then_some(path)
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
    let before = at.wrapping_sub(1);
    let is_field = is_mark(tokens, at + 1, ':') && !is_colons(tokens, at + 1);
    let is_member = is_mark(tokens, before, '.') && !is_mark(tokens, at.wrapping_sub(2), '.');
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
    let attribute = attribute.stream().to_string().replace(' ', "");
    hash.as_char() == '#' && (attribute == "cfg(test)" || attribute.starts_with("cfg(all(test,"))
}

/// Returns how many tokens an item has: up to its `;` or its braces. A field, a variant and an arm have a comma there.
fn item_length(tokens: &[TokenTree]) -> usize {
    const ITEMS: [&str; 14] = [
        "async", "const", "enum", "extern", "fn", "impl", "let", "mod", "static", "struct", "trait", "type", "unsafe",
        "use",
    ];
    let first = tokens.iter().enumerate().find_map(|(at, token)| match token {
        TokenTree::Ident(word) if word == "pub" => None,
        TokenTree::Ident(word) => Some(word.to_string()),
        TokenTree::Literal(_) => Some(String::new()),
        TokenTree::Punct(_) | TokenTree::Group(_) => {
            let is_attribute = is_mark(tokens, at, '#') || is_mark(tokens, at.wrapping_sub(1), '#');
            (!is_attribute && word(tokens, at.wrapping_sub(1)) != Some("pub".into())).then(String::new)
        }
    });
    let is_item = first.is_some_and(|first| ITEMS.contains(&first.as_str()));
    let ends = |token: &TokenTree| match token {
        TokenTree::Punct(punct) => punct.as_char() == ';' || (punct.as_char() == ',' && !is_item),
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

fn is_mark(tokens: &[TokenTree], at: usize, mark: char) -> bool {
    matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}

fn is_group(tokens: &[TokenTree], at: usize) -> bool {
    // `pub(crate) use`: the parentheses stand between the two words.
    matches!(tokens.get(at), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis)
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    is_mark(tokens, at, ':') && is_mark(tokens, at + 1, ':')
}

fn is_colons_before(tokens: &[TokenTree], at: usize) -> bool {
    at >= 2 && is_colons(tokens, at - 2)
}

#[cfg(test)]
mod tests;
