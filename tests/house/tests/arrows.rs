//! Which crate may know which: the arrows of the architecture, read from `cargo metadata`. And which features third-party
//! crates have: the test build compiles none of them a second time, as `tests/features/Cargo.toml` describes.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// What each crate may know of the others. `tests` may know all of them, and `features` and `house` have no code.
const ARROWS: [(&str, &[&str]); 28] = [
    ("skips", &[]),
    ("aws-errors", &[]),
    ("log-filter", &[]),
    ("policy", &[]),
    ("protocol", &[]),
    ("access", &["protocol"]),
    ("redaction", &["protocol"]),
    ("sealing", &["protocol"]),
    ("sign-in", &["aws-errors", "protocol"]),
    ("windows", &["protocol"]),
    ("template", &["skips"]),
    ("stackcheck", &["permissions", "protocol", "template"]),
    ("permissions", &["protocol", "template"]),
    ("domain", &["permissions", "protocol"]),
    ("appconfig", &["domain", "permissions", "policy", "protocol", "skips", "template"]),
    ("fuzz", &["appconfig", "protocol", "template"]),
    ("app", &["access", "domain", "permissions", "protocol", "template"]),
    ("aws", &["app", "aws-errors", "domain", "protocol"]),
    ("client", &["aws-errors", "protocol"]),
    ("pages", &["protocol"]),
    (
        "functions",
        &["access", "app", "aws", "aws-errors", "client", "domain", "log-filter", "pages", "protocol", "sign-in"],
    ),
    ("oci", &["protocol", "skips"]),
    ("egress", &[]),
    ("iam-proxy", &["aws-errors", "oci"]),
    ("model", &["domain", "protocol", "runner"]),
    (
        "runner",
        &[
            "aws-errors",
            "iam-proxy",
            "egress",
            "log-filter",
            "oci",
            "permissions",
            "policy",
            "protocol",
            "redaction",
            "sealing",
            "skips",
            "template",
            "windows",
        ],
    ),
    ("builder", &["egress", "oci", "protocol", "runner", "skips"]),
    (
        "cli",
        &[
            "access",
            "app",
            "appconfig",
            "aws-errors",
            "client",
            "domain",
            "pages",
            "permissions",
            "policy",
            "protocol",
            "redaction",
            "sealing",
            "sign-in",
            "stackcheck",
            "template",
            "windows",
        ],
    ),
];

/// The arrows of these that only tests have: the second crate is in no program that is made of the first.
const ONLY_TESTS: [(&str, &str); 10] = [
    ("appconfig", "skips"),
    ("builder", "skips"),
    ("cli", "app"),
    ("functions", "access"),
    ("iam-proxy", "oci"),
    ("model", "domain"),
    ("model", "runner"),
    ("oci", "skips"),
    ("runner", "skips"),
    ("template", "skips"),
];

/// The features of our crates that are not shipped, such as ports in memory.
const NOT_SHIPPED: [&str; 4] = ["memory", "mutants", "openapi", "testing"];

/// The crates that speak to AWS themselves.
const SPEAK_AWS: [&str; 7] = ["aws", "builder", "cli", "client", "iam-proxy", "runner", "tests"];

/// The crates without I/O, clock and randomness.
const PURE: [&str; 8] =
    ["access", "aws-errors", "protocol", "permissions", "domain", "template", "stackcheck", "windows"];

/// What they have no use for.
const IMPURE: [&str; 14] = [
    "async-trait",
    "fastrand",
    "getrandom",
    "hyper",
    "jiff",
    "libc",
    "nix",
    "rand",
    "reqwest",
    "rustix",
    "tempfile",
    "tokio",
    "tracing",
    "ureq",
];

/// What they have no use for of Rust's own library.
const IMPURE_PARTS: [&str; 11] = [
    "std::env",
    "std::fs",
    "std::net::Tcp",
    "std::net::Udp",
    "std::process",
    "std::thread",
    "std::{",
    "Instant",
    "SystemTime",
    "println!",
    "::now()",
];

