//! What pages say about the tree is so: each file and folder that one names is there. The index links every page.

use std::path::PathBuf;

use super::{every_source, files, read, top};

/// Pages outside of `docs/`.
const OUTSIDE: [&str; 3] = ["README.md", "CONTRIBUTING.md", "localstack/README.md"];
/// Pages whose paths begin in a folder of their own.
const BASES: [(&str, &str); 2] = [("docs/runner.md", "runner/src"), ("localstack/README.md", "localstack")];

#[test]
fn every_path_that_a_page_names_exists() {
    let pages = files(&top().join("docs"), "md").into_iter().chain(OUTSIDE.map(|page| top().join(page)));
    let every_source: Vec<PathBuf> = every_source().collect();

    let mut named = 0;
    let mut wrong = Vec::new();
    for page in pages {
        let text = read(&page);
        let prose = text.split("\n```").step_by(2);
        let base = BASES.iter().find(|(name, _)| page == top().join(name)).map_or("", |(_, base)| base);
        for path in
            prose.flat_map(|text| text.split('`').skip(1).step_by(2)).filter(|word| is_path(word) || is_module(word))
        {
            named += 1;
            // A decision names the end of a path where the crate is clear: `pulumi/program.rs`.
            let is_end = || every_source.iter().any(|file| file.ends_with(path));
            if !exists(path, base) && !is_end() {
                wrong.push(format!("{} names `{path}`, which is not there", page.display()));
            }
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(named > 100, "only {named} paths were found: the pages are read wrongly");
}

#[test]
fn the_index_of_the_docs_links_every_page_of_the_book() {
    let docs = top().join("docs");
    let (summary, index) = (read(&docs.join("SUMMARY.md")), read(&docs.join("README.md")));
    // The index itself is the first page of the book, and the decisions have an index of their own.
    let pages: Vec<&str> = summary
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|page| *page != "README.md" && (!page.starts_with("decisions/") || *page == "decisions/README.md"))
        .collect();

    let absent: Vec<_> = pages.iter().filter(|page| !links_to(&index, page)).collect();

    assert!(pages.len() > 20, "docs/SUMMARY.md was read wrongly: only {pages:?}");
    assert!(absent.is_empty(), "add these pages to docs/README.md: {absent:?}");
}

#[test]
fn a_link_to_a_part_of_a_page_counts_and_the_name_of_a_page_does_not() {
    assert!(links_to("[a](a.md) and [b](b.md#part)", "a.md"));
    assert!(links_to("[a](a.md) and [b](b.md#part)", "b.md"));
    assert!(!links_to("`a.md`, [a](guides/a.md)", "a.md"));
}

#[test]
fn the_readme_says_what_each_crate_is() {
    let readme = read(&top().join("README.md"));
    let crates = std::fs::read_dir(top().join("crates")).unwrap().map(|entry| entry.unwrap().file_name());

    let absent: Vec<_> =
        crates.filter(|name| !readme.contains(&format!("\n| `crates/{}` |", name.display()))).collect();

    assert!(absent.is_empty(), "README.md has no row for {absent:?}");
}

/// Returns whether `text` has a link to `page` or to a part of it.
fn links_to(text: &str, page: &str) -> bool {
    [")", "#"].iter().any(|end| text.contains(&format!("]({page}{end}")))
}

/// Returns whether `word` is a path from the root of the repository, or from the sources of a crate, as in `app/lib.rs`. What
/// ends like a source is one in any case, so that a directory that is renamed does not hide it.
fn is_path(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    let first = word.split('/').next().unwrap_or_default();
    let is_known = |place: &str| top().join(place).join(first).is_dir();
    // A version of a group of the Kubernetes API, as in `policy/v1`.
    let is_version =
        |last: &str| last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let other = matches!(first, "" | "." | ".." | "target") || word.rsplit('/').next().is_some_and(is_version);
    let is_source = [".rs", ".py"].iter().any(|ending| word.ends_with(ending));
    word.chars().all(plain) && word.contains('/') && !other && (is_source || is_known("") || is_known("crates"))
}

/// Returns whether `word` is the name of a Rust source without its folder, as in a list of the files of one folder.
fn is_module(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    word.strip_suffix(".rs").is_some_and(|name| !name.is_empty() && name.chars().all(plain))
}

/// Returns whether there is such a file from the root, from the sources of a crate, or from the `base` of the page.
fn exists(path: &str, base: &str) -> bool {
    let of_sources = path.split_once('/').map(|(first, rest)| format!("{first}/src/{rest}")).unwrap_or_default();
    let places = [path, &of_sources, &format!("crates/{of_sources}"), &format!("{base}/{path}")];
    places.iter().any(|place| top().join(place).exists())
}
