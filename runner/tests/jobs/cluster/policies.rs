//! Kyverno policies in a cluster, with a real API server. Kyverno itself does not run there: the kind of its policies is a
//! definition that takes every object, and nothing asks them.

use std::time::{Duration, Instant};

use freehold_protocol::app_version::PolicyEngine;
use freehold_protocol::order::{
    ApplyManifest, Artifact, ClusterOf, MANIFEST_ARTIFACT, MANIFEST_LAYER, Package, RemovePart, Work,
};
use freehold_protocol::policy::OrderPolicy;
use freehold_protocol::report::{Block, Outcome};
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::{Value, json};

use crate::artifacts::of_layer;
use crate::cloud::Cloud;
use crate::cluster::{self, Cluster, DEPLOYER, images};
use crate::fixture::{Bench, outputs, reason};
use crate::kubernetes_job;

const NAMESPACE: &str = "globex-prod";
const OWNER: &str = "/metadata/annotations/freehold~1component";

fn policy(name: &str, message: &str) -> String {
    format!(
        "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {{name: {name}}}\nspec:\n  rules:\n  - name: one\n    \
         validate: {{message: \"{message} {{{{ request.object }}}}\"}}\n"
    )
}

/// The kind of Kyverno's policies. As Kyverno's own, it lists the fields of a rule, and a rule may have no other.
fn kyverno() -> Value {
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let rule =
        json!({ "type": "object", "properties": { "name": { "type": "string" }, "validate": any, "exclude": any } });
    let spec = json!({ "type": "object", "properties": {
        "rules": { "type": "array", "items": rule },
        "background": { "type": "boolean", "default": true },
    } });
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "clusterpolicies.kyverno.io" },
        "spec": { "group": "kyverno.io", "scope": "Cluster",
            "names": { "kind": "ClusterPolicy", "plural": "clusterpolicies", "singular": "clusterpolicy" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }] } })
}

