//! Which crate may know which: the arrows of the architecture, read from `cargo metadata`. And which features third-party
//! crates have: the test build compiles none of them a second time, as `tests/features/Cargo.toml` describes.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// What each crate may know of the others. `tests` may know all of them, and `features` has no code.
const ARROWS: [(&str, &[&str]); 20] = [
    ("skips", &[]),
    ("aws-errors", &[]),
    ("protocol", &[]),
    ("sealing", &["protocol"]),
    ("template", &["skips"]),
    ("stackcheck", &["permissions", "protocol", "template"]),
    ("permissions", &["protocol", "template"]),
    ("domain", &["permissions", "protocol"]),
    ("appconfig", &["domain", "permissions", "protocol", "skips", "template"]),
    ("fuzz", &["appconfig", "protocol", "template"]),
    ("app", &["domain", "permissions", "protocol", "template"]),
    ("aws", &["app", "aws-errors", "domain", "protocol"]),
    ("functions", &["app", "aws", "aws-errors", "domain", "protocol"]),
    ("oci", &["protocol", "skips"]),
    ("egress", &[]),
    ("iam-proxy", &["aws-errors", "oci"]),
    ("model", &["domain", "protocol", "runner"]),
    (
        "runner",
        &["aws-errors", "iam-proxy", "egress", "oci", "permissions", "protocol", "sealing", "skips", "template"],
    ),
    ("builder", &["egress", "oci", "protocol", "runner", "skips"]),
    ("cli", &["appconfig", "aws-errors", "domain", "permissions", "protocol", "sealing", "stackcheck", "template"]),
];

/// The crates that speak to AWS themselves.
const SPEAK_AWS: [&str; 6] = ["aws", "builder", "cli", "iam-proxy", "runner", "tests"];

/// What a crate without I/O, clock and randomness has no use for.
const IMPURE: [&str; 6] = ["async-trait", "getrandom", "jiff", "reqwest", "tokio", "tracing"];

#[test]
fn every_crate_knows_only_the_crates_that_it_may() {
    let crates = workspace();

    let wrong: Vec<String> = crates
        .iter()
        .filter(|(name, _)| !["tests", "features"].contains(&name.as_str()))
        .flat_map(|(name, dependencies)| {
            let allowed = ARROWS.iter().find(|(known, _)| known == name).map(|(_, allowed)| *allowed);
            let Some(allowed) = allowed else {
                return vec![format!("crate `{name}` is new; say in ARROWS what it may know")];
            };
            internal(dependencies)
                .filter(|other| other != name && !allowed.contains(other))
                .map(|other| format!("`{name}` depends on `{other}`; it may know only {allowed:?}"))
                .collect()
        })
        .collect();

    assert!(wrong.is_empty(), "wrong arrows:\n{}", wrong.join("\n"));
}

#[test]
fn every_arrow_names_a_crate_that_exists() {
    let crates = workspace();

    let gone: Vec<&str> =
        ARROWS.iter().map(|(name, _)| *name).chain(SPEAK_AWS).filter(|name| !crates.contains_key(*name)).collect();

    assert!(gone.is_empty(), "these crates are named here but not in the workspace: {gone:?}");
}

#[test]
fn only_six_crates_speak_to_aws() {
    let crates = workspace();

    let wrong: Vec<String> = crates
        .iter()
        .filter(|(name, _)| !SPEAK_AWS.contains(&name.as_str()))
        .flat_map(|(name, dependencies)| {
            let sdks = dependencies.iter().filter(|other| {
                ["aws-config", "aws-sdk-", "aws-sigv4", "aws-smithy-"].iter().any(|sdk| other.starts_with(sdk))
            });
            // The code and message of an answer, which is data.
            let sdks = sdks.filter(move |sdk| (name.as_str(), sdk.as_str()) != ("aws-errors", "aws-smithy-types"));
            sdks.map(move |sdk| format!("`{name}` depends on `{sdk}`; put the call behind a port in `app`"))
        })
        .collect();

    assert!(wrong.is_empty(), "AWS outside its crates:\n{}", wrong.join("\n"));
}

#[test]
fn pure_crates_have_no_clock_no_randomness_and_no_io() {
    let crates = workspace();

    let wrong: Vec<String> = ["aws-errors", "protocol", "permissions", "domain", "template", "stackcheck"]
        .into_iter()
        .flat_map(|name| {
            let impure = crates[name].iter().filter(|other| IMPURE.contains(&other.as_str()));
            impure.map(move |other| format!("`{name}` depends on `{other}`; pass what it gives in as a value"))
        })
        .collect();

    assert!(wrong.is_empty(), "pure crates that are not:\n{}", wrong.join("\n"));
}

/// Returns the crates of the workspace, without the prefix `freehold-`, and what each depends on. Dependencies that
/// only tests have count for our own crates, not for those of others.
fn workspace() -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().iter().map(crate_of).collect()
}

fn crate_of(package: &Value) -> (String, Vec<String>) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let dependencies = package["dependencies"].as_array().unwrap().iter();
    let counted = dependencies.filter(|d| d["kind"] != "dev" || text(&d["name"]).starts_with("freehold-"));
    let names = counted.map(|dependency| text(&dependency["name"])).collect();
    (text(&package["name"]).replace("freehold-", ""), names)
}

fn internal(dependencies: &[String]) -> impl Iterator<Item = &str> {
    dependencies.iter().filter_map(|name| name.strip_prefix("freehold-"))
}

#[test]
fn tests_switch_on_no_feature_that_the_other_builds_lack() {
    let (without, with) = (third_party("normal,build"), third_party("normal,build,dev"));
    assert!(without.len() > 100, "`cargo tree` answers something else than expected: {without:?}");

    let changed: Vec<&String> = without.difference(&with).collect();

    assert!(
        changed.is_empty(),
        "dev-dependencies switch on features of these crates, so that they are compiled twice; name the dev-dependency \
         in tests/features/Cargo.toml: {changed:?}"
    );
}

/// Returns the third-party crates of the workspace, each with its version and features.
fn third_party(edges: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--workspace", "--locked", "--offline", "--edges", edges, "--prefix", "none"])
        .args(["--format", "{p} with {f}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| line.trim_end_matches(" (*)").to_owned());
    lines.filter(|line| !line.is_empty() && !line.starts_with("freehold-")).collect()
}
