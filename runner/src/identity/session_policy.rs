//! Limits the AWS session of a job. Of the Terraform states, cluster inventories and plans, a job may use only its own.
//! A drift check, or a health check that runs a command, may only read.
//!
//! The role of a mode may use every state, because a first deploy, later deploys and the removal of a component share
//! one state. A session policy can only remove permissions (IAM user guide, "Session policies"). So no job can change
//! the state of another component.

use freehold_protocol::order::health::{Asks, CheckHealth};
use freehold_protocol::order::{Order, Work};
use serde_json::json;

use crate::state_objects::{StateObjects, all_cluster_policies, copies, inventory, kubernetes_mark, pulumi};

/// Returns the session policy for `order`. `bucket` holds the states, inventories and plans.
pub(super) fn of(order: &Order, partition: &str, bucket: &str) -> String {
    let object = |key: &str| format!("arn:{partition}:s3:::{bucket}/{key}");
    let mut own = vec![object(&format!("plans/{}/*", order.job))];
    if let Some(objects) = StateObjects::of(&order.work) {
        own.extend([objects.state(), objects.lock(), objects.mark()].map(|key| object(&key)));
    }
    // All deploys into a cluster share the list of the app's Kyverno policies there, and the cluster is not known yet.
    // A program that changes a list makes a later deploy forget a policy, or look for more policies. The program can
    // change the app's policies in the cluster anyway; policies of others have another annotation.
    let in_cluster = |key: String| [key, all_cluster_policies()].map(|key| object(&key));
    match order.work.made_by() {
        Work::HelmChart(work) => own.extend(in_cluster(kubernetes_mark(&work.component))),
        Work::KubernetesManifest(work) => own.extend(in_cluster(inventory(&work.component))),
        Work::KubernetesJob(work) => own.extend(in_cluster(inventory(&work.component))),
        Work::Health(work) => own.push(object(&inventory(&work.component))),
        Work::CopySecrets(_) => own.push(object(&copies())),
        Work::Pulumi(work) | Work::PulumiSandbox(work) => own.push(object(&format!("{}*", pulumi(&work.component)))),
        Work::TerraformModule(_)
        | Work::Sandbox(_)
        | Work::ContainerImage(_)
        | Work::CloudformationStack(_)
        | Work::Remove(_)
        | Work::DetectDrift(_)
        | Work::Action(_)
        | Work::Build(_)
        | Work::Preflight(_)
        | Work::Leftovers(_)
        | Work::Upgrade(_) => {}
    }
    let guarded = ["terraform/*", "kubernetes/*", "plans/*"].map(object);
    json!({
        "Version": "2012-10-17",
        "Statement": [
            { "Effect": "Allow", "NotAction": "s3:*", "Resource": "*" },
            { "Effect": "Allow", "Action": "s3:*", "NotResource": guarded },
            { "Effect": "Allow", "Action": "s3:*", "Resource": own },
        ],
    })
    .to_string()
}

/// Returns the session policies of `work`, which only reads: the ARN of AWS's managed policy `ReadOnlyAccess`, and a
/// policy that adds the reads it lacks and denies some objects of the bucket. So neither the app's programs nor a
/// mistake of the runner can change anything with the session, whatever its role permits.
pub(super) fn read_only(partition: &str, bucket: Option<&str>, work: &Work) -> (String, String) {
    let object = |key: &&str| format!("arn:{partition}:s3:::{}/{key}", bucket.unwrap_or("*"));
    let hidden: Vec<String> = hidden_from(work).iter().map(object).collect();
    let more = json!({
        "Version": "2012-10-17",
        "Statement": [
            { "Effect": "Allow", "Action": ["kms:Decrypt", "secretsmanager:GetSecretValue"], "Resource": "*" },
            { "Effect": "Deny", "Action": "s3:*", "Resource": hidden },
        ],
    });
    (format!("arn:{partition}:iam::aws:policy/ReadOnlyAccess"), more.to_string())
}

