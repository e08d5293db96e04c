//! `freehold policy test` with the real command: policies of a file, a folder and an app config, and each exit code.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

const NO_EIP: &str = "package nuon\n\ndeny contains msg if {\n  some r in input.plan.resource_changes\n  r.type == \"aws_eip\"\n  \"delete\" in r.change.actions\n  msg := sprintf(\"%s must stay\", [r.address])\n}\n\nwarn contains \"be careful\"\n";

fn freehold(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freehold"));
    command.current_dir(directory).args(["policy", "test"]).args(arguments).output().unwrap()
}

/// Returns the exit code, and what the command printed.
fn code_and_stdout(output: &Output) -> (Option<i32>, String) {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    (output.status.code(), format!("{out}{err}"))
}

fn plan(action: &str) -> String {
    let change = json!({ "actions": [action], "before": {}, "after": {} });
    json!({ "format_version": "1.2", "resource_changes": [{ "address": "aws_eip.web", "type": "aws_eip", "change": change }] })
        .to_string()
}

/// Returns a directory with policies and plans.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("policies/no-eip.rego", NO_EIP);
    write("bad/bad.rego", "package nuon\n\ndeny contains {\n");
    write("deleted.json", &plan("delete"));
    write("kept.json", &plan("no-op"));
    write(
        "endless.rego",
        "package nuon\ndeny contains \"x\" if {\n  some a in numbers.range(1, 100000)\n  some b in numbers.range(1, 100000)\n  some c in numbers.range(1, 100000)\n  a + b + c < 0\n}\n",
    );
    write(
        "service.json",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"type":"LoadBalancer"}}"#,
    );
    directory
}

#[test]
fn a_policy_that_denies_ends_with_1_and_one_that_warns_with_0() {
    let directory = directory();

    let denied = code_and_stdout(&freehold(directory.path(), &["policies/no-eip.rego", "--plan", "deleted.json"]));
    let kept = code_and_stdout(&freehold(directory.path(), &["policies", "--plan", "kept.json"]));
    let read = code_and_stdout(&freehold(directory.path(), &["policies/no-eip.rego"]));

    assert_eq!(denied.0, Some(1), "{}", denied.1);
    assert!(denied.1.contains("deny") && denied.1.contains("aws_eip.web must stay"), "{}", denied.1);
    assert!(
        denied.1.contains("error: the policies deny the documents: 1 reason; a runner would stop the job"),
        "{}",
        denied.1
    );
    assert_eq!(kept.0, Some(0), "{}", kept.1);
    assert!(kept.1.contains("be careful") && kept.1.contains("1 policy evaluated on 1 document"), "{}", kept.1);
    assert_eq!((read.0, read.1.contains("can be read")), (Some(0), true), "{}", read.1);
}

#[test]
fn a_policy_that_cannot_be_read_or_has_no_end_ends_with_2_and_is_named() {
    let directory = directory();

    let unreadable = code_and_stdout(&freehold(directory.path(), &["bad", "--plan", "kept.json"]));
    let endless = code_and_stdout(&freehold(directory.path(), &["endless.rego", "--plan", "kept.json"]));
    let absent = code_and_stdout(&freehold(directory.path(), &["nothing.rego"]));
    let no_plan = code_and_stdout(&freehold(directory.path(), &["policies", "--plan", "service.json"]));

    assert_eq!(unreadable.0, Some(2), "{}", unreadable.1);
    assert!(unreadable.1.contains("bad/bad.rego:4:"), "{}", unreadable.1);
    assert_eq!(endless.0, Some(2), "{}", endless.1);
    assert!(endless.1.contains("endless.rego: the policy took longer than 10 s"), "{}", endless.1);
    assert_eq!((absent.0, absent.1.contains("there is no file `nothing.rego`")), (Some(2), true), "{}", absent.1);
    assert!(no_plan.1.contains("`service.json` is not a plan of Terraform in JSON"), "{}", no_plan.1);
}