/// Makes the kind, and waits until the cluster serves it.
async fn make_kind(cluster: &Cluster) {
    cluster.apply("customer", &kyverno());
    let deadline = Instant::now() + Duration::from_secs(60);
    while cluster.kubectl(&["get", "clusterpolicies.kyverno.io"]).is_err() {
        assert!(Instant::now() < deadline, "the cluster does not serve the kind within 60 s");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// An install that deploys one component into a cluster.
struct Deploys<'a> {
    cloud: &'a Cloud,
    artifact: Artifact,
    work: Work,
    bench: Bench,
    /// A policy in Rego that the orders carry too.
    rego: Option<&'static str>,
}

impl<'a> Deploys<'a> {
    async fn new(cloud: &'a Cloud) -> Self {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n";
        let layer = (MANIFEST_LAYER, MANIFEST_ARTIFACT);
        let artifact = of_layer(cloud, Package::KubernetesManifest, text.as_bytes().to_vec(), layer).await;
        let work = Work::KubernetesManifest(ApplyManifest {
            component: "network".parse().unwrap(),
            artifact: artifact.clone(),
            cluster: ClusterOf::Sandbox,
            namespace: NAMESPACE.into(),
        });
        Self::of(cloud, artifact, work).await
    }

    async fn of(cloud: &'a Cloud, artifact: Artifact, work: Work) -> Self {
        let bench = Cluster::bench(cloud, DEPLOYER, work.clone(), &artifact).await;
        Self { cloud, artifact, work, bench, rego: None }
    }

    async fn run(&mut self, work: Work, policies: &[(&str, &str)]) -> Outcome {
        self.bench.next_attempt();
        self.bench.job.grants = self.cloud.grants(&self.artifact, 0, "");
        let policy = |(name, text): &(&str, &str)| OrderPolicy::new(name, PolicyEngine::Kyverno, text).unwrap();
        let rego = self.rego;
        self.bench.change_order(|order| {
            order.work = work;
            order.policies = policies.iter().map(policy).collect();
            let rego = rego.map(|text| OrderPolicy::new("rego", PolicyEngine::Opa, text).unwrap());
            order.policies.extend(rego);
        });
        execute(&self.bench.job).await
    }

    async fn deploy(&mut self, policies: &[(&str, &str)]) -> Outcome {
        self.run(self.work.clone(), policies).await
    }

    async fn remove(&mut self, removes_policies: bool) -> Outcome {
        let what = Box::new(self.work.clone());
        self.run(Work::Remove(RemovePart { what, destroy_data: true, removes_policies }), &[]).await
    }

    /// Makes the next jobs leave out what would change nothing.
    fn skip_noops(&mut self) {
        self.bench.change_order(|order| order.skip_noops = true);
    }
}

fn blocked(outcome: Outcome) -> String {
    match outcome {
        Outcome::Blocked { block: Block::Policy, reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn policies_are_in_the_cluster_before_a_component_and_as_long_as_the_app() {
    let test = "cluster::policies::policies_are_in_the_cluster_before_a_component_and_as_long_as_the_app";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let found = |name: &str| cluster.object("clusterpolicies.kyverno.io", NAMESPACE, name);
    let names = || cluster.kubectl(&["get", "clusterpolicies.kyverno.io", "--output=name"]).unwrap();
    // A field that Kyverno does not know, as some public configs have one.
    let first = format!("{}    terms: []\n", policy("first", "1"));
    let (second, other) = (policy("second", "2"), policy("first", "3"));
    let wider = format!("{other}    exclude: {{any: []}}\n").replace("{name: first}", "{name: first, namespace: x}");
    let mut install = Deploys::new(&cloud).await;
    install.skip_noops();

    // A cluster without Kyverno: the deploy continues, and says that nothing asks the policy.
    outputs(install.deploy(&[("first", &first)]).await);
    let without = install.bench.log();
    make_kind(&cluster).await;
    outputs(install.deploy(&[("first", &first), ("second", &second)]).await);
    let (log, both) = (install.bench.log(), names());
    let made = found("first");
    outputs(install.deploy(&[("first", &first), ("second", &second)]).await);
    let (again, unchanged) = (install.bench.log(), found("first"));
    // Versions with one policy less, with a field more, and without it again.
    outputs(install.deploy(&[("first", &wider)]).await);
    let (one, with_field) = (names(), found("first"));
    outputs(install.deploy(&[("first", &other)]).await);
    let without_field = found("first");
    outputs(install.remove(false).await);
    let after_one = names();
    outputs(install.deploy(&[("first", &other)]).await);
    outputs(install.remove(true).await);
    let after_all = names();
    // A cluster counts all its changes.
    let number = |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    outputs(install.deploy(&[("first", &first)]).await);
    let (policy, component) = (number(&found("first")), number(&cluster.object("configmap", NAMESPACE, "one")));

    assert!(without.contains("the cluster does not have the kind `ClusterPolicy` of `kyverno.io/v1`"), "{without}");
    assert_eq!(both, "clusterpolicy.kyverno.io/first\nclusterpolicy.kyverno.io/second");
    assert!(
        log.contains("  + ClusterPolicy first\n") && log.contains("put policy `first` into the cluster\n"),
        "{log}"
    );
    assert_eq!(made.pointer(OWNER).unwrap(), "acme--globex-prod/policies:kyverno");
    let message = |object: &Value| object["spec"]["rules"][0]["validate"]["message"].clone();
    assert_eq!(message(&made), "1 {{ request.object }}");
    assert!(!again.contains("put policy") && !again.contains("ClusterPolicy"), "{again}");
    assert_eq!(number(&unchanged), number(&made));
    assert_eq!(
        (one.as_str(), after_one.as_str()),
        ("clusterpolicy.kyverno.io/first", "clusterpolicy.kyverno.io/first")
    );
    assert_eq!(message(&with_field), "3 {{ request.object }}");
    assert!(with_field["spec"]["rules"][0].get("exclude").is_some(), "{with_field}");
    assert!(without_field["spec"]["rules"][0].get("exclude").is_none(), "{without_field}");
    assert_eq!(after_all, "");
    assert!(policy < component, "the policy came with change {policy}, and the component with {component}");
}

#[tokio::test]
async fn charts_and_programs_bring_policies_too_and_policies_in_rego_are_asked_about_them() {
    let test = "cluster::policies::charts_and_programs_bring_policies_too_and_policies_in_rego_are_asked_about_them";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    make_kind(&cluster).await;
    let names = || cluster.kubectl(&["get", "clusterpolicies.kyverno.io", "--output=name"]).unwrap();
    let (first, second) = (policy("first", "1"), policy("second", "2"));
    let image = kubernetes_job::image(&cloud).await;
    let program = Work::KubernetesJob(kubernetes_job::work(&image, "", "{}"));
    let (artifact, chart) = images::chart_of(&cloud, "test", "example.invalid/test:1").await;
    let mut found = Vec::new();

    let mut programs = Deploys::of(&cloud, image, program).await;
    let mut install = Deploys::of(&cloud, artifact, chart).await;
    for deploys in [&mut programs, &mut install] {
        outputs(deploys.deploy(&[("first", &first)]).await);
        found.push(names());
        outputs(deploys.remove(true).await);
        found.push(names());
    }
    // There is no release any more.
    outputs(install.remove(true).await);
    // A chart of which nothing changes brings a policy, unless a policy in Rego denies it.
    install.skip_noops();
    outputs(install.deploy(&[("first", &first)]).await);
    let text = "package freehold\ndeny contains input.review.object.metadata.name if input.review.kind.kind == \"ClusterPolicy\"\n";
    install.rego = Some(text);
    let denied = blocked(install.deploy(&[("first", &first), ("second", &second)]).await);
    let unchanged = names();
    install.rego = None;
    outputs(install.deploy(&[("first", &first), ("second", &second)]).await);

    assert_eq!(found, ["clusterpolicy.kyverno.io/first", "", "clusterpolicy.kyverno.io/first", ""]);
    assert!(denied.contains("denies this: second"), "{denied}");
    assert_eq!(unchanged, "clusterpolicy.kyverno.io/first");
    assert_eq!(names(), "clusterpolicy.kyverno.io/first\nclusterpolicy.kyverno.io/second");
}

#[tokio::test]
async fn a_policy_that_cannot_be_applied_stops_the_deploy() {
    let test = "cluster::policies::a_policy_that_cannot_be_applied_stops_the_deploy";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    make_kind(&cluster).await;
    let own = json!({ "apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": { "name": "first" },
        "spec": { "rules": [{ "name": "strict" }] } });
    cluster.apply("customer", &own);
    let (first, second) = (policy("first", "1"), policy("second", "2"));
    let same = own.to_string();
    let grants = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: all}\n";
    let mut install = Deploys::new(&cloud).await;

    // The API server refuses the policy itself, as Kyverno does with one that is not valid.
    let refused = reason(install.deploy(&[("Second", &policy("Second_", "2"))]).await);
    let taken = blocked(install.deploy(&[("first", &first), ("second", &second)]).await);
    let grants = blocked(install.deploy(&[("first", grants)]).await);
    let broken = blocked(install.deploy(&[("first", "a: [1")]).await);
    let twice = blocked(install.deploy(&[("a", &second), ("b", &second)]).await);
    let names = || cluster.kubectl(&["get", "clusterpolicies.kyverno.io", "--output=name"]).unwrap();
    let before = names();
    let untouched = cluster.object("configmap", NAMESPACE, "one");
    let named = format!("the cluster has {} already, from somebody else", "ClusterPolicy first");
    outputs(install.deploy(&[("first", &same)]).await);
    let (shared, shared_log) = (names(), install.bench.log());

    assert!(
        taken.contains("the cluster has another ClusterPolicy first already, which belongs to somebody else"),
        "{taken}"
    );
    assert!(
        grants.contains("`ClusterRoleBinding` of `rbac.authorization.k8s.io/v1` is not a kind of policy"),
        "{grants}"
    );
    assert!(
        broken.contains("policy `first` (of the vendor) cannot be evaluated: the text is not YAML: line "),
        "{broken}"
    );
    assert!(
        twice.contains("policy `b` (of the vendor) cannot be evaluated: ClusterPolicy second is in the app's"),
        "{twice}"
    );
    assert_eq!(
        (before.as_str(), shared.as_str()),
        ("clusterpolicy.kyverno.io/first", "clusterpolicy.kyverno.io/first")
    );
    let first = cluster.object("clusterpolicies.kyverno.io", NAMESPACE, "first");
    assert!(first["spec"]["rules"] == json!([{ "name": "strict" }]) && first.pointer(OWNER).is_none(), "{first}");
    assert!(shared_log.contains(&named), "{shared_log}");
    assert_eq!(untouched, Value::Null);
    assert!(
        !refused.1 && refused.0.contains("policy `Second`: the policy could not be put into the cluster"),
        "{refused:?}"
    );
}
