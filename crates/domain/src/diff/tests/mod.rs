//! What differs between two versions, shown with versions that differ in one thing.

use freehold_protocol::Digest;
use freehold_protocol::app_version::AppVersion;
use serde_json::{Value, json};

use super::*;

mod deploys;
mod rights;

fn version(document: Value) -> AppVersion {
    let mut all = json!({ "format": 1, "app": "demo" });
    all.as_object_mut().unwrap().extend(document.as_object().unwrap().clone());
    serde_json::from_value(all).unwrap()
}

fn module(name: &str, vars: &Value) -> Value {
    json!({
        "name": name, "deploy_timeout_secs": 600, "source": { "from": "version" },
        "spec": { "kind": "terraform_module", "terraform_version": "1.11.3", "vars": vars },
    })
}

/// Prints changes as a person might.
fn shown(changes: &[Change]) -> String {
    let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "-".into());
    changes.iter().map(|c| format!("{}: {} -> {}\n", c.key, side(&c.from), side(&c.to))).collect()
}

fn of_items(items: &Items) -> String {
    let mut lines: Vec<String> = items.added.iter().map(|one| format!("+ {} [{}]\n", one.name, one.what)).collect();
    lines.extend(items.removed.iter().map(|one| format!("- {} [{}]\n", one.name, one.what)));
    lines.extend(items.changed.iter().map(|one| format!("~ {} [{}]\n{}", one.name, one.what, shown(&one.changes))));
    lines.concat()
}

#[test]
fn a_version_does_not_differ_from_itself() {
    let version = version(json!({
        "components": [module("db", &json!({ "size": 3 }))],
        "inputs": [{ "name": "a", "type": "string", "required": true }],
        "secrets": [{ "name": "s", "required": true }],
        "roles": [{ "mode": "provision", "policies": [{ "managed": "ReadOnlyAccess" }] }],
    }));

    let diff = diff(&version, &version);

    assert!(diff.is_empty(), "{diff:?}");
}