#[test]
fn every_crate_knows_only_the_crates_that_it_may() {
    let crates = workspace();

    let wrong: Vec<String> = crates
        .iter()
        .filter(|(name, _)| !["tests", "features", "house"].contains(&name.as_str()))
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
fn an_arrow_that_only_tests_have_is_in_no_program() {
    let wrong: Vec<String> = packages()
        .iter()
        .filter(|package| {
            !["freehold-fuzz", "freehold-tests", "freehold-features"].contains(&text(&package["name"]).as_str())
        })
        .flat_map(only_for_tests)
        .collect();

    assert!(wrong.is_empty(), "make these dev-dependencies:\n{}", wrong.join("\n"));
}

#[test]
fn what_only_tests_may_have_is_found_in_the_dependencies_of_a_program() {
    let package = |name: &str, kind: Value, features: &[&str]| json!({ "name": "freehold-iam-proxy", "dependencies": [{ "name": name, "kind": kind, "features": features }] });

    assert_eq!(only_for_tests(&package("freehold-oci", json!(null), &[])), ["`iam-proxy` -> `oci`"]);
    assert_eq!(only_for_tests(&package("freehold-oci", json!("build"), &[])), ["`iam-proxy` -> `oci`"]);
    assert_eq!(only_for_tests(&package("freehold-app", json!(null), &["testing"])), ["`iam-proxy` -> `app`"]);
    assert_eq!(only_for_tests(&package("freehold-oci", json!("dev"), &["testing"])), [""; 0]);
    assert_eq!(only_for_tests(&package("freehold-aws-errors", json!(null), &[])), [""; 0]);
}

/// Returns the dependencies of a package that only its tests may have, and that its programs have.
fn only_for_tests(package: &Value) -> Vec<String> {
    let name = text(&package["name"]).replace("freehold-", "");
    let dependencies =
        package["dependencies"].as_array().unwrap().iter().filter(|dependency| dependency["kind"] != "dev");
    let pairs = dependencies.filter_map(|dependency| {
        let other = text(&dependency["name"]).strip_prefix("freehold-")?.to_owned();
        let features = dependency["features"].as_array().unwrap();
        let wrong = ONLY_TESTS.contains(&(name.as_str(), other.as_str()))
            || features.iter().any(|feature| NOT_SHIPPED.contains(&text(feature).as_str()));
        wrong.then(|| format!("`{name}` -> `{other}`"))
    });
    pairs.collect()
}

#[test]
fn every_crate_of_the_workspace_has_its_prefix_and_every_arrow_is_in_use() {
    let names: Vec<String> = packages().iter().map(|package| text(&package["name"])).collect();
    let nameless: Vec<&String> = names.iter().filter(|name| !name.starts_with("freehold-")).collect();
    assert!(nameless.is_empty(), "arrows to crates without the prefix `freehold-` are not seen: {nameless:?}");

    let crates = workspace();
    let unused: Vec<String> = ARROWS
        .iter()
        .flat_map(|(name, allowed)| allowed.iter().map(move |other| (name, other)))
        .filter(|(name, other)| !internal(&crates[**name]).any(|known| known == **other))
        .map(|(name, other)| format!("`{name}` -> `{other}`"))
        .collect();

    assert!(unused.is_empty(), "nobody needs these arrows; remove them from ARROWS: {unused:?}");
}

#[test]
fn every_arrow_names_a_crate_that_exists() {
    let crates = workspace();

    let gone: Vec<&str> =
        ARROWS.iter().map(|(name, _)| *name).chain(SPEAK_AWS).filter(|name| !crates.contains_key(*name)).collect();

    assert!(gone.is_empty(), "these crates are named here but not in the workspace: {gone:?}");
}

#[test]
fn only_seven_crates_speak_to_aws() {
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

    let wrong: Vec<String> = PURE
        .into_iter()
        .flat_map(|name| {
            let impure = crates[name].iter().filter(|other| IMPURE.contains(&other.as_str()));
            // The calendar and its time zones. `Timestamp::now` and `Zoned::now` are the clock, which the next test finds.
            let impure = impure.filter(move |other| (name, other.as_str()) != ("windows", "jiff"));
            impure.map(move |other| format!("`{name}` depends on `{other}`; pass what it gives in as a value"))
        })
        .collect();

    assert!(wrong.is_empty(), "pure crates that are not:\n{}", wrong.join("\n"));
}

#[test]
fn pure_crates_use_no_clock_no_process_and_no_io_of_rusts_own_library() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let (mut wrong, mut files, mut todo) = (Vec::new(), 0, Vec::from(PURE.map(|name| crates.join(name).join("src"))));
    while let Some(folder) = todo.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                todo.push(path);
                continue;
            }
            files += 1;
            let text = fs::read_to_string(&path).unwrap();
            let impure = text.lines().filter_map(impure_part);
            wrong.extend(
                impure.map(|part| format!("{} has `{part}`; pass what it gives in as a value", path.display())),
            );
        }
    }

    assert!(files > 100, "read only {files} source files; the folders have moved");
    assert!(wrong.is_empty(), "pure crates that are not:\n{}", wrong.join("\n"));
}

