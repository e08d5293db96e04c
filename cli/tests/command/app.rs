//! `freehold app init`, `check`, `graph` and `diff` on directories, as a person runs them: the real binary, no account.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::support::{self, text};

fn freehold(dir: &Path, args: &[&str]) -> Output {
    support::freehold(dir, args).env("AWS_EC2_METADATA_DISABLED", "true").output().unwrap()
}

fn json(dir: &Path, args: &[&str]) -> Value {
    let done = freehold(dir, &[args, &["--json"]].concat());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

/// Returns the file of each finding.
fn files_of(checked: &Value) -> Vec<&str> {
    checked["found"].as_array().unwrap().iter().map(|one| one["file"].as_str().unwrap()).collect()
}

#[test]
fn a_new_app_passes_check_with_a_warning_about_its_program_alone_and_is_named() {
    let place = tempfile::tempdir().unwrap();

    let written = json(place.path(), &["app", "init", "web-shop"]);
    let checked = json(place.path(), &["app", "check", "web-shop"]);

    assert_eq!(written["app"], "web-shop");
    let message = checked["found"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("component `naming` needs `terraform`, which"), "{message}");
    assert_eq!(files_of(&checked), ["components/naming.toml"], "{checked}");
    let metadata = std::fs::read_to_string(place.path().join("web-shop/metadata.toml")).unwrap();
    assert!(metadata.contains("display_name = \"web-shop\"") && !metadata.contains("my-app"), "{metadata}");
}

#[test]
fn an_app_is_written_into_an_empty_directory_and_into_no_other() {
    let place = tempfile::tempdir().unwrap();
    let (empty, full) = (place.path().join("empty"), place.path().join("full"));
    std::fs::create_dir_all(&empty).unwrap();
    std::fs::create_dir_all(&full).unwrap();
    std::fs::write(full.join("mine.txt"), "mine").unwrap();

    let here = freehold(&empty, &["app", "init", "."]);
    let refused = freehold(place.path(), &["app", "init", "full"]);
    let wrong = freehold(place.path(), &["app", "init", "Web Shop"]);

    assert!(here.status.success() && empty.join("metadata.toml").is_file(), "{}", text(&here.stderr));
    assert_eq!(refused.status.code(), Some(4));
    assert_eq!(std::fs::read_dir(&full).unwrap().count(), 1);
    assert_eq!(wrong.status.code(), Some(2));
    let messages = text(&refused.stderr) + &text(&wrong.stderr);
    insta::assert_snapshot!(messages, @r"
    error: `full` is not empty and nothing was written; name a new directory
    error: `Web Shop` is not an app name; expected 2 to 40 lower-case letters, digits or single dashes, starting with a letter; give the directory such a name, because its name is the name of the app
    ");
}

#[test]
fn the_graph_of_a_directory_is_shown_in_every_form() {
    let place = tempfile::tempdir().unwrap();
    json(place.path(), &["app", "init", "demo"]);

    let table = freehold(place.path(), &["app", "graph", "demo"]);
    let dot = freehold(place.path(), &["app", "graph", "demo", "--format", "dot"]);
    let data = json(place.path(), &["app", "graph", "demo"]);

    insta::assert_snapshot!(text(&table.stdout), @r"
    app demo: 2 components in 2 steps, 1 action

      1  naming  terraform_module      reads input environment

      2  queue   cloudformation_stack  after naming (template); reads input retention_days, the install stack

    actions
         health-check  by hand, after component `queue`; needs queue
    ");
    assert!(text(&dot.stdout).starts_with("digraph \"demo\" {"));
    assert_eq!(data["edges"][0]["why"], "template");
}

#[test]
fn the_graph_of_a_faulty_directory_is_its_faults() {
    let place = tempfile::tempdir().unwrap();
    json(place.path(), &["app", "init", "demo"]);
    let file = place.path().join("demo/components/queue.toml");
    let broken = std::fs::read_to_string(&file).unwrap().replace("components.naming", "components.nameing");
    std::fs::write(&file, broken).unwrap();

    let checked = freehold(place.path(), &["app", "check", "demo"]);
    let graph = freehold(place.path(), &["app", "graph", "demo"]);

    assert_eq!(graph.status.code(), Some(2));
    assert_eq!(text(&graph.stdout), text(&checked.stdout));
    assert_eq!(text(&graph.stderr), text(&checked.stderr));
}

#[test]
fn schemas_are_listed_printed_and_written_for_editors() {
    let place = tempfile::tempdir().unwrap();

    let list = json(place.path(), &["app", "schema"]);
    let one = freehold(place.path(), &["app", "schema", "helm"]);
    let unknown = freehold(place.path(), &["app", "schema", "helm_chrt"]);
    let written = json(place.path(), &["app", "schema", "--dir", "demo"]);
    let again = json(place.path(), &["app", "schema", "--dir", "demo"]);

    let kinds: Vec<&str> = list.as_array().unwrap().iter().map(|kind| kind["kind"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"metadata") && kinds.contains(&"helm_chart"), "{kinds:?}");
    let schema: Value = serde_json::from_slice(&one.stdout).unwrap();
    assert!(schema["properties"]["chart_name"].is_object(), "{schema}");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("there is no schema `helm_chrt`"), "{}", text(&unknown.stderr));
    std::fs::write(place.path().join("file"), "").unwrap();
    let into_a_file = freehold(place.path(), &["app", "schema", "--dir", "file"]);
    assert!(text(&into_a_file.stderr).contains("`file` is not a directory; pass the directory"), "{into_a_file:?}");
    assert_eq!(written["written"].as_array().unwrap().len(), kinds.len() + 1);
    assert_eq!(again, written);
    let config = std::fs::read_to_string(place.path().join("demo/.taplo.toml")).unwrap();
    let paths = config.lines().filter_map(|line| line.strip_prefix("path = ")).map(|path| path.trim_matches('"'));
    let paths: Vec<&str> = paths.collect();
    assert!(!paths.is_empty() && paths.iter().all(|path| place.path().join("demo").join(path).is_file()), "{paths:?}");
}

#[test]
fn a_file_of_the_users_own_is_replaced_only_with_force() {
    let commands: [(&[&str], &str); 2] = [
        (&["app", "schema", "--dir", "mine"], "mine/schemas/inputs.json"),
        (&["customer", "man", "--out", "mine"], "mine/freehold-customer-ran.1"),
    ];
    for (args, path) in commands {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(path);
        let parent = path.parent().unwrap();
        std::fs::create_dir_all(parent).unwrap();
        std::fs::write(&path, "mine\n").unwrap();

        let refused = freehold(place.path(), args);

        let stderr = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(4), "{stderr}");
        assert!(stderr.contains("exists and was left as it is; name another file, or pass `--force`"), "{stderr}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine\n");
        assert_eq!(std::fs::read_dir(parent).unwrap().count(), 1, "nothing is half written");
        json(place.path(), &[args, &["--force"]].concat());
        assert_ne!(std::fs::read_to_string(&path).unwrap(), "mine\n");
    }
}

#[test]
fn an_editors_configuration_of_the_vendors_own_is_kept() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join(".taplo.toml"), "# mine\n").unwrap();

    let written = json(place.path(), &["app", "schema", "--dir", "."]);

    assert_eq!(written["kept"], "./.taplo.toml");
    assert_eq!(std::fs::read_to_string(place.path().join(".taplo.toml")).unwrap(), "# mine\n");
}

