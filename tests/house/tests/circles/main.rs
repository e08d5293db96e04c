//! No source file imports a file that imports it back, directly or through others: each crate reads bottom-up. The same
//! holds of the modules at the top of a crate, each with all of its files. A crate may list them in layers.

#![cfg(test)]

mod graph;
mod imports;
mod layers;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use graph::circles;
use imports::Sources;

#[test]
fn no_crate_has_a_circle_of_imports() {
    let (mut found, mut hidden, mut modules) = (Vec::new(), Vec::new(), Vec::new());
    let mut files = 0;

    for folder in source_folders() {
        let texts = read(&folder);
        hidden.extend(
            texts
                .iter()
                .filter(|(_, text)| renames_the_root(text))
                .map(|(name, _)| format!("{}/{name}: another name of the crate's root; write `crate`", shown(&folder))),
        );
        let sources = Sources::parse(&texts);
        let imports = sources.imports();
        files += imports.len();
        hidden.extend(sources.hidden().into_iter().map(|what| format!("{}/{what}", shown(&folder))));
        let circle =
            |circle: Vec<String>| format!("{} in {}:\n  {}", circle.len(), shown(&folder), circle.join("\n  "));
        found.extend(circles(&imports).into_iter().map(circle));
        let circle = |circle: Vec<String>| format!("{}: {}", shown(&folder), circle.join(", "));
        modules.extend(circles(&of_top_modules(&imports)).into_iter().map(circle));
    }

    assert!(files > 300, "read only {files} source files; the folders have moved");
    assert!(hidden.is_empty(), "imports whose names cannot be followed:\n{}", hidden.join("\n"));
    assert!(
        found.is_empty(),
        "{} circles of files that import each other; move what both sides need into a file of its own:\n{}",
        found.len(),
        found.join("\n")
    );
    assert!(
        modules.is_empty(),
        "modules that need each other, although no file does; move what they need below them:\n{}",
        modules.join("\n")
    );
}

#[test]
fn modules_are_in_the_layers_that_the_root_of_their_crate_lists() {
    let (mut lists, mut wrong) = (Vec::new(), Vec::new());

    for folder in source_folders() {
        let texts = read(&folder);
        let root = texts.get("lib.rs").or_else(|| texts.get("main.rs"));
        let list = root.map(|text| layers::listed(text)).unwrap_or_default();
        if !list.is_empty() {
            lists.push(shown(&folder));
            let found = layers::wrong(&list, &of_top_modules(&Sources::parse(&texts).imports()));
            wrong.extend(found.into_iter().map(|what| format!("{}: {what}", shown(&folder))));
        }
    }

    assert_eq!(lists, ["crates/app/src", "runner/src"]);
    assert!(wrong.is_empty(), "layers in the heading of a crate's root that are not so:\n{}", wrong.join("\n"));
}

#[test]
fn modules_that_need_each_other_are_found_although_no_file_does() {
    let arrows = [
        ("a/one.rs", vec!["b/one.rs", "a/two.rs"]),
        ("b/two.rs", vec!["a.rs", "lib.rs"]),
        ("c.rs", vec!["a/one.rs"]),
        ("lib.rs", vec!["a/one.rs", "c.rs"]),
    ];
    let imports =
        arrows.map(|(from, to)| (from.to_owned(), to.into_iter().map(str::to_owned).collect::<BTreeSet<_>>())).into();

    assert_eq!(circles(&imports), Vec::<Vec<String>>::new());
    assert_eq!(circles(&of_top_modules(&imports)), [["a", "b"]]);
}

/// Returns for each module at the top of a crate the others of them whose names its files use.
fn of_top_modules(imports: &BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    let mut modules: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, used) in imports {
        let Some(module) = top_module(file) else { continue };
        let others = used.iter().filter_map(|other| top_module(other)).filter(|other| *other != module);
        modules.entry(module.to_owned()).or_default().extend(others.map(str::to_owned));
    }
    modules
}

/// Returns the module at the top of its crate that a file belongs to; nothing for the root of the crate.
fn top_module(file: &str) -> Option<&str> {
    let top = file.split('/').next()?.trim_end_matches(".rs");
    (!["lib", "main"].contains(&top)).then_some(top)
}

/// Returns whether a file gives the root of its crate another name, behind which an import cannot be followed.
fn renames_the_root(text: &str) -> bool {
    ["use crate as ", "use crate::{self", "use super::{self as ", "use self as "].iter().any(|word| text.contains(word))
}

/// Returns the `src` folder of every crate of the workspace.
fn source_folders() -> Vec<PathBuf> {
    let crates = fs::read_dir(top().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let others = ["cli", "functions", "runner", "tests"].map(|name| top().join(name));
    let mut folders: Vec<PathBuf> = crates.chain(others).map(|folder| folder.join("src")).collect();
    folders.sort();
    folders
}

/// Returns the text of every Rust file below `folder`, by its path there.
fn read(folder: &Path) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(current) = waiting.pop() {
        for entry in fs::read_dir(&current).unwrap_or_else(|error| panic!("{}: {error}", current.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                texts.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    texts
}

fn shown(folder: &Path) -> String {
    folder.strip_prefix(top()).unwrap().display().to_string()
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}
