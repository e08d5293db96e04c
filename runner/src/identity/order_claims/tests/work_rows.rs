//! The lies in the fields of each kind of work but actions.

use serde_json::{Value, json};

use super::reasons::{
    COPIES, DRIFT, GATE, HEALTH, IN_CLUSTER, JOB_IMAGE, OWN_POLICIES, PREFLIGHT, PROBE_HOST, PROGRAM, RELEASE, REMOVAL,
    STACK_NAME, STACK_ROLES, TRIAL,
};
use super::*;

/// Returns the lies in the fields of each kind of work but actions.
pub(super) fn rows() -> Vec<Row> {
    [parts(), of_all_parts(), in_clusters(), removals_and_drift(), preflight(), health(), upgrade()].concat()
}

/// Returns the lies about a part that are the same for several kinds of it.
fn of_all_parts() -> Vec<Row> {
    let other = json!({ "digest": Digest::of(b"other"), "media_type": "m", "manifests": [], "blobs": [] });
    let kinds = [
        ("ContainerImage", &RELEASE),
        ("TerraformModule", &RELEASE),
        ("Pulumi", &RELEASE),
        ("CloudformationStack", &RELEASE),
        ("HelmChart", &IN_CLUSTER),
        ("KubernetesManifest", &IN_CLUSTER),
        ("KubernetesJob", &IN_CLUSTER),
    ];
    let rows = kinds.into_iter().flat_map(|(kind, reason)| {
        [
            (kind, "component", json!("other"), Refused("and its work changes `component:other`")),
            (kind, "artifact", other.clone(), Harmless(reason)),
        ]
    });
    let sandboxes = ["Sandbox", "PulumiSandbox"].into_iter().flat_map(|kind| {
        [
            (kind, "component", json!("web"), Refused("works on the sandbox under the name of component `web`")),
            (kind, "artifact", other.clone(), Harmless(&RELEASE)),
        ]
    });
    rows.chain(sandboxes).collect()
}

fn parts() -> Vec<Row> {
    let of_terraform = ["TerraformModule", "Sandbox"].into_iter().flat_map(|kind| {
        [
            (kind, "terraform_version", json!("1.0.0"), Harmless(&RELEASE)),
            (kind, "vars", json!({ "size": "9" }), Harmless(&RELEASE)),
            (kind, "env_vars", json!({ "TF_LOG": "trace" }), Harmless(&RELEASE)),
            (kind, "var_files", json!(["size = 9"]), Harmless(&RELEASE)),
        ]
    });
    let of_pulumi = ["Pulumi", "PulumiSandbox"].into_iter().flat_map(|kind| {
        [
            (kind, "pulumi_version", json!("3.1.0"), Harmless(&RELEASE)),
            (kind, "config", json!({ "size": "9" }), Harmless(&RELEASE)),
            (kind, "env_vars", json!({ "A": "b" }), Harmless(&RELEASE)),
        ]
    });
    let of_stacks = [
        ("CloudformationStack", "stack_name", json!("prod"), Harmless(&STACK_NAME)),
        ("CloudformationStack", "parameters", json!({ "Days": "9" }), Harmless(&RELEASE)),
        ("CloudformationStack", "capabilities", json!(["CAPABILITY_NAMED_IAM"]), Harmless(&STACK_ROLES)),
    ];
    of_terraform.chain(of_pulumi).chain(of_stacks).collect()
}

fn in_clusters() -> Vec<Row> {
    let other_image = json!({ "component": { "image_url": "evil", "tag": "1" } });
    let copy = json!([{ "secret": "license", "namespace": "evil", "name": "license" }]);
    let clusters = ["HelmChart", "KubernetesManifest", "KubernetesJob", "CopySecrets"];
    let clusters = clusters.map(|kind| (kind, "cluster", json!({ "component": "net" }), Harmless(&IN_CLUSTER)));
    let namespaces = ["HelmChart", "KubernetesManifest"];
    let namespaces = namespaces.map(|kind| (kind, "namespace", json!("kube-system"), Harmless(&IN_CLUSTER)));
    let others = [
        ("HelmChart", "release", json!("other"), Harmless(&IN_CLUSTER)),
        ("HelmChart", "storage_driver", json!("secret"), Harmless(&IN_CLUSTER)),
        ("HelmChart", "take_ownership", json!(true), Harmless(&IN_CLUSTER)),
        ("HelmChart", "values", json!({ "a": "b" }), Harmless(&IN_CLUSTER)),
        ("HelmChart", "values_files", json!(["a: b"]), Harmless(&IN_CLUSTER)),
        ("KubernetesJob", "image", other_image, Harmless(&JOB_IMAGE)),
        ("KubernetesJob", "cmd", json!(["sh"]), Harmless(&IN_CLUSTER)),
        ("KubernetesJob", "args", json!(["-c"]), Harmless(&IN_CLUSTER)),
        ("KubernetesJob", "env_vars", json!({ "A": "b" }), Harmless(&IN_CLUSTER)),
        ("CopySecrets", "copies", copy, Refused("reads a copy of secret `license`")),
        ("CopySecrets", "keeps_others", json!(true), Harmless(&COPIES)),
    ];
    clusters.into_iter().chain(namespaces).chain(others).collect()
}