#[test]
fn an_app_with_schemas_beside_it_still_passes_check() {
    let place = tempfile::tempdir().unwrap();
    json(place.path(), &["app", "init", "demo"]);
    json(place.path(), &["app", "schema", "--dir", "demo"]);

    let checked = json(place.path(), &["app", "check", "demo"]);

    assert_eq!(files_of(&checked), ["components/naming.toml"], "{checked}");
}

#[test]
fn arguments_of_graph_and_diff_that_do_not_go_together_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let cases: [&[&str]; 6] = [
        &["app", "graph"],
        &["app", "graph", "x", "--version", "3"],
        &["app", "diff"],
        &["app", "diff", "1", "2"],
        &["app", "diff", "--app", "demo", "1"],
        &["app", "diff", "--app", "demo", "1", "2", "--offline"],
    ];

    for args in cases {
        let done = freehold(place.path(), args);

        assert_eq!(done.status.code(), Some(2), "{args:?}");
        assert!(text(&done.stderr).contains("Usage: freehold app"), "{args:?}: {}", text(&done.stderr));
    }
}

#[test]
fn with_json_a_sync_prints_every_mistake_of_the_config() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("broken/components")).unwrap();
    std::fs::write(place.path().join("broken/metadata.toml"), "version = \"v2\"\nversoin = \"v2\"\n").unwrap();
    std::fs::write(place.path().join("broken/components/web.toml"), "name = \"web\"\ntype = \"x\"\n").unwrap();

    let synced = freehold(place.path(), &["app", "sync", "broken", "--json"]);
    let checked = freehold(place.path(), &["app", "check", "broken", "--json"]);

    let error: Value =
        serde_json::from_slice(&synced.stderr).unwrap_or_else(|e| panic!("{e}: {}", text(&synced.stderr)));
    let found = error["error"]["found"].as_array().unwrap();
    assert_eq!(synced.status.code(), Some(2));
    assert!(found.iter().any(|one| one["file"] == "components/web.toml" && one["line"] == 2), "{error}");
    assert!(found.iter().all(|one| one["message"].is_string() && one["severity"].is_string()), "{error}");
    let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
    let errors = |all: &Value| all.as_array().unwrap().iter().filter(|one| one["severity"] == "error").count();
    assert_eq!(errors(&error["error"]["found"]), errors(&checked["found"]));
}

#[test]
fn a_warning_fails_a_check_that_denies_warnings_under_every_name_of_the_command() {
    let place = tempfile::tempdir().unwrap();
    json(place.path(), &["app", "init", "web-shop"]);

    for name in ["check", "lint", "validate"] {
        let passed = freehold(place.path(), &["app", name, "web-shop"]);
        let denied = freehold(place.path(), &["app", name, "web-shop", "--deny-warnings"]);

        let error = text(&denied.stderr);
        assert_eq!((passed.status.code(), denied.status.code()), (Some(0), Some(2)), "{name}: {error}");
        assert!(error.contains("the app config in `web-shop` has 1 warning"), "{error}");
    }
}
