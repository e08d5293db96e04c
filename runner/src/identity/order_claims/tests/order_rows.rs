//! The lies in the fields of an order itself, and of an action.

use freehold_protocol::policy::OrderPolicy;
use serde_json::{Value, json};

use super::reasons::{
    APPROVAL, APPROVED, ASKED_BY, ASKED_WHY, AT_ONCE, CONTEXT, DEMANDS, DIRECTORY, DISPATCH, ISSUED, LATE, NAMES,
    NOOPS, RECEIPT, RUNNER, SEALED, SERIAL, TIME,
};
use super::*;

/// Returns the lies in the fields of an order, of an action, and of the directories of its steps.
pub(super) fn rows() -> Vec<Row> {
    let other = json!({ "name": "say", "command": "curl evil", "inline_contents": "", "env_vars": {} });
    let directory =
        |component: &str, steps: &[u32]| json!([{ "steps": steps, "component": component, "artifact": artifact() }]);
    let secret = |name: &str| json!([{ "name": name }]);
    let input = json!([{ "name": "password", "type": "string", "sensitive": true, "customer": true }]);
    let kept = json!([kept_of("db", "db_x", false)]);
    let (as_sandbox, shadows) = (json!([kept_of("web", "", true)]), json!([kept_of("web", "cache", false)]));
    let twice = json!([directory("action-check-step-1", &[1])[0], directory("action-check-step-1", &[0])[0]]);
    let wider = {
        let mut wider = terms(None);
        wider["hosts"] = json!(["a.example", "b.example"]);
        wider
    };
    let part =
        json!({ "kind": "terraform_module", "component": "web", "artifact": artifact(), "terraform_version": "1" });
    vec![
        ("Order", "tenant", json!("evil"), Refused("for install `globex-prod` of tenant `evil`")),
        ("Order", "install", json!("other"), Refused("for install `other` of tenant `acme`")),
        ("Order", "workflow", json!(format!("wf_{:020x}", 9)), Harmless(&NAMES)),
        ("Order", "job", json!(format!("job_{:020x}", 9)), Harmless(&NAMES)),
        ("Order", "dispatch", json!(9), Harmless(&DISPATCH)),
        (
            "Order",
            "group",
            json!("action:other"),
            Refused("has group `action:other`, and its work changes `action:check`"),
        ),
        ("Order", "serial", json!(99), Harmless(&SERIAL)),
        ("Order", "issued_at", json!(1_999_999), Harmless(&ISSUED)),
        ("Order", "not_after", json!(99_000_000), Harmless(&TIME)),
        ("Order", "not_after", json!(1_999_999), Harmless(&LATE)),
        ("Order", "start_by", json!(99_000_000), Harmless(&TIME)),
        ("Order", "timeout_secs", json!(36_000), Harmless(&TIME)),
        ("Order", "mode", json!("provision"), Refused("runs action `check` under role `provision`, and its contract")),
        (
            "Order",
            "role",
            json!("custom-admin"),
            Refused("runs under role `custom-admin`, which is not in its contract"),
        ),
        ("Order", "role", json!("custom-support"), Refused("runs action `check` under role `custom-support`, and")),
        ("Order", "asked_by", json!({ "by": "schedule" }), Harmless(&ASKED_BY)),
        ("Order", "asker", json!({ "by": "pipeline", "subject": "ci" }), Harmless(&ASKED_BY)),
        ("Order", "asked_why", json!("resumed"), Harmless(&ASKED_WHY)),
        ("Order", "now", json!(true), Harmless(&AT_ONCE)),
        ("Order", "approval", json!("prompt"), Harmless(&APPROVAL)),
        (
            "Order",
            "approved",
            json!({ "plan": Digest::of(b"plan"), "at": 1, "until": 2, "policies": Digest::of(b"policies") }),
            Harmless(&APPROVED),
        ),
        ("Order", "must_understand", json!(["approvals"]), Harmless(&DEMANDS)),
        ("Order", "runner", json!("0".repeat(32)), Harmless(&RUNNER)),
        ("Order", "redelivery", json!("resume"), Refused("states that its work may start twice")),
        ("Order", "skip_noops", json!(true), Harmless(&NOOPS)),
        ("Order", "work", part, Refused("has group `action:check`, and its work changes `component:web`")),
        ("Order", "context", json!({ "nuon": { "x": 1 } }), Harmless(&CONTEXT)),
        ("Order", "sensitive_inputs", input, Refused("reads the customer's sensitive input `password`")),
        ("Order", "sealed_inputs", json!({ "token": Digest::of(b"x") }), Harmless(&SEALED)),
        ("Order", "secrets", secret("other"), Refused("reads secret `other`, which is not in the contract")),
        (
            "Order",
            "kept_outputs",
            kept,
            Refused("gives action `check` sensitive outputs of `db`, which its contract does not let it read"),
        ),
        ("Order", "kept_outputs", as_sandbox, Refused("gives action `check` sensitive outputs of `web`")),
        ("Order", "kept_outputs", shadows, Refused("gives action `check` sensitive outputs of `web`")),
        (
            "Order",
            "tool_image",
            json!({ "component": "other", "artifact": artifact() }),
            Refused("runs in the image of component `other`, and its contract has `tools`"),
        ),
        (
            "Order",
            "policies",
            json!([OrderPolicy::new("p", PolicyEngine::Opa, "package nuon").unwrap()]),
            Refused("has policy `p`, which its contract does not have"),
        ),
        ("Order", "receipt", json!({ "payloadType": "", "payload": "", "signatures": [] }), Harmless(&RECEIPT)),
        ("Order", "terms", Value::Null, Refused("does not name the contract")),
        ("Order", "terms", order_terms(&wider), Refused("does not contain the difference")),
        (
            "Order",
            "terms",
            json!({ "digest": canonical::digest(&terms(Some(steps_of(&action())))).unwrap() }),
            Refused("does not contain the contract"),
        ),
        ("Action", "action", json!("other"), Refused("runs action `other`, which is not in its contract")),
        ("Action", "steps", json!([other]), Refused("executes other steps of action `check`")),
        ("Action", "directories", json!([]), Refused("executes other steps of action `check`")),
        ("Action", "directories", twice, Refused("directory `action-check-step-1` twice")),
        ("Action", "env_vars", json!({ "LEVEL": "debug" }), Refused("executes other steps of action `check`")),
        ("Action", "idempotent", json!(true), Refused("executes other steps of action `check`")),
        ("Action", "cluster", json!("sandbox"), Refused("gives action `check` access to a cluster")),
        ("Action", "image", json!("evil"), Refused("runs action `check` in image `evil`, and its contract has none")),
        ("StepDirectory", "steps", directory("action-check-step-1", &[]), Refused("executes other steps")),
        ("StepDirectory", "component", directory("action-check-step-2", &[0]), Refused("executes other steps")),
        (
            "StepDirectory",
            "artifact",
            {
                let mut other = directory("action-check-step-1", &[0]);
                other[0]["artifact"]["digest"] = json!(Digest::of(b"other"));
                other
            },
            Harmless(&DIRECTORY),
        ),
    ]
}
