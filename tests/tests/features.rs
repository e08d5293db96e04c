//! The test build compiles no third-party crate a second time: see `tests/features/Cargo.toml`.

#![cfg(test)]

use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn tests_switch_on_no_feature_that_the_other_builds_lack() {
    let (without, with) = (crates("normal,build"), crates("normal,build,dev"));
    assert!(without.len() > 100, "`cargo tree` answers something else than expected: {without:?}");

    let changed: Vec<&String> = without.difference(&with).collect();

    assert!(
        changed.is_empty(),
        "dev-dependencies switch on features of these crates, so that they are compiled twice; name the dev-dependency \
         in tests/features/Cargo.toml: {changed:?}"
    );
}

/// Returns the third-party crates of the workspace, each with its version and features.
fn crates(edges: &str) -> BTreeSet<String> {
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
