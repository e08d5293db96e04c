//! The test groups of nextest have the tests that they are for.

use std::collections::BTreeSet;
use std::path::Path;

use super::{files, read, top};

#[test]
fn the_group_of_clusters_has_each_module_of_the_runners_tests_that_starts_one() {
    let starting = modules("runner/tests/jobs", "with_clusters(test)");
    // A folder is in the group with all of its files.
    let starting = starting.iter().map(|module| module.split("::").next().unwrap().to_owned());
    let starting: BTreeSet<String> = starting.collect();

    assert_eq!(listed("freehold-runner::jobs"), starting);
}

#[test]
fn the_group_of_clusters_has_each_module_of_the_cloud_tests_that_needs_one() {
    assert_eq!(listed("freehold-tests::cloud"), modules("tests/tests/cloud", "Capability::Clusters"));
}

/// Returns the modules that the group lists of a program of tests.
fn listed(program: &str) -> BTreeSet<String> {
    let config = read(&top().join(".config/nextest.toml"));
    let group = config.split("[[").find(|part| part.contains("test-group = 'clusters'")).expect("the group");
    let (_, filter) = group.split_once(&format!("binary_id({program})")).expect("the program");
    let list = filter.split_once("test(/^").and_then(|(_, rest)| rest.split_once(")::/")).expect("a list of modules").0;
    let (parent, names) = list.split_once('(').expect("a list of modules");
    names.split('|').map(|name| format!("{parent}{name}")).collect()
}

/// Returns the modules below a folder whose text has `mark`.
fn modules(folder: &str, mark: &str) -> BTreeSet<String> {
    let folder = top().join(folder);
    let module = |file: &Path| {
        let path = file.strip_prefix(&folder).unwrap().with_extension("");
        let names: Vec<&str> = path.iter().map(|name| name.to_str().unwrap()).collect();
        names.join("::").trim_end_matches("::mod").to_owned()
    };
    files(&folder, "rs").iter().filter(|file| read(file).contains(mark)).map(|file| module(file)).collect()
}
