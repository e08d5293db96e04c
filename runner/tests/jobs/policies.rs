//! Policies between the plan and the apply, with real programs: the vendor's, the customer's and the built-in ones.

use freehold_oci::Version;
use freehold_protocol::app_version::PolicyEngine;
use freehold_protocol::order::{
    ApplyTerraform, Artifact, CHART_CONFIG, CHART_LAYER, ClusterOf, InstallChart, MODULE_ARTIFACT, MODULE_LAYER, Mode,
    Package, RemovePart, SyncImage, Work,
};
use freehold_protocol::policy::{OrderPolicy, PolicyOrigin};
use freehold_protocol::report::{Block, Outcome};
use freehold_runner::config::policies::Policies;
use freehold_runner::kinds::execute;
use freehold_runner::registry::ecr_repository;
use freehold_skips::have;
use serde_json::Value;

use crate::artifacts::of_layer;
use crate::cloud::Cloud;
use crate::cluster::{self, Cluster, DEPLOYER};
use crate::fixture::{Bench, REPOSITORY, outputs};
use crate::kubernetes_manifest;

const STATE: &str = "terraform/network.tfstate";
const FULL: &str = "plans/job_00000000000000000001/1.1.policies.json";
/// Forbids the creation of a resource, and names its value.
const NO_CREATION: &str = "package nuon\ndeny contains msg if {\n  some r in input.plan.resource_changes\n  \"create\" in r.change.actions\n  msg := sprintf(\"%s would hold %s\", [r.address, r.change.after.input])\n}\n";
/// Forbids a long text in an object, and names the text.
const SHORT_TEXTS: &str = r#"package nuon
deny contains msg if {
  count(input.review.object.data.text) > 5
  msg := sprintf("%s holds %s", [input.review.name, input.review.object.data.text])
}
"#;
/// Permits everything, with a warning.
const PERMISSIVE: &str = "package freehold\nwarn contains \"be careful\"\n";

fn packed(files: &[(&str, &str)]) -> Vec<u8> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

async fn module(cloud: &Cloud, text: &str) -> (Artifact, Work) {
    let layer = packed(&[("main.tf", text)]);
    let artifact = of_layer(cloud, Package::TerraformModule, layer, (MODULE_LAYER, MODULE_ARTIFACT)).await;
    let work = Work::TerraformModule(ApplyTerraform {
        component: "network".parse().unwrap(),
        artifact: artifact.clone(),
        terraform_version: String::new(),
        vars: Default::default(),
        env_vars: Default::default(),
        var_files: Vec::new(),
    });
    (artifact, work)
}

fn vendors(bench: &mut Bench, texts: &[(&str, &str)]) {
    let policy = |(name, text): &(&str, &str)| OrderPolicy::new(name, PolicyEngine::Opa, text).unwrap();
    bench.change_order(|order| order.policies = texts.iter().map(policy).collect());
}

fn customers(bench: &mut Bench, change: impl FnOnce(&mut Policies)) {
    bench.change_config(|config| change(&mut config.policies));
}

fn next(cloud: &Cloud, bench: &mut Bench, artifact: &Artifact) {
    bench.next_attempt();
    bench.job.grants = cloud.grants(artifact, 0, "");
}

