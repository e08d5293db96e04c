//! Kubernetes manifests, with a real API server.

mod ten_kills;

use freehold_protocol::order::{
    ApplyManifest, Artifact, ClusterOf, KUSTOMIZATION_ARTIFACT, KUSTOMIZATION_LAYER, MANIFEST_ARTIFACT, MANIFEST_LAYER,
    Package, RemovePart, Work,
};
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::{Value, json};

use crate::artifacts::of_layer;
use crate::cloud::Cloud;
use crate::cluster::{self, Cluster, DEPLOYER, READER};
use crate::fixture::{Bench, outputs, reason};

pub(crate) async fn manifest(cloud: &Cloud, text: &str) -> Artifact {
    let layer = text.as_bytes().to_vec();
    of_layer(cloud, Package::KubernetesManifest, layer, (MANIFEST_LAYER, MANIFEST_ARTIFACT)).await
}

pub(crate) fn work(artifact: &Artifact) -> Work {
    Work::KubernetesManifest(ApplyManifest {
        component: "network".parse().unwrap(),
        artifact: artifact.clone(),
        cluster: ClusterOf::Sandbox,
        namespace: "{{ .nuon.install.id }}".into(),
    })
}

/// The next attempt, with another manifest.
async fn next(cloud: &Cloud, bench: &mut Bench, text: &str) {
    let artifact = manifest(cloud, text).await;
    bench.next_attempt();
    bench.job.grants = cloud.grants(&artifact, 0, "");
    bench.change_order(|order| order.work = work(&artifact));
}