#[test]
fn components_name_the_keys_that_differ_with_short_values() {
    let from = version(json!({ "components": [
        module("db", &json!({ "size": "3", "old": true, "nested": { "a": [1, 2] } })),
        module("gone", &json!({})),
    ] }));
    let to = version(json!({ "components": [
        module("db", &json!({ "size": 3, "new": "x".repeat(100), "nested": { "a": [2, 3] } })),
        module("web", &json!({})),
    ] }));

    let diff = diff(&from, &to);

    insta::assert_snapshot!(of_items(&diff.components), @r#"
    + web [terraform_module]
    - gone [terraform_module]
    ~ db [terraform_module]
    vars.nested.a: [1] -> [3]
    vars.new: - -> "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
    vars.old: true -> -
    vars.size: "3" -> 3
    "#);
}

#[test]
fn default_labels_are_compared_by_key_and_deploy_nothing() {
    let labelled = |env: &str| version(json!({ "default_labels": { "env": env, "team": "shop" } }));

    let diff = diff(&labelled("test"), &labelled("production"));

    assert_eq!(of_items(&diff.settings), "~ default labels []\nenv: \"test\" -> \"production\"\n");
    assert!(diff.deploy.is_empty());
}

#[test]
fn a_moved_branch_and_changed_files_are_shown_as_sources() {
    let git = |commit: &str, files: &str| {
        let mut moved = module("moved", &json!({}));
        moved["source"] = json!({ "from": "git", "url": "https://git.example/x", "commit": commit, "branch": "main" });
        let mut packed = module("packed", &json!({}));
        packed["source"] = json!({ "from": "directory", "digest": Digest::of(files.as_bytes()) });
        version(json!({ "components": [moved, packed] }))
    };

    let resolved = diff(&git(&"a".repeat(40), "1"), &git(&"b".repeat(40), "2"));
    let offline = diff(&git(&"a".repeat(40), "1"), &git("", "1"));

    insta::assert_snapshot!(of_items(&resolved.components), @r#"
    ~ moved [terraform_module]
    source.commit: "aaaaaaaaaaaa (main)" -> "bbbbbbbbbbbb (main)"
    ~ packed [terraform_module]
    source.files: "6b86b273ff34" -> "d4735e3a265e"
    "#);
    insta::assert_snapshot!(of_items(&offline.components), @r#"
    ~ moved [terraform_module]
    source.commit: "aaaaaaaaaaaa (main)" -> "(main)"
    "#);
    assert_eq!(resolved.deploy.len(), 2);
    assert_eq!(offline.deploy.len(), 1);
}

#[test]
fn long_texts_are_shown_by_the_first_line_that_differs() {
    let action = |script: &str, extra: &str| {
        let step = json!({ "name": "show", "inline_contents": script });
        let triggers = json!([{ "on": "manual" }, { "on": "cron", "schedule": extra }]);
        version(json!({ "actions": [{ "name": "check", "timeout_secs": 60, "steps": [step], "triggers": triggers }] }))
    };
    let from = action("#!/bin/sh\necho one\n", "0 * * * *");
    let to = action("#!/bin/sh\necho two\necho three\n", "5 * * * *");

    let diff = diff(&from, &to);

    insta::assert_snapshot!(of_items(&diff.actions), @r#"
    ~ check []
    steps.show.inline_contents: line 2: "echo one" -> line 2: "echo two"
    triggers: ["on schedule `0 * * * *`"] -> ["on schedule `5 * * * *`"]
    "#);
}

#[test]
fn a_changed_index_is_shown_with_its_trigger() {
    let after_deploys = json!({ "on": "post_deploy_all_components" });
    let action = |indexes: Value| {
        version(json!({ "actions": [{
            "name": "check", "timeout_secs": 60, "steps": [], "triggers": [after_deploys], "indexes": indexes,
        }] }))
    };

    let diff = diff(&action(json!([])), &action(json!([{ "trigger": after_deploys, "index": 2 }])));

    insta::assert_snapshot!(of_items(&diff.actions), @r#"
    ~ check []
    triggers: ["after every deploy"] -> ["after every deploy, index 2"]
    "#);
}

#[test]
fn a_changed_sensitive_default_is_reported_without_its_value() {
    let input = |default: Value, sensitive: bool| {
        version(
            json!({ "inputs": [{ "name": "token", "type": "string", "sensitive": sensitive, "default": default }] }),
        )
    };
    let cases = [
        (input(json!("hunter2"), true), input(json!("hunter3"), true)),
        (input(json!("hunter2"), true), input(json!("hunter3"), false)),
        (input(json!({ "k": "hunter2" }), false), input(json!({ "k": "https://hunter3/" }), true)),
    ];

    for (from, to) in cases {
        let diff = diff(&from, &to);

        let json = serde_json::to_string(&diff).unwrap();
        assert!(!json.contains("hunter2") && !json.contains(&Digest::of(b"\"hunter2\"").hex()[..8]), "{json}");
        assert!(shown(&diff.inputs.changed[0].changes).contains("default: (sensitive) -> (sensitive)"), "{json}");
    }
}

#[test]
fn questions_without_an_answer_are_named_with_the_reason() {
    let from = version(json!({
        "inputs": [
            { "name": "asked", "type": "string", "required": true },
            { "name": "defaulted", "type": "string", "required": true, "default": "x" },
            { "name": "moved", "type": "string", "required": true },
            { "name": "optional", "type": "string" },
            { "name": "typed", "type": "string", "required": true },
        ],
        "secrets": [{ "name": "drawn", "auto_generate": true }, { "name": "had", "required": true }],
    }));
    let to = version(json!({
        "inputs": [
            { "name": "asked", "type": "string", "required": true },
            { "name": "defaulted", "type": "string", "required": true },
            { "name": "fine", "type": "string", "required": true, "default": "x" },
            { "name": "moved", "type": "string", "required": true, "customer": true },
            { "name": "new", "type": "string", "required": true },
            { "name": "optional", "type": "string", "required": true },
            { "name": "typed", "type": "number", "required": true },
        ],
        "secrets": [
            { "name": "drawn", "required": true }, { "name": "had", "required": true },
            { "name": "key", "required": true },
        ],
    }));

    let diff = diff(&from, &to);

    let lines: Vec<String> = diff.answers.iter().map(|one| format!("{}: {}", one.name, one.reason())).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    defaulted: no longer has a default
    moved: answered by the vendor until now
    new: new and required
    optional: required now
    typed: has a different type; the answer may not fit
    drawn: no longer has a default
    key: new and required
    ");
}

#[test]
fn egress_is_the_hosts_that_the_customers_side_contacts() {
    let from = version(json!({ "components": [module("api", &json!({ "url": "https://old.example/x" }))] }));
    let manifest =
        "spec:\n  containers:\n    - image: ghcr.io/acme/api:1\n    - image: redis:7\n    - image: {{ .nuon.x }}\n";
    let mut chart = module("chart", &json!({}));
    chart["source"] = json!({ "from": "git", "url": "https://vendor-only.example/x", "commit": "a".repeat(40) });
    let to = version(json!({
        "components": [
            module("api", &json!({ "list": [
                "https://user:p*ss@API.example:8443/x?y",
                "http://localhost:80, http://127.0.0.1, file:///etc/x, s3://bucket/key",
                "https://{{.nuon.inputs.inputs.domain}}/x and wss://${HOST}:1/",
            ] })),
            chart,
            {
                "name": "k8s", "deploy_timeout_secs": 60, "source": { "from": "version" },
                "spec": { "kind": "kubernetes_manifest", "namespace": "x", "manifest": manifest },
            },
        ],
        "actions": [{
            "name": "ping", "timeout_secs": 60,
            "steps": [{ "name": "go", "command": "curl -s 'https://ping.example/'" }],
            "step_repos": [{ "step": 0, "source": {
                "from": "git", "url": "git@clone.example:a/b.git", "commit": "a".repeat(40),
            } }],
        }],
        "stack": {
            "platform": "aws-cloudformation", "name": "x", "description": "",
            "custom_nested_stacks": [{ "name": "dns", "template_url": "https://s3.amazonaws.com/b/t.yaml" }],
        },
        "inputs": [
            { "name": "hook", "type": "string", "default": "https://hook.example" },
            { "name": "secret", "type": "string", "sensitive": true, "default": "https://unseen.example" },
        ],
    }));

    let diff = diff(&from, &to);

    let line = |one: &Egress| format!("{}  ({})", one.host, one.places.join("; "));
    insta::assert_snapshot!(diff.egress.added.iter().map(line).collect::<Vec<_>>().join("\n"), @r"
    ${HOST}:1  (component `api` vars.list.2)
    api.example:8443  (component `api` vars.list.0)
    docker.io  (component `k8s` image)
    ghcr.io  (component `k8s` image)
    hook.example  (default of input `hook`)
    ping.example  (action `ping` go.command)
    s3://bucket  (component `api` vars.list.1)
    {{ .nuon.inputs.inputs.domain }}  (component `api` vars.list.2)
    ");
    assert_eq!(diff.egress.removed[0].host, "old.example");
}

#[test]
fn settings_texts_policies_and_runbooks_are_compared_too() {
    let from = version(json!({
        "display_name": "Demo",
        "runner": { "runner_type": "aws" },
        "policies": [{ "type": "sandbox", "engine": "opa", "contents": "a" }],
        "runbooks": [{ "name": "fix", "steps": [{ "does": { "type": "action", "action": "a" } }] }],
        "operation_roles": [{ "principal": "component:*", "operation": "deploy", "role": "x" }],
    }));
    let to = version(json!({
        "display_name": "The demo",
        "runner": { "runner_type": "aws", "instance_type": "t3.small" },
        "policies": [{ "type": "sandbox", "engine": "opa", "contents": "b" }],
        "runbooks": [{ "name": "fix", "steps": [{ "does": { "type": "action", "action": "b" } }] }],
        "post_deploy_runbooks": ["fix"],
        "operation_roles": [{ "principal": "component:*", "operation": "deploy", "role": "y" }],
        "sandbox": { "tool": { "tool": "terraform", "version": "1.11.3" }, "source": { "from": "version" } },
    }));

    let diff = diff(&from, &to);

    let all = [&diff.settings, &diff.policies, &diff.runbooks].map(of_items).concat() + &shown(&diff.texts);
    insta::assert_snapshot!(all, @r#"
    + post-deploy runbooks []
    + sandbox []
    ~ operation roles []
    rules: ["component:* deploy as x"] -> ["component:* deploy as y"]
    ~ runner []
    instance_type: - -> "t3.small"
    ~ sandbox [sandbox]
    contents: "a" -> "b"
    ~ fix []
    steps: [{"does":{"type":"action","action":"a"}}] -> [{"does":{"type":"action","action":"b"}}]
    display_name: "Demo" -> "The demo"
    "#);
}