/// Returns the reason of a job that a policy blocked.
fn blocked(outcome: Outcome) -> String {
    match outcome {
        Outcome::Blocked { block: Block::Policy, reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_denied_plan_is_not_applied_and_the_vendor_sees_no_value_of_it() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let test = "policies::a_denied_plan_is_not_applied_and_the_vendor_sees_no_value_of_it";
    let Some(cloud) = Cloud::here(test).await else { return };
    let (artifact, work) = module(&cloud, "resource \"terraform_data\" \"this\" { input = \"the-value\" }\n").await;
    let mut bench = cloud.bench(work.clone(), &artifact);
    vendors(&mut bench, &[("no-creation", NO_CREATION), ("permissive", PERMISSIVE)]);

    let denied = blocked(execute(&bench.job).await);
    let log = bench.log();
    let results = bench.job.policies.results();
    let untouched = cloud.object(STATE).await;
    let full: Value = serde_json::from_slice(&cloud.object(FULL).await.expect("what the policies said")).unwrap();
    next(&cloud, &mut bench, &artifact);
    vendors(&mut bench, &[("permissive", PERMISSIVE)]);
    let permitted = execute(&bench.job).await;
    next(&cloud, &mut bench, &artifact);
    let removal = Work::Remove(RemovePart { what: Box::new(work), destroy_data: false, removes_policies: false });
    bench.change_order(|order| order.work = removal);
    vendors(&mut bench, &[("stays", "package nuon\ndeny contains \"it stays\" if input.freehold.removal\n")]);
    let removed = blocked(execute(&bench.job).await);

    assert_eq!(
        denied,
        "policy `no-creation` (of the vendor) denies this: terraform_data.this would hold [value]; nothing was changed; \
         change the component or the policy, and deploy the new version"
    );
    assert!(log.contains("policies: 2 evaluated, 0 of them without a message\n"), "{log}");
    assert!(log.contains("policy `permissive` (of the vendor) warns: be careful\n"), "{log}");
    assert!(!log.contains("would hold the-value"), "{log}");
    assert_eq!(results.len(), 2);
    assert!(untouched.is_none());
    assert_eq!(full[0]["deny"][0], "terraform_data.this would hold the-value");
    outputs(permitted);
    assert!(cloud.object(STATE).await.is_some());
    assert!(removed.contains("policy `stays` (of the vendor) denies this: it stays"), "{removed}");
}

#[tokio::test]
async fn a_customers_policy_wins_over_a_permissive_vendor_and_one_that_cannot_be_read_stops() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let test = "policies::a_customers_policy_wins_over_a_permissive_vendor_and_one_that_cannot_be_read_stops";
    let Some(cloud) = Cloud::here(test).await else { return };
    let (artifact, work) = module(&cloud, "resource \"terraform_data\" \"this\" { input = \"x\" }\n").await;
    let mut bench = cloud.bench(work, &artifact);
    vendors(&mut bench, &[("permissive", PERMISSIVE)]);
    cloud.put_object("policies/no-creation.rego", NO_CREATION).await;
    cloud.put_object("policies/readme.md", "not a policy").await;
    customers(&mut bench, |policies| policies.customer = true);

    let denied = blocked(execute(&bench.job).await);
    let origins: Vec<_> = bench.job.policies.results().iter().map(|one| (one.origin, one.stops())).collect();
    next(&cloud, &mut bench, &artifact);
    cloud.put_object("policies/no-creation.rego", "package freehold\n\ndeny contains {\n").await;
    let unreadable = blocked(execute(&bench.job).await);
    next(&cloud, &mut bench, &artifact);
    cloud.put_object("policies/no-creation.rego", PERMISSIVE).await;
    let permitted = execute(&bench.job).await;

    assert!(denied.starts_with("policy `policies/no-creation.rego` (of the customer) denies this: "), "{denied}");
    assert_eq!(origins, [(PolicyOrigin::Vendor, false), (PolicyOrigin::Customer, true)]);
    assert!(
        unreadable.starts_with(
            "policy `policies/no-creation.rego` (of the customer) cannot be evaluated: policies/no-creation.rego:4:"
        ),
        "{unreadable}"
    );
    outputs(permitted);
}

#[tokio::test]
async fn a_built_in_policy_holds_until_the_customer_loosens_it() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let test = "policies::a_built_in_policy_holds_until_the_customer_loosens_it";
    let Some(cloud) = Cloud::here(test).await else { return };
    let text =
        "import {\n  to = terraform_data.taken\n  id = \"theirs\"\n}\nresource \"terraform_data\" \"taken\" {}\n";
    let (artifact, work) = module(&cloud, text).await;
    let mut bench = cloud.bench(work, &artifact);

    let denied = blocked(execute(&bench.job).await);
    next(&cloud, &mut bench, &artifact);
    customers(&mut bench, |policies| policies.loosened = ["own-resources-only".to_owned()].into());
    let loosened = execute(&bench.job).await;
    let log = bench.log();
    next(&cloud, &mut bench, &artifact);
    bench.change_order(|order| order.mode = Mode::Maintenance);
    customers(&mut bench, |policies| policies.maintenance_components = ["web".to_owned()].into());
    let limited = blocked(execute(&bench.job).await);

    assert!(denied.starts_with("policy `own-resources-only` (built in) denies this: terraform_data.taken: it exists"));
    assert!(denied.ends_with("ask the customer to loosen the policy in the install stack"), "{denied}");
    outputs(loosened);
    assert!(log.contains("policy `own-resources-only` (built in) warns: terraform_data.taken: it exists"), "{log}");
    assert!(limited.contains("component `network` is not one that the customer permits"), "{limited}");
}

#[tokio::test]
async fn a_denied_image_is_not_copied() {
    let Some(cloud) = Cloud::here("policies::a_denied_image_is_not_copied").await else { return };
    let types = ("application/vnd.oci.image.layer.v1.tar", "application/vnd.example.image");
    let artifact = of_layer(&cloud, Package::Image, b"a program".to_vec(), types).await;
    let work = Work::ContainerImage(SyncImage { component: "network".parse().unwrap(), artifact: artifact.clone() });
    let mut bench = cloud.bench(work, &artifact);
    let digest = format!("package nuon\ndeny contains \"this one\" if input.digest == \"{}\"\n", artifact.digest);
    vendors(&mut bench, &[("digests", &digest)]);

    let denied = blocked(execute(&bench.job).await);

    assert!(denied.contains("policy `digests` (of the vendor) denies this: this one"), "{denied}");
    let repository = ecr_repository(&cloud.customer, REPOSITORY).await.unwrap();
    assert_eq!(repository.manifest_digest(&Version::Digest(artifact.digest)).await.unwrap(), None);
}

