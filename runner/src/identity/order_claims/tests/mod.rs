//! A vendor that lies in each field of an order: the runner refuses the lie, or the row says why it does no harm.

mod fields;
mod order_rows;
mod policies;
mod probes;
mod reasons;
mod roles;
mod sandbox;
mod work_rows;

use std::collections::BTreeSet;

use fields::all_fields;
use freehold_protocol::contract::{OrderTerms, PackedTerms};
use freehold_protocol::order::Artifact;
use freehold_protocol::{Timestamp, canonical};
use reasons::Reason;
use serde_json::{Value, json};

use super::*;
use crate::config::{Config, Role};
use crate::identity::consent;
use crate::testing::{config, release_key, root, sealed, upgrade_to};
use crate::wire::verify::{Arrival, Trust};

const NOW: Timestamp = Timestamp::from_millis(2_000_000);

/// What becomes of a lie.
#[derive(Clone, Copy)]
enum Verdict {
    /// The order is refused with this part of a reason.
    Refused(&'static str),
    /// The order is followed, and this is why it does no harm.
    Harmless(&'static Reason),
}
use Verdict::{Harmless, Refused};

/// A type, one of its fields, a false value, and what becomes of it.
type Row = (&'static str, &'static str, Value, Verdict);

fn artifact() -> Artifact {
    let digest = Digest::of(b"artifact");
    Artifact { digest, media_type: "m".into(), manifests: Vec::new(), blobs: Vec::new(), provenance: None }
}

fn action() -> Value {
    json!({
        "kind": "action",
        "action": "check",
        "steps": [{ "name": "say", "command": "echo hello", "inline_contents": "", "env_vars": {} }],
        "directories": [{ "steps": [0], "component": "action-check-step-1", "artifact": artifact() }],
        "env_vars": { "LEVEL": "info" },
        "idempotent": false,
    })
}

fn terms(steps: Option<Digest>) -> Value {
    let reads = json!([{ "to": "component", "name": "web" }, { "to": "component", "name": "cache" }]);
    let mut check = json!({ "name": "check", "role": "maintenance", "reads": reads });
    if let Some(steps) = steps {
        check["steps"] = json!(steps);
    }
    let roles = ["maintenance", "custom-support"].map(|role| json!({ "role": role, "on": true, "policies": [] }));
    json!({
        "format": 1, "app": "demo", "roles": roles, "hosts": ["a.example"], "tool_image": "tools",
        "customer_inputs": { "token": { "sensitive": true } },
        "secrets": { "license": { "kubernetes": { "namespace": "shop", "name": "license" } } },
        "actions": [check],
        "probes": [{ "component": "web", "command": ["check", "{{ .nuon.install.id }}"] }],
    })
}

fn order_terms(terms: &Value) -> Value {
    let document = Some(PackedTerms::of(&canonical::to_vec(terms).unwrap()).unwrap());
    serde_json::to_value(OrderTerms { digest: canonical::digest(terms).unwrap(), change: None, document }).unwrap()
}

fn steps_of(work: &Value) -> Digest {
    let Work::Action(work) = serde_json::from_value(work.clone()).unwrap() else { panic!("{work}") };
    work.executed().digest().unwrap()
}

/// Returns the sensitive outputs of a part, as an order names them.
fn kept_of(part: &str, var_name: &str, sandbox: bool) -> Value {
    json!({ "part": part, "sandbox": sandbox, "var_name": var_name, "serial": 1, "job": format!("job_{:020x}", 3),
        "fence": { "dispatch": 1, "receive": 1 }, "digests": {} })
}

/// Returns the order of an honest vendor for `work`.
fn honest(work: Value) -> Value {
    let base = crate::testing::order(1, 7);
    let work: Work = serde_json::from_value(work).unwrap();
    let input = json!({ "name": "token", "type": "string", "sensitive": true, "customer": true });
    // The terms have the mode `maintenance` for the action and for the command of the probe, and an upgrade has no
    // role.
    let is_of_mode = matches!(work, Work::Action(_) | Work::Health(_) | Work::Upgrade(_));
    let mut order = Order {
        group: work.changes().parse().unwrap(),
        redelivery: work.redelivery(),
        role: (!is_of_mode).then(|| "custom-support".parse().unwrap()),
        tool_image: serde_json::from_value(json!({ "component": "tools", "artifact": artifact() })).unwrap(),
        sensitive_inputs: vec![serde_json::from_value(input).unwrap()],
        secrets: vec![serde_json::from_value(json!({ "name": "license" })).unwrap()],
        kept_outputs: vec![serde_json::from_value(kept_of("web", "web_x", false)).unwrap()],
        terms: serde_json::from_value(order_terms(&terms(Some(steps_of(&action()))))).unwrap(),
        work,
        ..base
    };
    if matches!(order.work, Work::Upgrade(_)) {
        order.secrets.clear();
        order.sensitive_inputs.clear();
    }
    serde_json::to_value(order).unwrap()
}

/// Returns the work of a kind, with all that a lie needs to be a change.
fn work_of(kind: &str) -> Value {
    let of = |kind: &str, component: &str, more: Value| {
        let mut work = json!({ "kind": kind, "component": component, "artifact": artifact() });
        work.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        work
    };
    let part = |kind: &str, more: Value| of(kind, "web", more);
    let terraform = json!({ "terraform_version": "1.11.4" });
    match kind {
        "Order" | "Action" | "StepDirectory" => action(),
        "ContainerImage" => part("container_image", json!({})),
        "TerraformModule" => part("terraform_module", terraform),
        "Sandbox" => of("sandbox", "sandbox", terraform),
        "Pulumi" => part("pulumi", json!({})),
        "PulumiSandbox" => of("pulumi_sandbox", "sandbox", json!({})),
        "CloudformationStack" => part("cloudformation_stack", json!({ "stack_name": "acme--web" })),
        "HelmChart" => part("helm_chart", json!({ "cluster": "sandbox", "release": "web", "namespace": "shop" })),
        "KubernetesManifest" => part("kubernetes_manifest", json!({ "cluster": "sandbox", "namespace": "shop" })),
        "KubernetesJob" => part("kubernetes_job", json!({ "cluster": "sandbox", "image": "artifact" })),
        "CopySecrets" => {
            let copies = json!([{ "secret": "license", "namespace": "shop", "name": "license" }]);
            json!({ "kind": "copy_secrets", "cluster": "sandbox", "copies": copies })
        }
        "Remove" => json!({ "kind": "remove", "what": work_of("ContainerImage") }),
        "DetectDrift" => json!({ "kind": "detect_drift", "what": work_of("TerraformModule") }),
        "Preflight" => json!({ "kind": "preflight" }),
        "Leftovers" => json!({ "kind": "leftovers" }),
        "Health" => {
            let probes = json!([{ "name": "up", "type": "exec", "command": ["check", "{{ .nuon.install.id }}"] }]);
            json!({ "kind": "health", "component": "web", "asks": { "of": "nothing" }, "probes": probes, "hold_secs": 0, "limit_secs": 9 })
        }
        "Upgrade" => serde_json::to_value(Work::Upgrade(upgrade_to(&Digest::of(b"new"), 7))).unwrap(),
        other => panic!("no work is known for `{other}`"),
    }
}

/// Returns the lies: a kind of work or another type, one of its fields, the value that a dishonest vendor gives it, and
/// what becomes of it.
fn lies() -> Vec<Row> {
    [order_rows::rows(), work_rows::rows()].concat()
}

/// Returns why the runner refuses `order`, by what it looks at before a job gets a role.
fn refusal(order: &Value) -> Option<String> {
    let mut config: Config = config("/state", Role::Install);
    config.accepted_contract = Some(canonical::digest(&terms(Some(steps_of(&action())))).unwrap());
    config.tenant_key = root().verifying_key().into();
    config.release_key = Some(release_key(7).verifying_key().into());
    let trust = Trust::open(&config).unwrap();
    let order: Order = serde_json::from_value(order.clone()).unwrap();
    if let Err(refusal) = trust.verify(&sealed(&order), Arrival { receive: 1, sent_at: NOW, now: NOW }) {
        return Some(refusal.detail);
    }
    let outcome = consent::refusal(&config, &order).or_else(|| consent::unnamed_value(&config, &order));
    match outcome.or_else(|| beyond_terms(&order))? {
        Outcome::Blocked { reason, .. } => Some(reason),
        other => panic!("{other:?}"),
    }
}

fn order_with(of: &str, field: &str, lie: &Value) -> Value {
    let mut order = honest(work_of(of));
    match of {
        "Order" => order[field] = lie.clone(),
        "StepDirectory" => order["work"]["directories"] = lie.clone(),
        _ => order["work"][field] = lie.clone(),
    }
    order
}

#[test]
fn a_lie_in_each_field_of_an_order_is_refused_or_does_no_harm() {
    for (of, field, lie, verdict) in lies() {
        let order = order_with(of, field, &lie);
        assert_ne!(order, honest(work_of(of)), "{of}.{field} is not a lie");

        match (refusal(&order), verdict) {
            (Some(reason), Refused(part)) => assert!(reason.contains(part), "{of}.{field}: {reason}"),
            (None, Harmless(_)) => {}
            (Some(reason), Harmless(Reason { why, shown_by })) => {
                panic!("{of}.{field} is refused ({reason}), though {why}; see {shown_by}")
            }
            (None, Refused(part)) => panic!("{of}.{field}: `{lie}` is followed, and `{part}` was expected"),
        }
    }
}

#[test]
fn each_field_has_a_row_and_the_order_of_an_honest_vendor_is_followed() {
    let rows: BTreeSet<(&str, &str)> = lies().iter().map(|(of, field, _, _)| (*of, *field)).collect();

    for (of, fields) in all_fields() {
        assert_eq!(refusal(&honest(work_of(of))), None, "{of}");
        for field in fields {
            assert!(rows.contains(&(of, field)), "no row says what becomes of a lie in {of}.{field}");
        }
    }
}

#[test]
fn terms_of_the_version_before_permit_all_steps_of_their_actions() {
    let mut order = honest(action());
    order["terms"] = order_terms(&terms(None));
    let order: Order = serde_json::from_value(order).unwrap();

    assert_eq!(beyond_terms(&order), None);
}

#[test]
fn without_the_document_of_its_terms_an_order_runs_no_action_no_named_role_and_no_image() {
    let mut order: Order = serde_json::from_value(honest(action())).unwrap();
    order.role = Some("custom-support".parse().unwrap());
    order.terms.as_mut().unwrap().document = None;
    let mut reasons = Vec::new();
    for _ in 0..3 {
        let Some(Outcome::Blocked { reason, .. }) = beyond_terms(&order) else { panic!("{order:?}") };
        reasons.push(reason);
        if order.role.take().is_none() {
            order.tool_image = None;
        }
    }

    assert!(reasons[0].contains("runs under role `custom-support`, and does not contain its contract"), "{reasons:?}");
    assert!(reasons[1].contains("runs in the image of component `tools`, and does not"), "{reasons:?}");
    assert!(reasons[2].contains("runs action `check`, and does not contain its contract"), "{reasons:?}");
}