const TWO: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data: {install: \"{{ .nuon.install.id }}\", mode: \"0644\"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: two}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      volumes: [{name: v, configMap: {name: one, defaultMode: 0644}}]
      containers: [{name: web, image: \"example.invalid/web:1\"}]
";

#[tokio::test]
async fn objects_are_applied_and_those_that_are_gone_are_pruned() {
    let test = "kubernetes_manifest::objects_are_applied_and_those_that_are_gone_are_pruned";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let artifact = manifest(&cloud, TWO).await;
    let mut bench = Cluster::bench(&cloud, DEPLOYER, work(&artifact), &artifact).await;

    let first = outputs(execute(&bench.job).await);
    let first_log = bench.log();
    // As an object that an earlier version of the runner made.
    cluster.kubectl(&["label", "configmap", "one", "--namespace=globex-prod", "freehold.dev/install-"]).unwrap();
    bench.next_attempt();
    outputs(execute(&bench.job).await);
    let again_log = bench.log();
    bench.next_attempt();
    bench.change_order(|order| order.skip_noops = true);
    let skipped = outputs(execute(&bench.job).await);
    let skipped_log = bench.log();
    // Somebody else changes a field that the manifest has not, and makes an object of the same kind.
    cluster.kubectl(&["annotate", "configmap", "one", "--namespace=globex-prod", "by=person"]).unwrap();
    cluster.kubectl(&["create", "configmap", "three", "--namespace=globex-prod"]).unwrap();
    let text = TWO.replace("name: two", "name: four").replace("0644\"", "0600\"");
    next(&cloud, &mut bench, &text).await;
    let changed = outputs(execute(&bench.job).await);
    let changed_log = bench.log();

    println!("{first_log}\n{again_log}\n{changed_log}");
    assert_eq!(
        first,
        json!({ "namespace": "globex-prod", "objects":
            ["ConfigMap globex-prod/one", "ConfigMap globex-prod/two", "Deployment globex-prod/web"] })
    );
    assert_eq!(skipped, first);
    assert!(skipped_log.contains("nothing is applied (`skip_noops`)"), "{skipped_log}");
    assert_eq!(changed["objects"][1], "ConfigMap globex-prod/four");
    assert!(first_log.contains("3 to create, 0 to update, 0 to delete, 0 unchanged\n  + ConfigMap globex-prod/one\n"));
    assert!(again_log.contains("0 to create, 0 to update, 0 to delete, 3 unchanged\n"));
    assert!(changed_log.contains("1 to create, 1 to update, 1 to delete, 1 unchanged\n"));
    assert!(changed_log.contains("  - ConfigMap globex-prod/two\n"));
    let one = cluster.object("configmap", "globex-prod", "one");
    assert_eq!(one["data"], json!({ "install": "globex-prod", "mode": "0600" }));
    assert_eq!(one["metadata"]["annotations"]["by"], "person");
    assert_eq!(cluster.object("configmap", "globex-prod", "two"), Value::Null);
    assert_ne!(cluster.object("configmap", "globex-prod", "three"), Value::Null);
    let web = cluster.object("deployment", "globex-prod", "web");
    assert_eq!(web["spec"]["template"]["spec"]["volumes"][0]["configMap"]["defaultMode"], 420);
    let labels = json!({ "freehold.dev/component": "network", "freehold.dev/install": "globex-prod" });
    assert_eq!((&one["metadata"]["labels"], &web["metadata"]["labels"]), (&labels, &labels));
    let pods = &web["spec"]["template"]["metadata"]["labels"];
    assert_eq!((&pods["app"], &pods["freehold.dev/install"]), (&json!("web"), &json!("globex-prod")));
    assert_eq!(web["spec"]["selector"], json!({ "matchLabels": { "app": "web" } }));
}

#[tokio::test]
async fn what_a_person_edited_by_kubectl_is_changed_back_and_what_others_manage_is_not() {
    let test = "kubernetes_manifest::what_a_person_edited_by_kubectl_is_changed_back_and_what_others_manage_is_not";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let artifact = manifest(&cloud, TWO).await;
    let mut bench = Cluster::bench(&cloud, DEPLOYER, work(&artifact), &artifact).await;
    let kubectl = |words: &[&str]| cluster.kubectl(&[words, &["--namespace=globex-prod"]].concat()).unwrap();
    let data = |name: &str| cluster.object("configmap", "globex-prod", name)["data"].clone();
    let patch = ["patch", "configmap", "one", "--type=merge", "--patch"];

    outputs(execute(&bench.job).await);
    kubectl(&[&patch[..], &[r#"{"data":{"mode":"0400"}}"#]].concat());
    kubectl(&["set", "image", "deployment/web", "web=example.invalid/web:2"]);
    bench.next_attempt();
    outputs(execute(&bench.job).await);
    let (log, repaired) = (bench.log(), data("one"));
    let web = cluster.object("deployment", "globex-prod", "web")["spec"]["template"]["spec"].clone();
    // Somebody made an object that no deploy has applied.
    kubectl(&["create", "configmap", "three", "--from-literal=mode=0400"]);
    let three = TWO.replace("metadata: {name: two}", "metadata: {name: three}\ndata: {mode: \"0644\"}");
    next(&cloud, &mut bench, &three).await;
    let of_somebody = reason(execute(&bench.job).await);
    // Somebody edits one field, and a program manages another one.
    kubectl(&[&patch[..], &[r#"{"data":{"install":"by hand"}}"#]].concat());
    kubectl(&[&patch[..], &[r#"{"data":{"mode":"0500"}}"#, "--field-manager=autoscaler"]].concat());
    next(&cloud, &mut bench, TWO).await;
    let of_a_program = reason(execute(&bench.job).await);

    println!("{log}");
    assert!(log.contains("0 to create, 2 to update, 0 to delete, 1 unchanged\n"));
    let line = "ConfigMap globex-prod/one: `data.mode` was edited by `kubectl-patch`; a deploy changes it back\n";
    assert!(log.contains(line) && log.contains("].image` was edited by `kubectl-set`; a deploy changes it back\n"));
    assert_eq!(repaired, json!({ "install": "globex-prod", "mode": "0644" }));
    assert_eq!(web["containers"][0]["image"], "example.invalid/web:1");
    assert!(of_somebody.0.contains("ConfigMap globex-prod/three: `data.mode` belongs to `kubectl-create`"));
    assert_eq!(data("three"), json!({ "mode": "0400" }));
    for owned in ["`data.install` belongs to `kubectl-patch`", "`data.mode` belongs to `autoscaler`"] {
        assert!(of_a_program.0.contains(owned), "{of_a_program:?}");
    }
    assert_eq!(data("one"), json!({ "install": "by hand", "mode": "0500" }));
    assert!(!of_somebody.1 && !of_a_program.1, "nothing was changed");
}

/// Returns a manifest with a ConfigMap, whose value is `text`, and with these claims.
fn claims(text: &str, names: &[&str]) -> String {
    let settings =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{text: \"{text}\"}}\n");
    let claims = names.iter().map(|name| {
        format!(
            "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}}}\nspec:\n  accessModes: \
             [ReadWriteOnce]\n  resources: {{requests: {{storage: 1Gi}}}}\n"
        )
    });
    std::iter::once(settings).chain(claims).collect()
}

#[tokio::test]
async fn a_deploy_deletes_no_claim_that_nobody_marked_or_deleted() {
    let test = "kubernetes_manifest::a_deploy_deletes_no_claim_that_nobody_marked_or_deleted";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let claim = |name: &str| cluster.object("persistentvolumeclaim", "globex-prod", name);
    let settings = || cluster.object("configmap", "globex-prod", "settings");
    let artifact = manifest(&cloud, &claims("first", &["data", "more"])).await;
    let mut bench = Cluster::bench(&cloud, DEPLOYER, work(&artifact), &artifact).await;

    outputs(execute(&bench.job).await);
    next(&cloud, &mut bench, &claims("second", &[])).await;
    let refused = reason(execute(&bench.job).await);
    let unchanged = (settings()["data"]["text"].clone(), claim("data"), claim("more"));
    let keep = "helm.sh/resource-policy=keep";
    cluster.kubectl(&["annotate", "persistentvolumeclaim", "data", "--namespace=globex-prod", keep]).unwrap();
    cluster.kubectl(&["delete", "persistentvolumeclaim", "more", "--namespace=globex-prod", "--wait=false"]).unwrap();
    next(&cloud, &mut bench, &claims("second", &[])).await;
    let changed = outputs(execute(&bench.job).await);
    let changed_log = bench.log();

    println!("{refused:?}\n{changed_log}");
    assert_eq!(
        refused.0,
        "component `network`: the deploy would delete objects that hold data: `PersistentVolumeClaim \
         globex-prod/data`, `PersistentVolumeClaim globex-prod/more`; nothing was changed. Put them back into the \
         component, or mark each that has to stay with `kubectl annotate KIND NAME --namespace NAMESPACE \
         helm.sh/resource-policy=keep`, or delete it with `kubectl delete`; then deploy again"
    );
    assert!(!refused.1, "nothing was changed");
    assert_eq!(unchanged.0, "first");
    for claim in [unchanged.1, unchanged.2] {
        assert_eq!(claim["metadata"]["deletionTimestamp"], Value::Null);
        assert_ne!(claim, Value::Null);
    }
    assert_eq!(changed["objects"], json!(["ConfigMap globex-prod/settings"]));
    assert_eq!(settings()["data"]["text"], "second");
    let stays = "  = PersistentVolumeClaim globex-prod/data stays in the cluster: it is marked `helm.sh/resource-policy: keep`\n";
    assert!(changed_log.contains(stays));
    assert_eq!(claim("data")["metadata"]["deletionTimestamp"], Value::Null);
    assert_ne!(claim("data"), Value::Null);

    // The claim comes back into the manifest, and a removal leaves it because of its mark.
    next(&cloud, &mut bench, &claims("third", &["data"])).await;
    outputs(execute(&bench.job).await);
    bench.next_attempt();
    bench.change_order(|order| {
        let what = Box::new(order.work.made_by().clone());
        order.work = Work::Remove(RemovePart { what, destroy_data: false, removes_policies: false });
    });
    outputs(execute(&bench.job).await);

    assert!(bench.log().contains(stays), "{}", bench.log());
    assert_eq!(claim("data")["metadata"]["deletionTimestamp"], Value::Null);
    assert_ne!(claim("data"), Value::Null);
    assert_eq!(settings(), Value::Null);
}

/// A definition and an object of its kind, which the cluster does not know before.
const DEFINITION: &str = "\
apiVersion: example.org/v1
kind: Thing
metadata: {name: thing}
spec: {size: 3}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

#[tokio::test]
async fn a_kind_may_come_with_its_objects_and_mistakes_are_named() {
    let test = "kubernetes_manifest::a_kind_may_come_with_its_objects_and_mistakes_are_named";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let artifact = manifest(&cloud, TWO.replace("kind: Deployment", "kind: Deploiment").as_str()).await;
    let mut bench = Cluster::bench(&cloud, DEPLOYER, work(&artifact), &artifact).await;

    let unknown = reason(execute(&bench.job).await);
    next(&cloud, &mut bench, "a: [\n").await;
    let no_yaml = reason(execute(&bench.job).await);
    next(&cloud, &mut bench, &TWO.replace("containers:", "continers:")).await;
    let invalid = reason(execute(&bench.job).await);
    next(&cloud, &mut bench, TWO).await;
    Cluster::enter(&cloud, READER, &mut bench).await;
    let forbidden = reason(execute(&bench.job).await);
    Cluster::enter(&cloud, DEPLOYER, &mut bench).await;
    cluster.kubectl(&["create", "namespace", "globex-prod"]).unwrap();
    let theirs = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "one", "namespace": "globex-prod" },
        "data": { "mode": "0400" } });
    cluster.apply("person", &theirs);
    next(&cloud, &mut bench, TWO).await;
    let conflict = reason(execute(&bench.job).await);
    next(&cloud, &mut bench, DEFINITION).await;
    let defined = outputs(execute(&bench.job).await);
    next(&cloud, &mut bench, DEFINITION).await;
    bench.change_order(|order| {
        let Work::KubernetesManifest(work) = &mut order.work else { panic!("a manifest") };
        work.namespace = "other".into();
        order.install = "globex-test".parse().unwrap();
    });
    let others = reason(execute(&bench.job).await);

    assert!(
        unknown.0.starts_with(
            "component `network`: manifest, document 3: the cluster has no kind `Deploiment` of `apps/v1`"
        ),
        "{unknown:?}"
    );
    assert!(no_yaml.0.starts_with("component `network`: manifest is not YAML: line "), "{no_yaml:?}");
    assert!(
        invalid.0.starts_with(
            "component `network`: manifest, document 3: cluster `one` refuses Deployment globex-prod/web: "
        ),
        "{invalid:?}"
    );
    assert!(
        forbidden.0.contains("manifest, document 1: cluster `one` forbids a request of this job: "),
        "{forbidden:?}"
    );
    assert_eq!(
        conflict.0,
        "component `network`: manifest, document 1: other field managers own fields of ConfigMap globex-prod/one: \
         `data.mode` belongs to `person`; remove these fields from the manifest, or let their managers give them up"
    );
    assert!(
        others.0.contains("CustomResourceDefinition things.example.org belongs to `globex-prod/network`; remove it"),
        "{others:?}"
    );
    for failure in [unknown, no_yaml, invalid, forbidden, conflict, others] {
        assert!(!failure.1, "{failure:?}");
    }
    assert_eq!(defined["objects"][0], "CustomResourceDefinition things.example.org");
    assert_eq!(cluster.object("things.example.org", "globex-prod", "thing")["spec"]["size"], 3);
}

#[tokio::test]
async fn a_kustomization_is_rendered_with_the_patches_of_the_config() {
    let test = "kubernetes_manifest::a_kustomization_is_rendered_with_the_patches_of_the_config";
    if !have(&["bwrap", "kustomize|kubectl"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let patch = "- op: replace\n  path: /data/text\n  value: \"{{ .nuon.install.id }}\"\n";
    let options = json!({ "path": "./prod", "patches": [{ "target": { "kind": "ConfigMap" }, "patch": patch }] });
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    for (name, text) in [
        ("kustomization/prod/kustomization.yaml", "resources: [settings.yaml]\nnamePrefix: prod-\n".to_owned()),
        (
            "kustomization/prod/settings.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {text: none}\n".to_owned(),
        ),
        ("options.json", options.to_string()),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    let layer = tar.into_inner().unwrap().finish().unwrap();
    let types = (KUSTOMIZATION_LAYER, KUSTOMIZATION_ARTIFACT);
    let artifact = of_layer(&cloud, Package::KubernetesManifest, layer, types).await;
    let bench = Cluster::bench(&cloud, DEPLOYER, work(&artifact), &artifact).await;

    let outcome = execute(&bench.job).await;

    println!("{}", bench.log());
    assert_eq!(outputs(outcome)["objects"], json!(["ConfigMap globex-prod/prod-settings"]));
    assert_eq!(cluster.object("configmap", "globex-prod", "prod-settings")["data"]["text"], "globex-prod");
}