#[tokio::test]
async fn a_policy_without_an_end_stops_the_job_and_the_others_are_asked() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let test = "policies::a_policy_without_an_end_stops_the_job_and_the_others_are_asked";
    let Some(cloud) = Cloud::here(test).await else { return };
    let (artifact, work) = module(&cloud, "resource \"terraform_data\" \"this\" {}\n").await;
    let mut bench = cloud.bench(work, &artifact);
    let endless = "package nuon\ndeny contains \"x\" if {\n  some a in numbers.range(1, 100000)\n  some b in numbers.range(1, 100000)\n  some c in numbers.range(1, 100000)\n  a + b + c < 0\n}\n";
    vendors(&mut bench, &[("endless", endless), ("permissive", PERMISSIVE)]);

    let stopped = blocked(execute(&bench.job).await);

    assert!(
        stopped.starts_with(
            "policy `endless` (of the vendor) cannot be evaluated: endless: the policy took longer than 10 s"
        ),
        "{stopped}"
    );
    assert_eq!(bench.job.policies.results()[1].warn, ["be careful"]);
    assert!(cloud.object(STATE).await.is_none());
}

#[tokio::test]
async fn a_denied_chart_is_not_installed_and_its_hooks_are_asked_about_too() {
    let test = "policies::a_denied_chart_is_not_installed_and_its_hooks_are_asked_about_too";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let hook =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hooked\n  annotations: {helm.sh/hook: pre-install}\n";
    let layer = packed(&[
        ("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 0.1.0\n"),
        ("web/templates/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"),
        ("web/templates/hook.yaml", hook),
    ]);
    let artifact = of_layer(&cloud, Package::HelmChart, layer, (CHART_LAYER, CHART_CONFIG)).await;
    let work = Work::HelmChart(InstallChart {
        component: "network".parse().unwrap(),
        artifact: artifact.clone(),
        cluster: ClusterOf::Sandbox,
        release: "web".into(),
        namespace: "globex-prod".into(),
        storage_driver: "configmap".into(),
        take_ownership: false,
        values: Default::default(),
        values_files: Vec::new(),
    });
    let mut bench = Cluster::bench(&cloud, DEPLOYER, work, &artifact).await;
    bench.job.grants = cloud.grants(&artifact, 0, "");
    let no = |name: &str| {
        format!(
            "package nuon\ndeny contains msg if {{\n  input.review.object.metadata.name == \"{name}\"\n  msg := \
             sprintf(\"%s %s\", [input.review.operation, input.review.name])\n}}\n"
        )
    };
    vendors(&mut bench, &[("settings", &no("settings")), ("hooks", &no("hooked"))]);

    let denied = blocked(execute(&bench.job).await);
    let untouched = cluster.object("configmap", "globex-prod", "settings");
    next(&cloud, &mut bench, &artifact);
    vendors(&mut bench, &[("others", &no("others"))]);
    outputs(execute(&bench.job).await);

    assert!(denied.contains("policy `settings` (of the vendor) denies this: CREATE settings"), "{denied}");
    assert!(denied.contains("policy `hooks` (of the vendor) denies this: CREATE hooked"), "{denied}");
    assert_eq!(untouched, Value::Null);
    assert_ne!(cluster.object("configmap", "globex-prod", "settings"), Value::Null);
}

#[tokio::test]
async fn a_manifest_is_asked_about_object_by_object_and_maintenance_may_be_kept_from_creating() {
    let test = "policies::a_manifest_is_asked_about_object_by_object_and_maintenance_may_be_kept_from_creating";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let manifest = async |text: &str| {
        let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n";
        kubernetes_manifest::manifest(&cloud, &format!("{object}data: {{text: {text}}}\n")).await
    };
    let (short, long) = (manifest("short").await, manifest("the-value").await);
    let mut bench = Cluster::bench(&cloud, DEPLOYER, kubernetes_manifest::work(&short), &short).await;
    let object = || cluster.object("configmap", "globex-prod", "one");
    vendors(&mut bench, &[("short-texts", SHORT_TEXTS)]);

    outputs(execute(&bench.job).await);
    next(&cloud, &mut bench, &long);
    bench.change_order(|order| order.work = kubernetes_manifest::work(&long));
    let denied = blocked(execute(&bench.job).await);
    let unchanged = object()["data"]["text"].clone();
    // Somebody deletes the object, so that a deploy would create it again.
    cluster.kubectl(&["delete", "configmap", "one", "--namespace=globex-prod"]).unwrap();
    next(&cloud, &mut bench, &short);
    bench.change_order(|order| {
        order.work = kubernetes_manifest::work(&short);
        order.mode = Mode::Maintenance;
    });
    customers(&mut bench, |policies| policies.maintenance_creates = false);
    let limited = blocked(execute(&bench.job).await);
    let absent = object();
    next(&cloud, &mut bench, &short);
    customers(&mut bench, |policies| policies.maintenance_creates = true);
    outputs(execute(&bench.job).await);

    let expected = "policy `short-texts` (of the vendor) denies this: one holds [value]; nothing was changed";
    assert!(denied.contains(expected), "{denied}");
    assert_eq!((unchanged, absent), (Value::from("short"), Value::Null));
    let expected = "ConfigMap one: it would be created, and the customer permits no creation in mode `maintenance`";
    assert!(limited.contains(expected), "{limited}");
    assert_eq!(object()["data"]["text"], "short");
}