fn removals_and_drift() -> Vec<Row> {
    let other_part = || {
        let mut what = work_of("TerraformModule");
        what["component"] = json!("other");
        what
    };
    let under_another_name = || {
        let mut what = work_of("PulumiSandbox");
        what["component"] = json!("web");
        what
    };
    let other_artifact = {
        let mut what = work_of("TerraformModule");
        what["artifact"]["digest"] = json!(Digest::of(b"other"));
        what
    };
    let changes_other = Refused("and its work changes `component:other`");
    vec![
        ("Remove", "what", work_of("TerraformModule"), Harmless(&REMOVAL)),
        ("Remove", "what", other_part(), changes_other),
        ("Remove", "what", under_another_name(), Refused("and its work changes `sandbox`")),
        ("Remove", "destroy_data", json!(true), Harmless(&REMOVAL)),
        ("Remove", "removes_policies", json!(true), Harmless(&OWN_POLICIES)),
        ("DetectDrift", "what", other_part(), changes_other),
        ("DetectDrift", "what", other_artifact, Harmless(&DRIFT)),
    ]
}

fn preflight() -> Vec<Row> {
    let lies = [
        ("terraform_versions", json!(["1.0.0"])),
        ("tools", json!(["helm"])),
        ("stacks", json!(["prod"])),
        ("programs", json!(true)),
        ("disk_bytes", json!(9)),
        ("hosts", json!(["b.example"])),
        ("permissions", json!([{ "actions": ["iam:CreateUser"], "resources": ["*"] }])),
        ("permissions_left_out", json!(9)),
        ("clusters", json!([{ "name": "prod" }])),
    ];
    lies.map(|(field, lie)| ("Preflight", field, lie, Harmless(&PREFLIGHT))).into()
}

fn health() -> Vec<Row> {
    let exec = |command: &[&str]| json!([{ "name": "up", "type": "exec", "command": command }]);
    let tcp = json!([{ "name": "up", "type": "tcp", "url": "10.0.0.5:22" }]);
    let of_other = Refused("to check the health of component `other`, which its contract");
    let of_no_program = Refused("runs command `[]` to check the health of component `web`");
    vec![
        ("Health", "component", json!("other"), of_other),
        ("Health", "asks", json!({ "of": "stack", "stack_name": "prod" }), Harmless(&HEALTH)),
        ("Health", "probes", exec(&["check", "evil"]), Refused("runs command `[\"check\",\"evil\"]` to check")),
        ("Health", "probes", exec(&["check {{ .nuon.install.id }}"]), Refused("which its contract does not have")),
        ("Health", "probes", exec(&[]), of_no_program),
        ("Health", "probes", tcp, Harmless(&PROBE_HOST)),
        ("Health", "hold_secs", json!(9), Harmless(&GATE)),
        ("Health", "limit_secs", json!(99), Harmless(&GATE)),
        ("Health", "gate", json!(true), Harmless(&GATE)),
    ]
}

fn upgrade() -> Vec<Row> {
    let other = json!(Digest::of(b"other"));
    let of_another_key: Value = serde_json::to_value(upgrade_to(&Digest::of(b"new"), 8).release).unwrap();
    vec![
        ("Upgrade", "version", json!("99.0.0"), Harmless(&PROGRAM)),
        ("Upgrade", "program", other.clone(), Refused("the signed checksums of the release have no `")),
        ("Upgrade", "archive", other, Harmless(&PROGRAM)),
        ("Upgrade", "archive_size", json!(99), Harmless(&PROGRAM)),
        ("Upgrade", "release", of_another_key, Refused("not signed by the release key")),
        ("Upgrade", "health_secs", json!(9_999), Harmless(&TRIAL)),
    ]
}
