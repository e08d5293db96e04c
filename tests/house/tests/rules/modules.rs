//! Which source files a program of the workspace is made of: what cargo compiles, and the modules that it declares.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::{NO_PANIC, offences, read, sources, targets, top};

/// The folders of crates that are not shipped: they may panic.
const MAY_PANIC: [&str; 4] = ["crates/fuzz", "crates/model", "crates/skips", "tests"];

/// What ends a process, beside what the lints of clippy find.
const ENDS: [&str; 5] = ["assert!(", "assert_eq!(", "assert_ne!(", "unreachable!(", "process::abort("];

#[test]
fn every_source_file_is_part_of_a_program() {
    let reached = reached();

    let wrong: Vec<String> = sources()
        .into_iter()
        .filter(|file| !reached.contains_key(&real(file)))
        .map(|file| format!("{} is compiled by nobody; declare it with `mod`, or remove it", file.display()))
        .collect();

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_source_file_is_a_module_and_no_part_of_another_file() {
    // In two parts, so that this file does not find itself.
    let include = concat!("include", "!(");

    let wrong: Vec<String> = sources()
        .into_iter()
        .filter(|file| read(file).contains(include))
        .map(|file| format!("{} includes source text; make it a module", file.display()))
        .collect();

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn product_code_ends_no_process_and_waives_no_lint_against_it() {
    let mut wrong = Vec::new();
    for (file, text) in product() {
        let found = text.lines().filter(|line| ends_or_waives(line));
        wrong.extend(found.map(|line| format!("{file}: `{}`", line.trim())));
    }

    assert!(wrong.is_empty(), "answer with an error instead:\n{}", wrong.join("\n"));
}

#[test]
fn what_ends_a_process_and_what_waives_a_lint_is_found() {
    for line in
        ["    assert!(a);", "_ => unreachable!(),", "    clippy::unwrap_used,", "#[expect(clippy::restriction)]"]
    {
        assert!(ends_or_waives(line), "{line}");
    }
    for line in ["/// assert!(a);", "debug_assert!(a);", "const _: () = assert!(SIZE < 5);", "prop_assert!(a);"] {
        assert!(!ends_or_waives(line), "{line}");
    }
}

#[test]
fn a_declared_module_has_its_folder_and_says_whether_only_tests_have_it() {
    let text = "mod a;\n#[cfg(test)]\nmod b;\nmod c {\n    pub(crate) mod d;\n}\n#[path = \"f.rs\"]\nmod e;\n";
    let found = declared(text);
    let files: Vec<PathBuf> = found.iter().map(|child| child.file(Path::new("/x/y.rs"), false)).collect();

    assert_eq!(files, ["/x/y/a/mod.rs", "/x/y/b/mod.rs", "/x/y/c/d/mod.rs", "/x/f.rs"].map(PathBuf::from));
    assert_eq!(found.iter().map(|child| child.is_test).collect::<Vec<_>>(), [false, true, false, false]);
}

/// How items begin that would not be read behind a module of tests.
const ITEMS: [&str; 8] = ["fn ", "pub", "impl", "struct ", "enum ", "trait ", "const ", "#["];

#[test]
fn nothing_follows_the_tests_of_a_file() {
    let wrong = offences(|_, text| {
        let tests = &text[without_tests(text).len()..];
        let (_, behind) = tests.split_once("\n}\n")?;
        let is_item = |line: &str| ITEMS.iter().any(|item| line.starts_with(item));
        behind.lines().any(is_item).then(|| "has something behind its tests; put the tests at the end".to_owned())
    });

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_tests_at_the_end_of_a_file_are_left_out() {
    let with = |middle: &str| format!("use a;\n#[cfg(test)]\n{middle}\nfn f() {{}}\n");

    assert_eq!(without_tests(&with("mod tests {")), "use a;\n");
    assert_eq!(without_tests(&with("#[expect(unused)]\npub(crate) mod tests {")), "use a;\n");
    assert_eq!(without_tests(&with("mod tests;")), with("mod tests;"));
    assert_eq!(without_tests(&with("fn sample() {}")), with("fn sample() {}"));
}

fn ends_or_waives(line: &str) -> bool {
    let line = line.trim();
    let ends = |call: &str| {
        let word = line.find(call).map(|at| &line[..at]);
        word.is_some_and(|before| !before.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_'))
    };
    let lints = NO_PANIC.into_iter().chain(["restriction"]);
    let waives = lints.into_iter().any(|lint| line.contains(&format!("clippy::{lint}")));
    // What a constant asserts is checked while it is compiled.
    !line.starts_with("//") && ((ENDS.into_iter().any(ends) && !line.starts_with("const ")) || waives)
}

/// Returns the text up to the module of tests that is in the file, if it has one.
pub(crate) fn without_tests(text: &str) -> &str {
    let mut end = 0;
    let mut lines = text.split_inclusive('\n');
    while let Some(line) = lines.next() {
        if line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test,") {
            let next = lines.clone().find(|next| !next.starts_with("#[")).unwrap_or_default();
            if next.split(' ').any(|word| word == "mod") && next.trim_end().ends_with('{') {
                return &text[..end];
            }
        }
        end += line.len();
    }
    text
}

/// Returns each source file that cargo compiles, and whether it is part of a library or of a program.
pub(crate) fn reached() -> BTreeMap<PathBuf, bool> {
    let mut reached = BTreeMap::new();
    let mut todo: Vec<(PathBuf, bool, bool)> =
        targets().into_iter().map(|(kind, root)| (root, true, ["bin", "lib"].contains(&kind.as_str()))).collect();
    while let Some((file, is_root, is_in_program)) = todo.pop() {
        let file = real(&file);
        let known = reached.entry(file.clone()).or_insert(false);
        *known |= is_in_program;
        let is_folder = is_root || file.ends_with("mod.rs");
        let children = declared(&read(&file)).into_iter();
        todo.extend(children.map(|child| (child.file(&file, is_folder), false, is_in_program && !child.is_test)));
    }
    reached
}

/// Returns each source file of what is shipped, by its path below the workspace, with its text without tests.
pub(crate) fn product() -> Vec<(String, String)> {
    let workspace = real(top());
    let is_shipped = |file: &Path| !MAY_PANIC.iter().any(|folder| file.starts_with(workspace.join(folder)));
    let in_programs = reached().into_iter().filter(|(file, is_in_program)| *is_in_program && is_shipped(file));
    let found = in_programs.map(|(file, _)| {
        let path = file.strip_prefix(&workspace).unwrap().display().to_string();
        (path, without_tests(&read(&file)).to_owned())
    });
    let found: Vec<_> = found.collect();
    assert!(found.len() > 500, "found only {} files of what is shipped; the folders have moved", found.len());
    found
}

/// A module that a file declares and that is in a file of its own.
struct Child {
    /// The modules in the file around it.
    folders: Vec<String>,
    name: String,
    path: Option<String>,
    is_test: bool,
}

impl Child {
    /// Returns the file of the module. The children of a root and of a `mod.rs` are beside it.
    fn file(&self, parent: &Path, is_folder: bool) -> PathBuf {
        let folder = parent.parent().unwrap();
        if let Some(path) = &self.path {
            return folder.join(path);
        }
        let folder = if is_folder { folder.to_owned() } else { parent.with_extension("") };
        let folder = folder.join(self.folders.iter().collect::<PathBuf>());
        let beside = folder.join(format!("{}.rs", self.name));
        if beside.exists() { beside } else { folder.join(&self.name).join("mod.rs") }
    }
}

/// Returns the modules that a file declares, in the form that rustfmt gives them.
fn declared(text: &str) -> Vec<Child> {
    let (mut children, mut path, mut is_test) = (Vec::new(), None, false);
    // The modules around the line that are in the file: their indent, their name, and whether only tests have them.
    let mut around: Vec<(usize, &str, bool)> = Vec::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["mod", name] | [_, "mod", name] if name.ends_with(';') => {
                let folders = around.iter().map(|(_, name, _)| (*name).to_owned()).collect();
                let name = name.trim_end_matches(';').trim_start_matches("r#").to_owned();
                let is_test = is_test || around.iter().any(|(_, _, is_test)| *is_test);
                children.push(Child { folders, name, path: path.take(), is_test });
            }
            ["mod", name, "{"] | [_, "mod", name, "{"] => around.push((indent, name, is_test)),
            ["}"] => around.retain(|(begin, ..)| *begin < indent),
            ["#[path", "=", value] => path = Some(value.trim_matches(['"', ']']).to_owned()),
            ["#[cfg(test)]"] => is_test = true,
            [first, ..] if first.starts_with("#[cfg(all(test,") => is_test = true,
            [first, ..] if first.starts_with("#[") || first.starts_with("//") => {}
            _ => path = None,
        }
        let is_attribute = words.first().is_some_and(|first| first.starts_with("#[") || first.starts_with("//"));
        is_test &= is_attribute;
    }
    children
}

fn real(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|error| panic!("{} below {}: {error}", file.display(), top().display()))
}