#[test]
fn an_app_config_asks_the_policies_of_the_documents_type_and_json_has_each_answer() {
    let directory = directory();
    let app = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/demo");
    assert!(Command::new("cp").args(["-r", app, "demo"]).current_dir(directory.path()).status().unwrap().success());
    let policies = "[[policy]]\ntype = \"terraform_module\"\nengine = \"opa\"\ncontents = \"./policies/no-eip.rego\"\n\n\
                    [[policy]]\ntype = \"container_image\"\nengine = \"opa\"\nname = \"images\"\ncontents = \"package \
                    nuon\\ndeny contains \\\"x\\\"\"\n";
    std::fs::write(directory.path().join("demo/policies.toml"), policies).unwrap();
    std::fs::create_dir(directory.path().join("demo/policies")).unwrap();
    std::fs::write(directory.path().join("demo/policies/no-eip.rego"), NO_EIP).unwrap();

    let asked = freehold(directory.path(), &["demo", "--component", "settings", "--plan", "deleted.json", "--json"]);
    let built_in = freehold(directory.path(), &["policies", "--objects", "service.json", "--built-in", "--json"]);
    let unknown =
        code_and_stdout(&freehold(directory.path(), &["demo", "--component", "nothing", "--plan", "deleted.json"]));
    let mistyped =
        code_and_stdout(&freehold(directory.path(), &["demo", "--component", "setings", "--plan", "deleted.json"]));

    let found: Value = serde_json::from_slice(&asked.stdout).unwrap();
    assert_eq!((&found["denied"], &found["documents"]), (&json!(true), &json!(1)), "{found}");
    assert_eq!(found["policies"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!((&found["policies"][0]["policy"], asked.status.code()), (&json!("no-eip"), Some(1)), "{found}");
    let found: Value = serde_json::from_slice(&built_in.stdout).unwrap();
    assert_eq!(found["policies"].as_array().unwrap().len(), 5, "{found}");
    assert!(found.to_string().contains("Service web: the load balancer may have a public address"), "{found}");
    assert!(mistyped.1.contains("app `demo` has no component `setings`; did you mean `settings`?"), "{}", mistyped.1);
    assert_eq!(
        (unknown.0, unknown.1.contains("app `demo` has no component `nothing`; its components are `")),
        (Some(3), true),
        "{}",
        unknown.1
    );
}

#[test]
fn an_app_config_without_a_policy_for_the_document_says_so_and_ends_with_0() {
    let directory = directory();
    let app = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/demo");
    assert!(Command::new("cp").args(["-r", app, "demo"]).current_dir(directory.path()).status().unwrap().success());
    let arguments = ["demo", "--component", "settings", "--plan", "deleted.json", "--json"];

    let without = freehold(directory.path(), &arguments);
    let images = "[[policy]]\ntype = \"container_image\"\nengine = \"opa\"\nname = \"images\"\ncontents = \"package \
                  nuon\\ndeny contains \\\"x\\\"\"\n";
    std::fs::write(directory.path().join("demo/policies.toml"), images).unwrap();
    let other = freehold(directory.path(), &arguments);
    let answer = code_and_stdout(&freehold(directory.path(), &["demo", "--plan", "deleted.json"]));

    let note = |output: &Output| serde_json::from_slice::<Value>(&output.stdout).unwrap()["note"].clone();
    assert_eq!(note(&without), "no policy guards component `settings`: the app config has no policy in Rego");
    assert_eq!(
        note(&other),
        "no policy guards component `settings`: 1 policy in Rego of the app config is for other components or other \
         documents"
    );
    assert_eq!((answer.0, answer.1.contains("no policy guards this")), (Some(0), true), "{}", answer.1);
}

#[test]
fn a_policy_without_a_rule_that_is_evaluated_is_named() {
    let directory = directory();
    std::fs::write(directory.path().join("denies.rego"), "package nuon\n\ndenies contains \"x\"\n").unwrap();

    let asked = freehold(directory.path(), &["denies.rego", "--plan", "kept.json", "--json"]);
    let good = freehold(directory.path(), &["policies", "--plan", "kept.json", "--json"]);

    let warning = |output: &Output| {
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        found["policies"][0]["warning"].clone()
    };
    assert_eq!(
        (warning(&asked), asked.status.code()),
        (json!("it has no rule `deny` and no rule `warn`, and no other rule is evaluated"), Some(0))
    );
    assert_eq!(warning(&good), Value::Null);
}

#[test]
fn a_mode_or_an_account_that_cannot_be_is_refused() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("a.rego"), "package nuon\n").unwrap();

    for (option, value) in [("--mode", "deprovison"), ("--account", "abc"), ("--install", "Not A Name")] {
        let done =
            crate::support::freehold(place.path(), &["policy", "test", "a.rego", option, value]).output().unwrap();

        let error = crate::support::text(&done.stderr);
        assert!(done.status.code() == Some(2) && error.contains(&format!("'{value}'")), "{option}: {error}");
    }
}
