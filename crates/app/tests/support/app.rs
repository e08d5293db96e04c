//! The app that the tests sync, and variants of it.

use freehold_protocol::Digest;
use freehold_protocol::api::UpgradeRunnerRequest;
use freehold_protocol::app_version::{AppVersion, Trigger};
use freehold_protocol::order::SignedSums;
use serde_json::{Value, json};

/// The app's document: `info` depends on `storage`, `settings` on nothing.
pub(crate) fn document() -> AppVersion {
    serde_json::from_value(json!({
        "format": 1,
        "app": "demo",
        "inputs": [
            { "name": "days", "type": "number", "default": 7 },
            { "name": "greeting", "type": "string", "required": true },
        ],
        "components": [
            component("info", &["storage"], &[], json!({
                "kind": "cloudformation_stack", "stack_name": "info",
                "parameters": { "Bucket": "{{ .nuon.components.storage.outputs.name }}" },
            })),
            component("settings", &[], &["greeting"], json!({ "kind": "container_image" })),
            component("storage", &[], &["days"], json!({
                "kind": "terraform_module", "terraform_version": "1.9.0",
                "vars": { "days": "{{ .nuon.inputs.inputs.days }}" },
            })),
        ],
        "actions": [
            { "name": "check", "timeout_secs": 60, "triggers": [{ "on": "manual" }], "steps": [{ "name": "one" }] },
            { "name": "welcome", "timeout_secs": 60, "triggers": [{ "on": "post_provision" }], "steps": [] },
        ],
        "roles": [{
            "mode": "provision",
            "policies": [
                { "managed": "PowerUserAccess" },
                { "inline": { "name": "tables", "document": POLICY } },
            ],
        }],
    }))
    .unwrap()
}

/// The upgrade of a runner to a program of a release.
pub(crate) fn runner_release() -> UpgradeRunnerRequest {
    let program = Digest::of(b"runner");
    UpgradeRunnerRequest {
        version: "0.2.0".to_owned(),
        archive: Digest::of(b"archive"),
        archive_size: 7,
        release: SignedSums {
            sums: format!("{}  arm64/freehold-runner\n", program.hex()),
            signature: "c2lnbmF0dXJl".to_owned(),
        },
        program,
        health_secs: 60,
        now: false,
    }
}

/// A policy with a template in it.
pub(crate) const POLICY: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"dynamodb:*",
    "Resource":"arn:aws:dynamodb:*:{{ .nuon.install_stack.outputs.account_id }}:table/{{ .nuon.install.id }}-*"}]}"#;

fn component(name: &str, dependencies: &[&str], inputs: &[&str], spec: Value) -> Value {
    let references: Vec<_> = inputs.iter().map(|name| json!({ "to": "input", "name": name })).collect();
    json!({
        "name": name, "dependencies": dependencies, "references": references, "deploy_timeout_secs": 600,
        "source": { "from": "image", "reference": format!("example/{name}:1") }, "spec": spec,
    })
}

/// Returns the document with another source for `name`, so that it is to be built again.
pub(crate) fn with_source(name: &str, reference: &str) -> AppVersion {
    let mut document = document();
    for component in &mut document.components {
        if component.name.as_str() == name {
            component.source = freehold_protocol::order::Source::Image { reference: reference.to_owned() };
        }
    }
    document
}

/// Returns the document with another source for `storage`, which is asked whether it is healthy. With `gate`, `info` waits for
/// that.
pub(crate) fn with_health(gate: bool) -> AppVersion {
    let mut document = with_source("storage", "example/storage:2");
    let health = json!({
        "block_deploy": gate, "stabilization_window_secs": 30,
        "probes": [{ "type": "http", "url": "https://storage.example/up" }, { "type": "exec", "command": ["check"] }],
    });
    for component in document.components.iter_mut().filter(|component| component.name.as_str() == "storage") {
        component.settings.health = Some(serde_json::from_value(health.clone()).unwrap());
    }
    document
}

/// Returns the document of [`with_health`] in which `storage` requires the checks `ci` and `load`.
pub(crate) fn with_checks(gate: bool) -> AppVersion {
    let mut document = with_health(gate);
    for health in document.components.iter_mut().filter_map(|component| component.settings.health.as_mut()) {
        health.required_checks = ["ci", "load"].map(str::to_owned).into();
    }
    document
}

/// Returns the document in which `storage` is retried so often.
pub(crate) fn with_retries(retries: u32) -> AppVersion {
    let mut document = document();
    for component in document.components.iter_mut().filter(|component| component.name.as_str() == "storage") {
        component.settings.max_auto_retries = Some(retries);
    }
    document
}

/// Returns the document in which `check` runs every five minutes.
pub(crate) fn with_schedule() -> AppVersion {
    let mut document = document();
    document.actions[0].triggers.insert(Trigger::Cron { schedule: "*/5 * * * *".into() });
    document
}

/// Returns the document in which an install may leave `info` and `storage` out. `info` is on by default only if `info`
/// says so.
pub(crate) fn with_toggles(info: bool) -> AppVersion {
    let mut document = document();
    for component in &mut document.components {
        match component.name.as_str() {
            "info" => component.settings.toggle = Some(info),
            "storage" => component.settings.toggle = Some(true),
            _ => {}
        }
    }
    document
}

/// Returns the document with the runbook `fix`: it deploys `storage` alone, runs `check`, and deploys `info`.
pub(crate) fn with_runbook() -> AppVersion {
    let mut document = document();
    document.runbooks = serde_json::from_value(json!([{
        "name": "fix",
        "inputs": [{ "name": "ticket", "default": "none" }],
        "steps": [
            { "does": { "type": "component_deploy", "component": "storage" } },
            { "name": "look", "does": { "type": "action", "action": "check" } },
            { "does": { "type": "component_deploy", "component": "info" } },
        ],
    }]))
    .unwrap();
    document
}

/// Returns [`with_runbook`] with the runbooks `verify` and `confirm`, which run `check`, and with these runbooks after each
/// deploy.
pub(crate) fn with_post_deploy_runbooks(names: &[&str]) -> AppVersion {
    let mut document = with_runbook();
    for name in ["verify", "confirm"] {
        let runbook = json!({ "name": name, "steps": [{ "does": { "type": "action", "action": "check" } }] });
        document.runbooks.push(serde_json::from_value(runbook).unwrap());
    }
    document.post_deploy_runbooks = names.iter().map(|name| name.parse().unwrap()).collect();
    document
}
