//! House rules about source files that no lint of the compiler covers.

#![cfg(test)]

mod capabilities;
mod customer_commands;
mod debug_texts;
mod decisions;
mod dependencies;
mod evidence;
mod findings;
mod guarantees;
mod lies;
mod modules;
mod pages;
mod test_groups;
mod threat_model;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use modules::without_tests;
use serde_json::Value;

/// A file of Rust or Python is split at this size, a file of tests too. Tests below the code of Rust count half.
const LINES: usize = 500;
/// The folders that hold all crates.
const FOLDERS: [&str; 5] = ["crates", "functions", "runner", "cli", "tests"];
/// The folders that hold all sources.
const ALL_FOLDERS: [&str; 9] =
    ["crates", "functions", "runner", "cli", "examples", "infra", "localstack", "statemachines", "tests"];
/// The most source files of one folder.
const FILES: usize = 20;

/// Participles that do not end in `ed`, verbs in the past, adverbs and adjectives.
const NOT_NOUNS: [&str; 34] = [
    "again",
    "away",
    "bound",
    "broken",
    "built",
    "chosen",
    "done",
    "drawn",
    "forgotten",
    "found",
    "given",
    "gone",
    "heard",
    "held",
    "hidden",
    "kept",
    "known",
    "left",
    "lost",
    "made",
    "near",
    "outside",
    "ran",
    "said",
    "seen",
    "sent",
    "shown",
    "swept",
    "taken",
    "thrown",
    "told",
    "unbelievable",
    "worn",
    "written",
];
/// Modules with the name of a command or of a report (decision 0023).
const NAMED_ALL_THE_SAME: [&str; 7] = [
    "cli/src/customer/gone.rs",
    "cli/src/customer/log/asked.rs",
    "cli/src/customer/log/outside.rs",
    "cli/src/customer/log/ran.rs",
    "cli/src/customer/log/sent.rs",
    "cli/src/customer/stopped.rs",
    "crates/protocol/src/report/away.rs",
];

