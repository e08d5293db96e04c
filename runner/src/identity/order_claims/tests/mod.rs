//! A vendor that lies in each field of an order: the runner refuses the lie, or the row says why it does no harm.

mod fields;
mod policies;
mod probes;
mod roles;
mod sandbox;

use std::collections::BTreeSet;

use fields::all_fields;
use freehold_protocol::contract::{OrderTerms, PackedTerms};
use freehold_protocol::order::Artifact;
use freehold_protocol::policy::OrderPolicy;
use freehold_protocol::{Timestamp, canonical};
use serde_json::{Value, json};

use super::*;
use crate::config::{Config, Role};
use crate::identity::consent;
use crate::testing::{config, root, sealed};
use crate::wire::verify::{Arrival, Trust};

const NOW: Timestamp = Timestamp::from_millis(2_000_000);

/// What becomes of a lie.
enum Verdict {
    /// The order is refused with this part of a reason.
    Refused(&'static str),
    /// The order is followed, and this is why it does no harm.
    Harmless(&'static str),
}
use Verdict::{Harmless, Refused};

/// The reasons that hold for many fields.
const RELEASE: &str =
    "each release may change it without a new consent, and the job stays in its role, its hosts and its box";
const NAMES: &str =
    "a name for the vendor's own records: the runner decides nothing by it but whether it has had the order";
const TIME: &str = "it lengthens or shortens the time of a job that is agreed; SQS ends each lease after 12 hours";

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
    // The terms have the mode `maintenance` for the action and for the command of the probe.
    let is_of_mode = matches!(work, Work::Action(_) | Work::Health(_));
    let order = Order {
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
    serde_json::to_value(order).unwrap()
}

/// Returns the work of a type, with all that a lie needs to be a change.
fn work_of(of: &str) -> Value {
    let part = |kind: &str, more: Value| {
        let mut work = json!({ "kind": kind, "component": "web", "artifact": artifact() });
        work.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        work
    };
    match of {
        "Order" | "RunAction" | "StepDirectory" => action(),
        "SyncImage" => part("container_image", json!({})),
        "ApplyTerraform" => part("terraform_module", json!({ "terraform_version": "1.11.4" })),
        "RunPulumi" => part("pulumi", json!({})),
        "DeployStack" => part("cloudformation_stack", json!({ "stack_name": "acme--web" })),
        "InstallChart" => part("helm_chart", json!({ "cluster": "sandbox", "release": "web", "namespace": "shop" })),
        "ApplyManifest" => part("kubernetes_manifest", json!({ "cluster": "sandbox", "namespace": "shop" })),
        "RunKubernetesJob" => part("kubernetes_job", json!({ "cluster": "sandbox", "image": "artifact" })),
        "CopySecrets" => {
            let copies = json!([{ "secret": "license", "namespace": "shop", "name": "license" }]);
            json!({ "kind": "copy_secrets", "cluster": "sandbox", "copies": copies })
        }
        "RemovePart" => json!({ "kind": "remove", "what": part("container_image", json!({})) }),
        "CheckInstall" => json!({ "kind": "preflight" }),
        "FindLeftovers" => json!({ "kind": "leftovers" }),
        "CheckHealth" => {
            let probes = json!([{ "name": "up", "type": "exec", "command": ["check", "{{ .nuon.install.id }}"] }]);
            json!({ "kind": "health", "component": "web", "asks": { "of": "nothing" }, "probes": probes, "hold_secs": 0, "limit_secs": 9 })
        }
        other => panic!("no work is known for `{other}`"),
    }
}

/// The lies: a type, one of its fields, the value that a dishonest vendor gives it, and what becomes of it.
fn lies() -> Vec<(&'static str, &'static str, Value, Verdict)> {
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
    let mut rows = vec![
        ("Order", "tenant", json!("evil"), Refused("for install `globex-prod` of tenant `evil`")),
        ("Order", "install", json!("other"), Refused("for install `other` of tenant `acme`")),
        ("Order", "workflow", json!(format!("wf_{:020x}", 9)), Harmless(NAMES)),
        ("Order", "job", json!(format!("job_{:020x}", 9)), Harmless(NAMES)),
        ("Order", "dispatch", json!(9), Harmless("it asks for one more try, as an honest retry does")),
        (
            "Order",
            "group",
            json!("action:other"),
            Refused("has group `action:other`, and its work changes `action:check`"),
        ),
        ("Order", "serial", json!(99), Harmless("a later order of the group; the journal refuses an earlier one")),
        ("Order", "issued_at", json!(1_999_999), Harmless("a vendor that signs can also sign anew: it gains no time")),
        ("Order", "not_after", json!(99_000_000), Harmless(TIME)),
        ("Order", "not_after", json!(1_999_999), Harmless("a late order starts nothing (0073)")),
        ("Order", "start_by", json!(99_000_000), Harmless(TIME)),
        ("Order", "timeout_secs", json!(36_000), Harmless(TIME)),
        ("Order", "mode", json!("provision"), Refused("runs action `check` under role `provision`, and its contract")),
        (
            "Order",
            "role",
            json!("custom-admin"),
            Refused("runs under role `custom-admin`, which is not in its contract"),
        ),
        ("Order", "role", json!("custom-support"), Refused("runs action `check` under role `custom-support`, and")),
        ("Order", "asked_by", json!({ "by": "schedule" }), Harmless("recorded as the vendor's word (0071)")),
        ("Order", "asked_why", json!("resumed"), Harmless("kept with the order as the vendor's word (0086)")),
        ("Order", "now", json!(true), Harmless("the runner lets those pass whom the customer names (0084)")),
        (
            "Order",
            "approval",
            json!("prompt"),
            Harmless("the vendor's own rule; the customer's is in their stack (0085)"),
        ),
        (
            "Order",
            "approved",
            json!({ "plan": Digest::of(b"plan"), "at": 1, "until": 2, "policies": Digest::of(b"policies") }),
            Harmless("the runner compares the plan, and reads the customer's approval itself (0085)"),
        ),
        ("Order", "must_understand", json!(["approvals"]), Harmless("the runner refuses what it does not know")),
        ("Order", "runner", json!("0".repeat(32)), Harmless("the runner looks into the audit chain before it starts")),
        ("Order", "redelivery", json!("resume"), Refused("states that its work may start twice")),
        ("Order", "skip_noops", json!(true), Harmless("a plan that changes nothing is not applied")),
        ("Order", "work", part, Refused("has group `action:check`, and its work changes `component:web`")),
        (
            "Order",
            "context",
            json!({ "nuon": { "x": 1 } }),
            Harmless(
                "the vendor's values for templates are not among the terms; roles, hosts and the box hold for every value",
            ),
        ),
        ("Order", "sensitive_inputs", input, Refused("reads the customer's sensitive input `password`")),
        (
            "Order",
            "sealed_inputs",
            json!({ "token": Digest::of(b"x") }),
            Harmless("a value of the vendor's own, which has to match its digest"),
        ),
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
        (
            "Order",
            "receipt",
            json!({ "payloadType": "", "payload": "", "signatures": [] }),
            Harmless("it is kept only if the tenant signed it for this chain (decision 0075)"),
        ),
        ("Order", "terms", Value::Null, Refused("does not name the contract")),
        ("Order", "terms", order_terms(&wider), Refused("does not contain the difference")),
        (
            "Order",
            "terms",
            json!({ "digest": canonical::digest(&terms(Some(steps_of(&action())))).unwrap() }),
            Refused("does not contain the contract"),
        ),
        ("RunAction", "action", json!("other"), Refused("runs action `other`, which is not in its contract")),
        ("RunAction", "steps", json!([other]), Refused("executes other steps of action `check`")),
        ("RunAction", "directories", json!([]), Refused("executes other steps of action `check`")),
        ("RunAction", "directories", twice, Refused("directory `action-check-step-1` twice")),
        ("RunAction", "env_vars", json!({ "LEVEL": "debug" }), Refused("executes other steps of action `check`")),
        ("RunAction", "idempotent", json!(true), Refused("executes other steps of action `check`")),
        ("RunAction", "cluster", json!("sandbox"), Refused("gives action `check` access to a cluster")),
        (
            "RunAction",
            "image",
            json!("evil"),
            Refused("runs action `check` in image `evil`, and its contract has none"),
        ),
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
            Harmless(RELEASE),
        ),
        ("ApplyTerraform", "terraform_version", json!("1.0.0"), Harmless(RELEASE)),
        ("ApplyTerraform", "vars", json!({ "size": "9" }), Harmless(RELEASE)),
        ("ApplyTerraform", "env_vars", json!({ "TF_LOG": "trace" }), Harmless(RELEASE)),
        ("ApplyTerraform", "var_files", json!(["size = 9"]), Harmless(RELEASE)),
        ("RunPulumi", "pulumi_version", json!("3.1.0"), Harmless(RELEASE)),
        ("RunPulumi", "config", json!({ "size": "9" }), Harmless(RELEASE)),
        ("RunPulumi", "env_vars", json!({ "A": "b" }), Harmless(RELEASE)),
        (
            "DeployStack",
            "stack_name",
            json!("prod"),
            Harmless("a stack that the install did not make is refused by its name and tags before a change"),
        ),
        ("DeployStack", "parameters", json!({ "Days": "9" }), Harmless(RELEASE)),
        (
            "DeployStack",
            "capabilities",
            json!(["CAPABILITY_NAMED_IAM"]),
            Harmless("roles that a stack makes carry the boundary"),
        ),
        ("InstallChart", "release", json!("other"), Harmless(RELEASE)),
        ("InstallChart", "storage_driver", json!("secret"), Harmless(RELEASE)),
        (
            "InstallChart",
            "take_ownership",
            json!(true),
            Harmless("what the role may change in the cluster is the cluster's access entry"),
        ),
        ("InstallChart", "values", json!({ "a": "b" }), Harmless(RELEASE)),
        ("InstallChart", "values_files", json!(["a: b"]), Harmless(RELEASE)),
        (
            "RunKubernetesJob",
            "image",
            json!({ "component": { "image_url": "evil", "tag": "1" } }),
            Harmless("an image that is not in the install registry is refused before the job is made"),
        ),
        ("RunKubernetesJob", "cmd", json!(["sh"]), Harmless(RELEASE)),
        ("RunKubernetesJob", "args", json!(["-c"]), Harmless(RELEASE)),
        ("RunKubernetesJob", "env_vars", json!({ "A": "b" }), Harmless(RELEASE)),
        (
            "CopySecrets",
            "copies",
            json!([{ "secret": "license", "namespace": "evil", "name": "license" }]),
            Refused("reads a copy of secret `license`"),
        ),
        ("CopySecrets", "keeps_others", json!(true), Harmless("copies that the customer agreed to stay")),
        (
            "RemovePart",
            "what",
            work_of("ApplyTerraform"),
            Harmless(
                "a removal works under the role that the order names: what it may delete is in the policies that the customer agreed to",
            ),
        ),
        (
            "RemovePart",
            "destroy_data",
            json!(true),
            Harmless(
                "the mode `deprovision`, which is off until the customer switches it on, has the permissions for it",
            ),
        ),
        (
            "RemovePart",
            "removes_policies",
            json!(true),
            Harmless(
                "the policies are the vendor's own, which a new version may leave out; the mode `deprovision` is off until the customer switches it on",
            ),
        ),
    ];
    rows.extend(lies_of_health());
    let check = "a preflight reads and changes nothing";
    for (field, lie) in [
        ("terraform_versions", json!(["1.0.0"])),
        ("tools", json!(["helm"])),
        ("stacks", json!(["prod"])),
        ("programs", json!(true)),
        ("disk_bytes", json!(9)),
        ("hosts", json!(["b.example"])),
        ("permissions", json!([{ "actions": ["iam:CreateUser"], "resources": ["*"] }])),
        ("permissions_left_out", json!(9)),
        ("clusters", json!([{ "name": "prod" }])),
    ] {
        rows.push(("CheckInstall", field, lie, Harmless(check)));
    }
    for of in
        ["SyncImage", "ApplyTerraform", "RunPulumi", "DeployStack", "InstallChart", "ApplyManifest", "RunKubernetesJob"]
    {
        rows.push((of, "component", json!("other"), Refused("and its work changes `component:other`")));
        let lie = json!({ "digest": Digest::of(b"other"), "media_type": "m", "manifests": [], "blobs": [] });
        rows.push((of, "artifact", lie, Harmless(RELEASE)));
    }
    for of in ["InstallChart", "ApplyManifest", "RunKubernetesJob", "CopySecrets"] {
        let reason = "the access entries of the cluster decide what the role may do there";
        rows.push((of, "cluster", json!({ "component": "net" }), Harmless(reason)));
    }
    for of in ["InstallChart", "ApplyManifest"] {
        rows.push((
            of,
            "namespace",
            json!("kube-system"),
            Harmless("what the role may change in the cluster is the cluster's access entry"),
        ));
    }
    rows
}

/// The lies about a health check.
fn lies_of_health() -> Vec<(&'static str, &'static str, Value, Verdict)> {
    let exec = |command: &[&str]| json!([{ "name": "up", "type": "exec", "command": command }]);
    let tcp = json!([{ "name": "up", "type": "tcp", "url": "10.0.0.5:22" }]);
    let (asks, wait) = ("a health check only reads", "a job that asks for longer changes no more");
    vec![
        (
            "CheckHealth",
            "component",
            json!("other"),
            Refused("to check the health of component `other`, which its contract"),
        ),
        ("CheckHealth", "asks", json!({ "of": "stack", "stack_name": "prod" }), Harmless(asks)),
        ("CheckHealth", "probes", exec(&["check", "evil"]), Refused("runs command `[\"check\",\"evil\"]` to check")),
        ("CheckHealth", "probes", exec(&["check {{ .nuon.install.id }}"]), Refused("which its contract does not have")),
        ("CheckHealth", "probes", exec(&[]), Refused("runs command `[]` to check the health of component `web`")),
        ("CheckHealth", "probes", tcp, Harmless("the runner connects only to the hosts of the accepted contract")),
        ("CheckHealth", "hold_secs", json!(9), Harmless(wait)),
        ("CheckHealth", "limit_secs", json!(99), Harmless(wait)),
        ("CheckHealth", "gate", json!(true), Harmless("what waits for the check is the vendor's own order of jobs")),
    ]
}

/// Returns why the runner refuses `order`, by what it looks at before a job gets a role.
fn refusal(order: &Value) -> Option<String> {
    let mut config: Config = config("/state", Role::Install);
    config.accepted_contract = Some(canonical::digest(&terms(Some(steps_of(&action())))).unwrap());
    config.tenant_key = root().verifying_key().into();
    let trust = Trust::open(&config).unwrap();
    let order: Order = serde_json::from_value(order.clone()).unwrap();
    if let Err(refusal) = trust.verify(&sealed(&order), Arrival { receive: 1, sent_at: NOW, now: NOW }) {
        return Some(refusal.detail);
    }
    let outcome = consent::refusal(&config, &order).or_else(|| consent::unnamed_value(&order));
    match outcome.or_else(|| beyond_terms(&order))? {
        Outcome::Blocked { block: Block::ContractNotAccepted, reason } => Some(reason),
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
            (None, Harmless(why)) => assert!(!why.is_empty()),
            (Some(reason), Harmless(why)) => panic!("{of}.{field} is refused ({reason}), though {why}"),
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
