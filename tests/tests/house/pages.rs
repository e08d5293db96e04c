//! Pages name source files that exist. Decision pages are left out: an old one keeps the names of its time.

use std::collections::BTreeSet;
use std::fs;

use crate::{python, sources, top};

#[test]
fn every_source_file_that_a_page_names_exists() {
    let files = sources().into_iter().chain(python().into_iter().map(|(path, _)| path));
    let known: BTreeSet<String> =
        files.map(|path| short(&path.strip_prefix(top()).unwrap().display().to_string())).collect();
    let folders = ["", "docs", "docs/guides"].map(|folder| fs::read_dir(top().join(folder)).unwrap());
    let pages = folders.into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut named = 0;
    let mut wrong = Vec::new();
    for page in pages.filter(|page| page.extension().is_some_and(|ending| ending == "md")) {
        let text = fs::read_to_string(&page).unwrap();
        for file in text.split('`').skip(1).step_by(2).filter(|code| is_source_file(code)) {
            named += 1;
            let wanted = format!("/{}", short(file));
            if !known.iter().any(|path| format!("/{path}").ends_with(&wanted)) {
                wrong.push(format!("{} names `{file}`", page.display()));
            }
        }
    }

    assert!(named > 100, "the pages name {named} source files");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns whether this is the path of one source file, and not of a kind of files (`<kind>.rs`, `*.rs`).
fn is_source_file(code: &str) -> bool {
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    (code.ends_with(".rs") || code.ends_with(".py")) && code.chars().all(is_path) && !code.starts_with('.')
}

/// Returns a path as pages write it: without `crates/` and `src/`.
fn short(path: &str) -> String {
    path.trim_start_matches("crates/").replacen("src/", "", 1)
}
