//! Kyverno policies in a cluster, with a real API server. Kyverno itself does not run there: the kind of its policies is a
//! definition that takes every object, and nothing asks them.

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
use crate::cluster::{self, Cluster, DEPLOYER};
use crate::fixture::{Bench, outputs, reason};

const NAMESPACE: &str = "globex-prod";
const OWNER: &str = "/metadata/annotations/freehold~1component";

fn policy(name: &str, message: &str) -> String {
    format!(
        "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {{name: {name}}}\nspec:\n  rules:\n  - name: one\n    \
         validate: {{message: \"{message} {{{{ request.object }}}}\"}}\n"
    )
}

/// The kind of Kyverno's policies, for every field.
fn kyverno() -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "clusterpolicies.kyverno.io" },
        "spec": { "group": "kyverno.io", "scope": "Cluster",
            "names": { "kind": "ClusterPolicy", "plural": "clusterpolicies", "singular": "clusterpolicy" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }] } })
}

/// An install that deploys one component into a cluster.
struct Deploys<'a> {
    cloud: &'a Cloud,
    artifact: Artifact,
    work: Work,
    bench: Bench,
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
        let bench = Cluster::bench(cloud, DEPLOYER, work.clone(), &artifact).await;
        Self { cloud, artifact, work, bench }
    }

    async fn run(&mut self, work: Work, policies: &[(&str, &str)]) -> Outcome {
        self.bench.next_attempt();
        self.bench.job.grants = self.cloud.grants(&self.artifact, 0, "");
        let policy = |(name, text): &(&str, &str)| OrderPolicy::new(name, PolicyEngine::Kyverno, text).unwrap();
        self.bench.change_order(|order| {
            order.work = work;
            order.policies = policies.iter().map(policy).collect();
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

    fn warnings(&self) -> Vec<String> {
        self.bench.job.policies.results().into_iter().flat_map(|one| one.warn).collect()
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
    let test = "cluster_policies::policies_are_in_the_cluster_before_a_component_and_as_long_as_the_app";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let found = |name: &str| cluster.object("clusterpolicies.kyverno.io", NAMESPACE, name);
    let names = || cluster.kubectl(&["get", "clusterpolicies.kyverno.io", "--output=name"]).unwrap();
    let (first, second, other) = (policy("first", "1"), policy("second", "2"), policy("first", "3"));
    let mut install = Deploys::new(&cloud).await;

    // A cluster without Kyverno: the deploy continues, and says that nothing asks the policy.
    outputs(install.deploy(&[("first", &first)]).await);
    let without = install.warnings();
    cluster.apply("customer", &kyverno());
    cluster.kubectl(&["wait", "--for=condition=established", "crd/clusterpolicies.kyverno.io"]).unwrap();
    outputs(install.deploy(&[("first", &first), ("second", &second)]).await);
    let (log, both, with) = (install.bench.log(), names(), install.warnings());
    let made = found("first");
    outputs(install.deploy(&[("first", &first), ("second", &second)]).await);
    let (again, unchanged) = (install.bench.log(), found("first"));
    // A version with one policy less, and another text.
    outputs(install.deploy(&[("first", &other)]).await);
    let (one, changed) = (names(), found("first"));
    outputs(install.remove(false).await);
    let after_one = names();
    outputs(install.deploy(&[("first", &other)]).await);
    outputs(install.remove(true).await);
    let after_all = names();
    // A cluster counts all its changes.
    let number = |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    outputs(install.deploy(&[("first", &first)]).await);
    let (policy, component) = (number(&found("first")), number(&cluster.object("configmap", NAMESPACE, "one")));

    assert!(without.len() == 1 && without[0].contains("does not have the kind `ClusterPolicy` of `kyverno.io/v1`"));
    assert_eq!(with, Vec::<String>::new());
    assert_eq!(both, "clusterpolicy.kyverno.io/first\nclusterpolicy.kyverno.io/second");
    assert!(log.contains("applied policy `first` to the cluster\n"), "{log}");
    assert_eq!(made.pointer(OWNER).unwrap(), "acme--globex-prod/policies:kyverno");
    assert_eq!(made["spec"]["rules"][0]["validate"]["message"], "1 {{ request.object }}");
    assert!(!again.contains("applied policy"), "{again}");
    assert_eq!(unchanged["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    assert_eq!(
        (one.as_str(), after_one.as_str()),
        ("clusterpolicy.kyverno.io/first", "clusterpolicy.kyverno.io/first")
    );
    assert_eq!(changed["spec"]["rules"][0]["validate"]["message"], "3 {{ request.object }}");
    assert_eq!(after_all, "");
    assert!(policy < component, "the policy came with change {policy}, and the component with {component}");
}

#[tokio::test]
async fn a_policy_that_cannot_be_applied_stops_the_deploy() {
    let test = "cluster_policies::a_policy_that_cannot_be_applied_stops_the_deploy";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    cluster.apply("customer", &kyverno());
    cluster.kubectl(&["wait", "--for=condition=established", "crd/clusterpolicies.kyverno.io"]).unwrap();
    let own = json!({ "apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": { "name": "first" },
        "spec": { "strict": true } });
    cluster.apply("customer", &own);
    let (first, second) = (policy("first", "1"), policy("second", "2"));
    let grants = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: all}\n";
    let mut install = Deploys::new(&cloud).await;

    let taken = blocked(install.deploy(&[("first", &first), ("second", &second)]).await);
    let grants = blocked(install.deploy(&[("first", grants)]).await);
    let broken = blocked(install.deploy(&[("first", "a: [1")]).await);
    let names = cluster.kubectl(&["get", "clusterpolicies.kyverno.io", "--output=name"]).unwrap();
    let untouched = cluster.object("configmap", NAMESPACE, "one");
    // The API server refuses the policy itself, as Kyverno does with one that is not valid.
    let refused = reason(install.deploy(&[("Second", &policy("Second_", "2"))]).await);

    assert!(
        taken.contains("policy `first`: the cluster has a ClusterPolicy first already, which belongs to somebody else")
    );
    assert!(
        grants.contains("`ClusterRoleBinding` of `rbac.authorization.k8s.io/v1` is not a kind of Kyverno"),
        "{grants}"
    );
    assert!(
        broken.contains("policy `first` (of the vendor) cannot be evaluated: the text is not YAML: line "),
        "{broken}"
    );
    assert_eq!(names, "clusterpolicy.kyverno.io/first");
    assert_eq!(cluster.object("clusterpolicies.kyverno.io", NAMESPACE, "first")["spec"], json!({ "strict": true }));
    assert_eq!(untouched, Value::Null);
    assert!(
        !refused.1 && refused.0.contains("policy `Second`: the policy could not be applied to the cluster"),
        "{refused:?}"
    );
}