/// Returns the objects of the bucket that `work` cannot read although it reads everything else. Plans contain values of
/// other parts, and a drift check does not store its own plan in the bucket. States contain values too, such as
/// sensitive outputs, and the command of a probe does not need them.
fn hidden_from(work: &Work) -> &'static [&'static str] {
    match work {
        // The runner reads the inventory of the component with this session. A denial cannot leave out one object, so
        // the command can read the inventories of all components. Inventories contain names of objects, and no values.
        Work::Health(CheckHealth { asks: Asks::Objects { .. }, .. }) => {
            &["plans/*", "terraform/*", "kubernetes/*/*", "kubernetes/*.fence.json"]
        }
        Work::Health(_) => &["plans/*", "terraform/*", "kubernetes/*"],
        _ => &["plans/*"],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use freehold_protocol::order::{ApplyTerraform, Artifact, DetectDrift, RunPulumi, Work};
    use serde_json::Value;

    use super::*;
    use crate::testing::order;

    const LARGEST: usize = 2_048;

    fn own(order: &Order) -> Vec<String> {
        let policy: Value = serde_json::from_str(&of(order, "aws", "b")).unwrap();
        serde_json::from_value(policy["Statement"][2]["Resource"].clone()).unwrap()
    }

    fn terraform(component: &str) -> Work {
        Work::TerraformModule(module(component))
    }

    fn module(component: &str) -> ApplyTerraform {
        ApplyTerraform {
            component: component.parse().unwrap(),
            artifact: Artifact {
                media_type: String::new(),
                digest: freehold_protocol::Digest::of(b"module"),
                manifests: Vec::new(),
                blobs: Vec::new(),
                provenance: None,
            },
            terraform_version: String::new(),
            vars: BTreeMap::new(),
            env_vars: BTreeMap::new(),
            var_files: Vec::new(),
        }
    }

    #[test]
    fn a_program_of_pulumi_has_everything_below_the_prefix_of_its_own_component() {
        let work = |component: &str| RunPulumi {
            component: component.parse().unwrap(),
            artifact: module("db").artifact,
            pulumi_version: String::new(),
            config: BTreeMap::new(),
            env_vars: BTreeMap::new(),
        };
        let component = Order { work: Work::Pulumi(work("db")), ..order(1, 7) };
        let sandbox = Order { work: Work::PulumiSandbox(work("sandbox")), ..order(1, 7) };

        assert_eq!(own(&component)[1..], ["arn:aws:s3:::b/terraform/db/*"]);
        assert_eq!(own(&sandbox)[1..], ["arn:aws:s3:::b/terraform/sandbox/*"]);
    }

    #[test]
    fn an_action_has_no_state_and_the_plans_of_its_own_job() {
        let order = order(1, 7);

        assert_eq!(own(&order), [format!("arn:aws:s3:::b/plans/{}/*", order.job)]);
    }

    #[test]
    fn a_module_has_the_state_of_its_own_component() {
        let order = Order { work: terraform("db"), ..order(1, 7) };

        assert_eq!(
            own(&order)[1..],
            [
                "arn:aws:s3:::b/terraform/db.tfstate",
                "arn:aws:s3:::b/terraform/db.tfstate.tflock",
                "arn:aws:s3:::b/terraform/db.fence.json",
            ]
        );
    }

    #[test]
    fn a_drift_check_only_reads_and_reads_no_plan() {
        let work = Work::DetectDrift(DetectDrift { what: Box::new(terraform("db")) });

        let (managed, policy) = read_only("aws-cn", Some("b"), &work);

        let policy: Value = serde_json::from_str(&policy).unwrap();
        let denied = &policy["Statement"][1];
        assert_eq!(managed, "arn:aws-cn:iam::aws:policy/ReadOnlyAccess");
        assert_eq!(*denied, json!({ "Effect": "Deny", "Action": "s3:*", "Resource": ["arn:aws-cn:s3:::b/plans/*"] }));
    }

    #[test]
    fn a_command_that_asks_for_health_reads_no_state_and_no_list_of_copied_secrets() {
        let denied = |asks: Value| -> Vec<String> {
            let work = json!({ "kind": "health", "component": "web", "asks": asks, "hold_secs": 0, "limit_secs": 0 });
            let (_, policy) = read_only("aws", Some("b"), &serde_json::from_value(work).unwrap());
            let policy: Value = serde_json::from_str(&policy).unwrap();
            assert_eq!(policy["Statement"][1]["Effect"], "Deny");
            serde_json::from_value(policy["Statement"][1]["Resource"].clone()).unwrap()
        };
        let objects = |keys: &[&str]| keys.iter().map(|key| format!("arn:aws:s3:::b/{key}")).collect::<Vec<_>>();

        let of_nothing = denied(json!({ "of": "nothing" }));
        let of_manifest = denied(json!({ "of": "objects", "cluster": "sandbox" }));

        assert_eq!(of_nothing, objects(&["plans/*", "terraform/*", "kubernetes/*"]));
        assert_eq!(
            of_manifest,
            objects(&["plans/*", "terraform/*", "kubernetes/*/*", "kubernetes/*.fence.json"]),
            "the runner reads `kubernetes/web.inventory.json`"
        );
    }

    #[test]
    fn the_sandbox_has_a_state_of_its_own_that_no_component_has() {
        let sandbox = Order { work: Work::Sandbox(module("sandbox")), ..order(1, 7) };
        let component = Order { work: terraform("sandbox"), ..order(1, 7) };

        assert_eq!(
            own(&sandbox)[1..],
            [
                "arn:aws:s3:::b/terraform/sandbox/sandbox.tfstate",
                "arn:aws:s3:::b/terraform/sandbox/sandbox.tfstate.tflock",
                "arn:aws:s3:::b/terraform/sandbox/sandbox.fence.json",
            ]
        );
        assert!(own(&component).iter().all(|object| !own(&sandbox)[1..].contains(object)));
    }

    #[test]
    fn a_manifest_has_the_inventory_of_its_own_component() {
        let work = json!({ "kind": "kubernetes_manifest", "component": "web", "namespace": "web",
            "artifact": { "digest": freehold_protocol::Digest::of(b"m"), "media_type": "", "manifests": [], "blobs": [] } });
        let order = Order { work: serde_json::from_value(work).unwrap(), ..order(1, 7) };

        let policies = "arn:aws:s3:::b/kubernetes/policies/*.inventory.json";
        assert_eq!(own(&order)[1..], ["arn:aws:s3:::b/kubernetes/web.inventory.json", policies]);
    }

    #[test]
    fn copies_of_secrets_have_their_inventory_alone() {
        let work = json!({ "kind": "copy_secrets", "copies": [] });
        let order = Order { work: serde_json::from_value(work).unwrap(), ..order(1, 7) };

        assert_eq!(own(&order)[1..], ["arn:aws:s3:::b/kubernetes/secrets/copies.inventory.json"]);
    }

    #[test]
    fn the_longest_names_fit_into_a_session_policy() {
        let order = Order { work: terraform(&"a".repeat(40)), ..order(1, 7) };

        assert!(of(&order, "aws-us-gov", &"b".repeat(63)).len() <= LARGEST);
    }
}