/// The lints against panics, which the workspace sets for every crate.
const NO_PANIC: [&str; 4] = ["expect_used", "indexing_slicing", "panic", "unwrap_used"];

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
fn a_module_is_named_by_a_noun() {
    let wrong: Vec<String> = sources()
        .into_iter()
        .filter_map(|file| {
            let named = if file.ends_with("mod.rs") { file.parent()? } else { file.as_path() };
            let name = named.file_stem()?.to_str()?;
            // With a noun behind it, a participle is fine: `forgotten_installs`.
            let is_noun = name.contains(['_', '-']) || !(name.ends_with("ed") || NOT_NOUNS.contains(&name));
            let is_left_out = NAMED_ALL_THE_SAME.iter().any(|one| file == top().join(one));
            (!is_noun && !is_left_out).then(|| format!("name what {} holds: `{name}` is not a noun", file.display()))
        })
        .collect();
    let gone = NAMED_ALL_THE_SAME.into_iter().filter(|one| !top().join(one).exists());
    let wrong: Vec<String> = wrong.into_iter().chain(gone.map(|one| format!("{one} is not there any more"))).collect();

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_file_is_too_long_to_read() {
    let wrong = offences(|file, text| {
        let only_tests = file.components().any(|part| part.as_os_str() == "tests") || file.ends_with("tests.rs");
        let lines = text.lines().count();
        let code = if only_tests { lines } else { without_tests(text).lines().count() };
        let size = code + (lines - code) / 2;
        (size > LINES).then(|| format!("counts {size} lines; split it at {LINES} (tests below the code count half)"))
    });

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_file_of_python_is_too_long_to_read() {
    let wrong: Vec<String> = python()
        .into_iter()
        .filter_map(|(file, text)| {
            let lines = text.lines().count();
            let path = file.strip_prefix(top()).unwrap().display();
            (lines > LINES).then(|| format!("{path} has {lines} lines; split it by subject at {LINES}"))
        })
        .collect();

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_program_of_python_is_formatted_and_linted() {
    let settings = read(&top().join("ruff.toml"));
    let list = settings.split_once("\nextend-include = [\n").and_then(|(_, rest)| rest.split("\n]").next());
    let listed: BTreeSet<&str> = list.unwrap_or_default().split('"').skip(1).step_by(2).collect();

    let programs = python().into_iter().map(|(file, _)| file).filter(|file| file.extension().is_none());
    let programs: Vec<String> = programs.map(|file| file.strip_prefix(top()).unwrap().display().to_string()).collect();

    let programs: BTreeSet<&str> = programs.iter().map(String::as_str).collect();
    assert_eq!(programs, listed, "left: programs of Python; right: `extend-include` of ruff.toml");
}

#[test]
fn no_folder_has_too_many_files_to_see_at_once() {
    let mut folders: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for file in every_source() {
        *folders.entry(file.parent().unwrap().to_owned()).or_default() += 1;
    }
    assert!(folders.contains_key(&top().join("tests/infra")), "the checks of the templates have moved");

    let crowded = folders.into_iter().filter(|(_, files)| *files > FILES);
    let wrong: Vec<String> = crowded
        .map(|(folder, files)| {
            let folder = folder.strip_prefix(top()).unwrap().display();
            format!("{folder} has {files} source files; sort what belongs together into folders at {FILES}")
        })
        .collect();

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_module_with_children_is_a_folder_with_a_mod_file() {
    let beside = sources().into_iter().filter(|file| {
        let folder = file.with_extension("");
        let program = file.parent().is_some_and(|parent| parent.ends_with("bin") || parent.ends_with("tests"));
        !program && folder.is_dir() && !files(&folder, "rs").is_empty()
    });

    let wrong: Vec<String> =
        beside.map(|file| format!("move {} to `mod.rs` in the folder of its name", file.display())).collect();

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_test_is_ignored() {
    let wrong = offences(|_, text| {
        let ignored = text.lines().any(is_ignored);
        ignored.then(|| "ignores a test; skip by name, with a reason, or remove it".into())
    });

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_test_is_ignored_by_an_attribute_a_condition_and_a_comment() {
    // In two parts, so that this file does not find itself.
    for line in [
        concat!("#[", "ignore]"),
        concat!("    #[cfg_attr(not(unix), ", "ignore = \"why\")]"),
        concat!("// #[", "test]"),
    ] {
        assert!(is_ignored(line), "{line}");
    }
    for line in ["#[test]", "#[cfg_attr(not(unix), expect(unused))]", "/// ignore", "// ignored"] {
        assert!(!is_ignored(line), "{line}");
    }
}

/// Returns whether a line keeps a test from running.
fn is_ignored(line: &str) -> bool {
    let line = line.trim_start();
    let comment = line.strip_prefix("//").unwrap_or_default().trim_start();
    line.starts_with("#[ignore")
        || (line.starts_with("#[cfg_attr(") && line.contains("ignore"))
        || ["#[test]", "#[tokio::test"].iter().any(|test| comment.starts_with(test))
}

/// A job's programs may have put a link or a pipe where a file was; `runner/src/workspace.rs` opens files all the same.
#[test]
fn no_kind_of_job_opens_files_of_a_workspace_itself() {
    // They unpack and fetch before any program runs, read what they fetched then, hash what a build made, write a copy
    // beside the workspace, and read this copy.
    let before_programs = [
        "archive.rs",
        "bucket.rs",
        "kustomize.rs",
        "plan_file.rs",
        "providers.rs",
        "provider_zip.rs",
        "saved_plan.rs",
        "job_image.rs",
    ];
    let opens = [
        "fs::read",
        "fs::write",
        "fs::copy",
        "fs::File",
        "fs::{",
        "File::open",
        "File::create",
        "File::options",
        "fs::OpenOptions",
        "OpenOptions::",
    ];

    let wrong = offences(|file, text| {
        let of_jobs = ["runner/src/kinds/", "runner/src/job/"].iter().any(|folder| file.starts_with(folder));
        let is_kind = of_jobs && !before_programs.iter().any(|one| file.ends_with(one));
        let opened = opens.into_iter().find(|word| is_kind && without_tests(text).contains(word));
        opened.map(|word| format!("has `{word}`; open files of a workspace with `runner/src/workspace.rs`"))
    });

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_crate_takes_the_workspaces_lints_against_panics() {
    let workspace = read(&top().join("Cargo.toml"));
    let missing = NO_PANIC.into_iter().filter(|lint| !workspace.contains(&format!("\n{lint} = \"warn\"\n")));
    let mut wrong: Vec<String> = missing.map(|lint| format!("`[workspace.lints.clippy]` lacks `{lint}`")).collect();

    if !workspace.contains("\nunsafe_code = \"forbid\"\n") {
        wrong.push("`[workspace.lints.rust]` does not forbid `unsafe_code`".into());
    }

    for (name, manifest) in members() {
        if !read(&manifest).contains("\n[lints]\nworkspace = true\n") {
            wrong.push(format!("`{name}` does not take the workspace's lints; add `[lints]` with `workspace = true`"));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_crate_is_a_member_and_in_a_folder_that_these_checks_read() {
    let members: Vec<PathBuf> = members().into_iter().map(|(_, manifest)| manifest).collect();
    let folders = fs::read_dir(top()).unwrap().map(|entry| entry.unwrap().path());
    let folders = folders.filter(|folder| folder.is_dir() && !folder.ends_with("target") && !folder.ends_with(".git"));
    let manifests = folders.flat_map(|folder| files(&folder, "toml")).filter(|file| file.ends_with("Cargo.toml"));

    let alone =
        manifests.filter(|file| !members.contains(file)).map(|file| format!("{} is not a member", file.display()));
    let unread = members.iter().filter(|file| !FOLDERS.iter().any(|folder| file.starts_with(top().join(folder))));
    let wrong: Vec<String> =
        alone.chain(unread.map(|file| format!("{} is in no folder of {FOLDERS:?}", file.display()))).collect();

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_of_the_docs_is_in_the_book() {
    let docs = top().join("docs");
    let summary = read(&docs.join("SUMMARY.md"));

    let missing: Vec<String> = files(&docs, "md")
        .iter()
        .map(|page| page.strip_prefix(&docs).unwrap().display().to_string())
        .filter(|page| page != "SUMMARY.md" && !summary.contains(&format!("]({page})")))
        .map(|page| format!("docs/{page} is not in the book; add it to docs/SUMMARY.md"))
        .collect();

    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Returns the name and the manifest of each crate of the workspace.
fn members() -> Vec<(String, PathBuf)> {
    let packages = packages().into_iter();
    packages.map(|p| (p["name"].as_str().unwrap().into(), p["manifest_path"].as_str().unwrap().into())).collect()
}

/// Returns the kind (such as `bin`) and the first source file of everything that cargo compiles.
fn targets() -> Vec<(String, PathBuf)> {
    let of = |package: Value| {
        let targets = package["targets"].as_array().unwrap().clone().into_iter();
        targets.map(move |target| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (text(&target["kind"][0]), text(&target["src_path"]).into())
        })
    };
    packages().into_iter().flat_map(of).collect()
}

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(top())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// Returns one line for each source file in which `check` finds something.
fn offences(check: impl Fn(&Path, &str) -> Option<String>) -> Vec<String> {
    sources()
        .iter()
        .filter_map(|file| {
            let path = file.strip_prefix(top()).unwrap();
            Some(format!("{} {}", path.display(), check(path, &read(file))?))
        })
        .collect()
}

/// Returns every Rust file of the workspace.
fn sources() -> Vec<PathBuf> {
    let sources: Vec<PathBuf> = FOLDERS.into_iter().flat_map(|folder| files(&top().join(folder), "rs")).collect();
    assert!(sources.len() > 50, "found only {} source files; the folders have moved", sources.len());
    sources
}

/// Returns every file that is written in a programming language, programs without an extension too.
fn every_source() -> impl Iterator<Item = PathBuf> {
    let of = |folder: &str| {
        let folder = top().join(folder);
        let programs = files(&folder, "").into_iter().filter(|file| fs::read(file).unwrap().starts_with(b"#!"));
        let others = ["rs", "py", "sh", "js", "mjs"].into_iter().flat_map(|extension| files(&folder, extension));
        programs.chain(others).collect::<Vec<_>>()
    };
    ALL_FOLDERS.into_iter().flat_map(of)
}

/// Returns every Python file with its text, programs without an extension too.
fn python() -> Vec<(PathBuf, String)> {
    let of = |folder: &str| {
        let programs = files(&top().join(folder), "").into_iter().filter(|file| is_python_program(file));
        files(&top().join(folder), "py").into_iter().chain(programs)
    };
    let found: Vec<_> = ALL_FOLDERS.into_iter().flat_map(of).map(|file| (file.clone(), read(&file))).collect();
    assert!(found.len() > 50, "found only {} files of Python; the folders have moved", found.len());
    assert!(found.iter().any(|(file, _)| file.extension().is_none()), "found no program without an extension");
    found
}

fn is_python_program(file: &Path) -> bool {
    let bytes = fs::read(file).unwrap();
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    first.starts_with(b"#!") && String::from_utf8_lossy(first).contains("python")
}

/// Returns the files with this extension (`""`: with none) at any depth, in order.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let of = |entry: PathBuf| match entry.is_dir() {
        true => files(&entry, extension),
        false => Vec::from_iter((entry.extension().unwrap_or_default() == extension).then_some(entry)),
    };
    entries.into_iter().flat_map(of).collect()
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}
