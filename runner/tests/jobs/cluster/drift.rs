//! Drift of charts and manifests: a check finds what somebody changed in the cluster, without its values, and changes
//! nothing. The next deploy repairs it.

use freehold_protocol::order::drift::OUTPUT;
use freehold_protocol::order::{DetectDrift, Work};
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, DEPLOYER};
use crate::fixture::{Bench, outputs, reason};
use crate::{helm_chart, kubernetes_manifest};

const NAMESPACE: &str = "globex-prod";
const BY_HAND: &str = "changed-by-hand-4711";
/// A value of the vendor's.
const SECRET: &str = "the-value";
const IN_SYNC: &str = "nothing differs from the last deploy\n";

/// Returns a manifest with two ConfigMaps and a Secret.
fn text() -> String {
    format!(
        "\
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings}}
data: {{text: first, more: second}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: gone}}
---
apiVersion: v1
kind: Secret
metadata: {{name: keys}}
stringData: {{token: {SECRET}}}
"
    )
}

/// Deploys once more, and returns the log.
async fn deploy(bench: &mut Bench, work: &Work) -> String {
    bench.next_attempt();
    bench.change_order(|order| order.work = work.clone());
    outputs(execute(&bench.job).await);
    bench.log()
}

/// Checks for drift what a deploy has made. Returns the resources that differ, and the log.
async fn check(bench: &mut Bench, deployed: &Work) -> (Value, String) {
    begin_check(bench, deployed);
    let found = outputs(execute(&bench.job).await)[OUTPUT]["resources"].clone();
    (found, bench.log())
}

fn begin_check(bench: &mut Bench, deployed: &Work) {
    bench.next_attempt();
    bench.change_order(|order| order.work = Work::DetectDrift(DetectDrift { what: Box::new(deployed.clone()) }));
}

/// Changes an object as a person with rights in the cluster does.
fn patch(cluster: &Cluster, kind: &str, name: &str, patch: &Value) {
    let (namespace, patch) = (format!("--namespace={NAMESPACE}"), format!("--patch={patch}"));
    cluster.kubectl(&["patch", kind, name, &namespace, "--type=merge", &patch]).unwrap();
}

/// Returns the version of an object, which the API server raises with each change.
fn version(cluster: &Cluster, kind: &str, name: &str) -> Value {
    cluster.object(kind, NAMESPACE, name)["metadata"]["resourceVersion"].clone()
}

#[tokio::test]
async fn what_somebody_changed_of_a_manifest_is_found_without_values_and_repaired_by_a_deploy() {
    let test = "cluster::drift::what_somebody_changed_of_a_manifest_is_found_without_values_and_repaired_by_a_deploy";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let artifact = kubernetes_manifest::manifest(&cloud, &text()).await;
    let work = kubernetes_manifest::work(&artifact);
    let mut bench = Cluster::bench(&cloud, DEPLOYER, work.clone(), &artifact).await;
    let object = |kind: &str, name: &str| cluster.object(kind, NAMESPACE, name);
    let versions = || [("configmap", "settings"), ("secret", "keys")].map(|(kind, name)| version(&cluster, kind, name));

    deploy(&mut bench, &work).await;
    // A field that the manifest does not have belongs to whoever adds it.
    cluster.kubectl(&["annotate", "configmap", "settings", "--namespace=globex-prod", "by=person"]).unwrap();
    let (clean, log_of_clean) = check(&mut bench, &work).await;
    patch(&cluster, "configmap", "settings", &json!({ "data": { "text": BY_HAND } }));
    patch(&cluster, "secret", "keys", &json!({ "stringData": { "token": BY_HAND } }));
    cluster.kubectl(&["delete", "configmap", "gone", "--namespace=globex-prod"]).unwrap();
    let before = versions();
    let (drifted, log_of_drifted) = check(&mut bench, &work).await;
    let after = versions();
    let log_of_repair = deploy(&mut bench, &work).await;
    let (repaired, _) = check(&mut bench, &work).await;

    println!("{log_of_drifted}\n{log_of_repair}");
    assert_eq!((clean, repaired), (json!([]), json!([])));
    assert!(log_of_clean.contains(IN_SYNC));
    assert_eq!(
        drifted,
        json!([
            { "address": "ConfigMap globex-prod/gone", "kind": "ConfigMap", "change": "create" },
            { "address": "ConfigMap globex-prod/settings", "kind": "ConfigMap", "change": "update",
                "attributes": ["data.text"] },
            { "address": "Secret globex-prod/keys", "kind": "Secret", "change": "update", "attributes": ["data"] },
        ])
    );
    assert!(
        log_of_drifted.contains("drift: the next deploy would `update` ConfigMap globex-prod/settings: data.text\n")
    );
    for text in [drifted.to_string(), log_of_drifted, log_of_repair] {
        assert!(!text.contains(BY_HAND) && !text.contains(SECRET), "{text}");
    }
    assert_eq!(after, before, "a check changes nothing");
    assert_eq!(object("configmap", "settings")["data"], json!({ "text": "first", "more": "second" }));
    assert_eq!(object("configmap", "settings")["metadata"]["annotations"]["by"], "person");
    assert_eq!(object("secret", "keys")["data"]["token"], "dGhlLXZhbHVl");
    assert!(object("configmap", "gone").is_object());
}