#[test]
fn an_impure_part_is_found_in_code_and_not_in_a_comment() {
    assert_eq!(impure_part("    let now = std::time::SystemTime::now();"), Some("SystemTime"));
    assert_eq!(impure_part("use std::{fmt, fs};"), Some("std::{"));
    assert_eq!(impure_part("/// Not `std::fs`."), None);
    assert_eq!(impure_part("use std::net::Ipv4Addr;"), None);
}

/// Returns what a line uses that a pure crate may not.
fn impure_part(line: &str) -> Option<&'static str> {
    let is_comment = line.trim_start().starts_with("//");
    IMPURE_PARTS.into_iter().find(|part| !is_comment && line.contains(part))
}

/// Returns the crates of the workspace, without the prefix `freehold-`, and what each depends on. Dependencies that
/// only tests have count for our own crates, not for those of others.
fn workspace() -> BTreeMap<String, Vec<String>> {
    packages().iter().map(crate_of).collect()
}

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn crate_of(package: &Value) -> (String, Vec<String>) {
    let dependencies = package["dependencies"].as_array().unwrap().iter();
    let counted = dependencies.filter(|d| d["kind"] != "dev" || text(&d["name"]).starts_with("freehold-"));
    let names = counted.map(|dependency| text(&dependency["name"])).collect();
    (text(&package["name"]).replace("freehold-", ""), names)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn internal(dependencies: &[String]) -> impl Iterator<Item = &str> {
    dependencies.iter().filter_map(|name| name.strip_prefix("freehold-"))
}

#[test]
fn tests_switch_on_no_feature_that_the_other_builds_lack() {
    let (without, with) =
        (third_party("normal,build", &["--workspace"]), third_party("normal,build,dev", &["--workspace"]));
    assert!(without.len() > 100, "`cargo tree` answers something else than expected: {without:?}");

    let changed: Vec<&String> = without.difference(&with).collect();

    assert!(
        changed.is_empty(),
        "dev-dependencies switch on features of these crates, so that they are compiled twice; name the dev-dependency \
         in tests/features/Cargo.toml: {changed:?}"
    );
}

#[test]
fn the_demo_compiles_no_crate_that_the_tests_compile_again() {
    let script = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../demo/run")).unwrap();
    let build = script.lines().find_map(|line| line.trim().strip_prefix("cargo build --bins ")).unwrap();
    let packages: Vec<&str> = build.split(" || ").next().unwrap().split_whitespace().collect();
    assert!(packages.contains(&"freehold-cli") && packages.contains(&"freehold-features"), "{packages:?}");
    let (demo, tests) = (third_party("normal,build", &packages), third_party("normal,build,dev", &["--workspace"]));
    assert!(demo.len() > 100, "`cargo tree` answers something else than expected: {demo:?}");

    let changed: Vec<&String> = demo.difference(&tests).collect();

    assert!(changed.is_empty(), "the demo builds these crates with other features than the tests do: {changed:?}");
}

/// Returns the third-party crates of these packages, each with its version and features.
fn third_party(edges: &str, packages: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .arg("tree")
        .args(packages)
        .args(["--locked", "--offline", "--edges", edges, "--prefix", "none"])
        .args(["--format", "{p} with {f}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| line.trim_end_matches(" (*)").to_owned());
    lines.filter(|line| !line.is_empty() && !line.starts_with("freehold-")).collect()
}
