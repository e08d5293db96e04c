//! House rules about source files that no lint of the compiler covers.

use std::fs;
use std::path::{Path, PathBuf};

/// A file is split at this size; tests below the code count half.
const LINES: usize = 500;

/// The crates that must not panic, and the lints at their roots that see to it.
const NO_PANIC: [&str; 7] = [
    "crates/protocol/src/lib.rs",
    "crates/domain/src/lib.rs",
    "crates/template/src/lib.rs",
    "crates/appconfig/src/lib.rs",
    "crates/app/src/lib.rs",
    "crates/oci/src/lib.rs",
    "runner/src/lib.rs",
];
const NO_PANIC_LINTS: [&str; 4] =
    ["clippy::expect_used", "clippy::indexing_slicing", "clippy::panic", "clippy::unwrap_used"];

#[test]
fn every_file_opens_with_what_it_holds() {
    let wrong = offences(|file, text| {
        // The module above says what the tests beside it are about.
        let headless = !text.starts_with("//! ") && !file.ends_with("tests.rs");
        headless.then(|| "does not open with `//! ` and a sentence".into())
    });

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_file_is_too_long_to_read() {
    let wrong = offences(|file, text| {
        let only_tests = file.components().any(|part| part.as_os_str() == "tests") || file.ends_with("tests.rs");
        let code = if only_tests { 0 } else { text.lines().take_while(|line| *line != "#[cfg(test)]").count() };
        let size = code + (text.lines().count() - code) / 2;
        (size > LINES).then(|| format!("counts {size} lines; split it at {LINES} (tests below the code count half)"))
    });

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_test_is_ignored() {
    // In two parts, so that this file does not find itself.
    let ignored = concat!("#[", "ignore");

    let wrong = offences(|_, text| {
        text.contains(ignored).then(|| "ignores a test; skip by name, with a reason, or remove it".into())
    });

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_crates_that_must_not_panic_say_so_at_their_root() {
    let silent: Vec<String> = NO_PANIC
        .into_iter()
        .flat_map(|root| {
            let text = read(&top().join(root));
            let missing = NO_PANIC_LINTS.into_iter().filter(move |lint| !text.contains(lint));
            missing.map(move |lint| format!("{root} does not warn of `{lint}`; add it to `#![warn(...)]`"))
        })
        .collect();

    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

/// Returns one line for each source file in which `check` finds something.
fn offences(check: impl Fn(&Path, &str) -> Option<String>) -> Vec<String> {
    let mut files = Vec::new();
    for folder in ["crates", "functions", "runner", "cli", "tests"] {
        collect(&top().join(folder), &mut files);
    }
    assert!(files.len() > 50, "found only {} source files; the folders have moved", files.len());
    files
        .iter()
        .filter_map(|file| {
            let shown = file.strip_prefix(top()).unwrap();
            Some(format!("{} {}", shown.display(), check(shown, &read(file))?))
        })
        .collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            collect(&entry, files);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            files.push(entry);
        }
    }
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}