#[tokio::test]
async fn what_somebody_changed_of_a_release_is_found_without_values_and_repaired_by_a_deploy() {
    let test = "cluster::drift::what_somebody_changed_of_a_release_is_found_without_values_and_repaired_by_a_deploy";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let artifact = helm_chart::chart(&cloud).await;
    let work = helm_chart::work(&artifact, json!({ "text": SECRET, "port": "443", "more": "true" }));
    let mut bench = Cluster::bench(&cloud, DEPLOYER, work.clone(), &artifact).await;
    let revisions = || cluster.revisions("configmap", NAMESPACE, "web");
    let versions = || (version(&cluster, "configmap", "settings"), revisions());

    deploy(&mut bench, &work).await;
    let (clean, log_of_clean) = check(&mut bench, &work).await;
    patch(&cluster, "configmap", "settings", &json!({ "data": { "text": BY_HAND } }));
    cluster.kubectl(&["scale", "deployment", "web", "--namespace=globex-prod", "--replicas=2"]).unwrap();
    cluster.kubectl(&["delete", "service", "more", "--namespace=globex-prod"]).unwrap();
    let before = versions();
    let (drifted, log_of_drifted) = check(&mut bench, &work).await;
    let after = versions();
    deploy(&mut bench, &work).await;
    let (repaired, _) = check(&mut bench, &work).await;
    let all = (revisions(), cluster.object("configmap", NAMESPACE, "settings")["data"].clone());
    // Somebody begins an upgrade by hand.
    let labels = json!({ "owner": "helm", "name": "web", "version": "3", "status": "pending-upgrade" });
    let metadata = json!({ "name": "sh.helm.release.v1.web.v3", "namespace": NAMESPACE, "labels": labels });
    cluster.apply("person", &json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata }));
    begin_check(&mut bench, &work);
    let unknown = reason(execute(&bench.job).await);

    println!("{log_of_drifted}");
    assert_eq!((clean, repaired), (json!([]), json!([])));
    assert!(log_of_clean.contains(IN_SYNC));
    assert_eq!(
        drifted,
        json!([
            { "address": "ConfigMap globex-prod/settings", "kind": "ConfigMap", "change": "update",
                "attributes": ["data.text"] },
            { "address": "Deployment globex-prod/web", "kind": "Deployment", "change": "update",
                "attributes": ["spec.replicas"] },
            { "address": "Service globex-prod/more", "kind": "Service", "change": "create" },
        ])
    );
    for text in [drifted.to_string(), log_of_drifted] {
        assert!(!text.contains(BY_HAND) && !text.contains(SECRET), "{text}");
    }
    assert_eq!(after, before, "a check changes nothing");
    assert_eq!(all.0, ["superseded", "deployed"]);
    assert_eq!(all.1, json!({ "text": SECRET, "port": "443" }));
    assert_eq!(cluster.object("deployment", NAMESPACE, "web")["spec"]["replicas"], 1);
    assert!(cluster.object("service", NAMESPACE, "more").is_object());
    let why = "component `network`: release `web` is `pending-upgrade` at revision 3, so there is no complete release to \
               compare with; deploy `network` again";
    assert_eq!(unknown, (why.to_owned(), false));
}
