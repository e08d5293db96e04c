//! Helm charts, with the real program and a real API server.

mod ten_kills;

use std::collections::BTreeMap;

use freehold_protocol::order::{
    Artifact, CHART_CONFIG, CHART_LAYER, ClusterOf, InstallChart, Package, RemovePart, Work,
};
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::{Value, json};

use crate::artifacts::of_layer;
use crate::cloud::Cloud;
use crate::cluster::{self, Cluster, DEPLOYER, STRANGER};
use crate::fixture::{Bench, outputs, reason};

const CHART: &str = "apiVersion: v2\nname: web\nversion: 0.1.0\nappVersion: \"9\"\n";
/// The Deployment's pods are ready at once, or never, as the fake kubelet is told by their label.
const TEMPLATE: &str = r#"
{{- if .Values.broken }}{{ fail "the value `broken` is set" }}{{ end }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  text: {{ .Values.text | quote }}
  port: {{ .Values.port | quote }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web, fake-kubelet: {{ .Values.kubelet | quote }}}
    spec:
      containers: [{name: web, image: "example.invalid/web:1"}]
{{- if .Values.more }}
---
apiVersion: v1
kind: Service
metadata:
  name: more
spec:
  ports: [{port: 80}]
{{- end }}
{{- if .Values.claim }}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
{{- end }}
{{- range $number := until (int .Values.texts) }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: text-{{ $number }}
data:
  text: {{ $.Values.text | quote }}
{{- end }}
"#;

pub(crate) async fn chart(cloud: &Cloud) -> Artifact {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    let values = "text: none\nport: 80\nkubelet: run\nmore: false\nclaim: false\ntexts: 0\nbroken: false\n";
    for (name, text) in [("web/Chart.yaml", CHART), ("web/values.yaml", values), ("web/templates/all.yaml", TEMPLATE)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    let layer = tar.into_inner().unwrap().finish().unwrap();
    of_layer(cloud, Package::HelmChart, layer, (CHART_LAYER, CHART_CONFIG)).await
}

pub(crate) fn work(artifact: &Artifact, values: Value) -> Work {
    let values: BTreeMap<String, Value> = serde_json::from_value(values).unwrap();
    Work::HelmChart(InstallChart {
        component: "network".parse().unwrap(),
        artifact: artifact.clone(),
        cluster: ClusterOf::Sandbox,
        release: "web".into(),
        namespace: "{{ .nuon.install.id }}".into(),
        storage_driver: "configmap".into(),
        take_ownership: false,
        values,
        values_files: vec!["text: file\nport: 1\n".into(), "port: 2\n".into()],
    })
}

fn change(bench: &mut Bench, change: impl FnOnce(&mut InstallChart)) {
    bench.change_order(|order| {
        let Work::HelmChart(work) = &mut order.work else { panic!("a chart") };
        change(work);
    });
}

/// The next attempt removes what the one before made.
fn remove(bench: &mut Bench) {
    bench.next_attempt();
    bench.change_order(|order| {
        let what = Box::new(order.work.made_by().clone());
        order.work = Work::Remove(RemovePart { what, destroy_data: false, removes_policies: false });
    });
}

#[tokio::test]
async fn a_release_is_installed_changed_and_said_object_by_object() {
    let test = "helm_chart::a_release_is_installed_changed_and_said_object_by_object";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let artifact = chart(&cloud).await;
    let with = |values| work(&artifact, values);
    let mut bench = Cluster::bench(&cloud, DEPLOYER, with(json!({ "port": "443", "more": "true" })), &artifact).await;

    let first = outputs(execute(&bench.job).await);
    let first_log = bench.log();
    let settings = cluster.object("configmap", "globex-prod", "settings")["data"].clone();
    let web = cluster.object("deployment", "globex-prod", "web");
    bench.next_attempt();
    let again = outputs(execute(&bench.job).await);
    let again_log = bench.log();
    bench.next_attempt();
    bench.change_order(|order| order.skip_noops = true);
    let skipped = outputs(execute(&bench.job).await);
    let skipped_log = bench.log();
    bench.next_attempt();
    bench.change_order(|order| order.work = with(json!({ "text": "value" })));
    let changed = outputs(execute(&bench.job).await);
    let changed_log = bench.log();
    let settings_after = cluster.object("configmap", "globex-prod", "settings");

    println!("{first_log}\n{again_log}\n{changed_log}");
    let outputs_at = |revision: u32| json!({ "release": "web", "namespace": "globex-prod", "revision": revision, "chart": "web-0.1.0", "app_version": "9" });
    assert_eq!([first, again, skipped, changed], [outputs_at(1), outputs_at(2), outputs_at(2), outputs_at(3)]);
    assert!(skipped_log.contains("nothing is applied (`skip_noops`)"), "{skipped_log}");
    assert_eq!(settings, json!({ "text": "file", "port": "443" }));
    let ours = json!({ "freehold.dev/component": "network", "freehold.dev/install": "globex-prod",
        "app.kubernetes.io/managed-by": "Helm" });
    assert_eq!(web["metadata"]["labels"], ours);
    assert_eq!(web["spec"]["template"]["metadata"]["labels"], json!({ "app": "web", "fake-kubelet": "run" }));
    assert_eq!(settings_after["metadata"]["labels"], ours, "an upgrade keeps the labels");
    assert!(
        first_log.contains("3 to create, 0 to update, 0 to delete, 0 unchanged\n  + ConfigMap globex-prod/settings")
    );
    assert!(again_log.contains("0 to create, 0 to update, 0 to delete, 3 unchanged\n"));
    assert!(changed_log.contains("0 to create, 1 to update, 1 to delete, 1 unchanged\n"));
    assert!(changed_log.contains("  ~ ConfigMap globex-prod/settings\n  - Service globex-prod/more\n"));
    assert_eq!(cluster.object("service", "globex-prod", "more"), Value::Null);
    let plan = cloud.object("plans/job_00000000000000000001/1.4.yaml").await.expect("a plan");
    assert!(changed_log.contains(freehold_protocol::Digest::of(&plan).as_str()));
    assert_eq!(cluster.revisions("configmap", "globex-prod", "web"), ["superseded", "superseded", "deployed"]);

    remove(&mut bench);
    outputs(execute(&bench.job).await);
    let removed_log = bench.log();
    remove(&mut bench);
    outputs(execute(&bench.job).await);

    assert!(removed_log.contains("0 to create, 0 to update, 2 to delete, 0 unchanged\n"), "{removed_log}");
    assert!(cluster.revisions("configmap", "globex-prod", "web").is_empty());
    assert_eq!(cluster.object("deployment", "globex-prod", "web"), Value::Null);
    assert!(bench.log().contains("release `web` does not exist"));
}

#[tokio::test]
async fn an_upgrade_deletes_no_claim_that_nobody_marked() {
    let test = "helm_chart::an_upgrade_deletes_no_claim_that_nobody_marked";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let artifact = chart(&cloud).await;
    let mut bench = Cluster::bench(&cloud, DEPLOYER, work(&artifact, json!({ "claim": true })), &artifact).await;
    let claim = || cluster.object("persistentvolumeclaim", "globex-prod", "data");

    outputs(execute(&bench.job).await);
    bench.next_attempt();
    bench.change_order(|order| order.work = work(&artifact, json!({ "text": "second" })));
    let (refused, partial) = reason(execute(&bench.job).await);
    let unchanged = (cluster.revisions("configmap", "globex-prod", "web"), claim());
    let keep = "helm.sh/resource-policy=keep";
    cluster.kubectl(&["annotate", "persistentvolumeclaim", "data", "--namespace=globex-prod", keep]).unwrap();
    bench.next_attempt();
    let changed = outputs(execute(&bench.job).await);
    let log = bench.log();

    println!("{refused}\n{log}");
    let message = "component `network`: the deploy would delete objects that hold data: `PersistentVolumeClaim \
                globex-prod/data`; nothing was changed. Put them back";
    assert!(refused.starts_with(message) && !partial, "{refused}");
    assert_eq!(unchanged.0, ["deployed"]);
    assert_eq!(changed["revision"], 2);
    let stays = "  = PersistentVolumeClaim globex-prod/data stays in the cluster: it is marked `helm.sh/resource-policy: keep`\n";
    assert!(log.contains(stays));
    for claim in [unchanged.1, claim()] {
        assert_eq!(claim["metadata"]["deletionTimestamp"], Value::Null);
        assert_ne!(claim, Value::Null);
    }
}

#[tokio::test]
async fn what_cannot_be_a_release_changes_nothing_and_says_why() {
    let test = "helm_chart::what_cannot_be_a_release_changes_nothing_and_says_why";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let artifact = chart(&cloud).await;
    let mut bench = Cluster::bench(&cloud, DEPLOYER, work(&artifact, json!({ "broken": true })), &artifact).await;
    let others =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "settings", "namespace": "default" } });
    cluster.apply("person", &others);

    let (broken, partial_broken) = reason(execute(&bench.job).await);
    bench.next_attempt();
    bench.change_order(|order| order.work = work(&artifact, json!({})));
    change(&mut bench, |work| work.values_files.push("a: [\n".into()));
    let (no_yaml, partial_yaml) = reason(execute(&bench.job).await);
    bench.next_attempt();
    change(&mut bench, |work| {
        work.values_files.clear();
        work.namespace = "default".into();
    });
    let (owned, partial_owned) = reason(execute(&bench.job).await);
    bench.next_attempt();
    change(&mut bench, |work| work.take_ownership = true);
    let taken = outputs(execute(&bench.job).await);
    bench.next_attempt();
    Cluster::enter(&cloud, STRANGER, &mut bench).await;
    let (stranger, _) = reason(execute(&bench.job).await);

    assert!(
        broken.starts_with("component `network`: the chart does not render: ")
            && broken.contains("the value `broken` is set"),
        "{broken}"
    );
    assert!(no_yaml.starts_with("component `network`, values file 3: it is not YAML: line "), "{no_yaml}");
    assert!(
        owned.contains("ConfigMap default/settings is in the cluster already and belongs to no release of Helm"),
        "{owned}"
    );
    assert!(!partial_broken && !partial_yaml && !partial_owned);
    assert_eq!(taken["revision"], 1);
    assert_eq!(
        stranger,
        "component `network`: cluster `one` refuses the token of this job: the job's role has no access entry there; \
         add an access entry for the role to the cluster (`eks:CreateAccessEntry`)"
    );
    assert!(cluster.kubectl(&["get", "namespace", "globex-prod"]).is_err(), "nothing was made there");
}

#[tokio::test]
async fn a_release_that_is_not_ready_in_time_has_failed_and_the_next_attempt_resumes() {
    let test = "helm_chart::a_release_that_is_not_ready_in_time_has_failed_and_the_next_attempt_resumes";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let artifact = chart(&cloud).await;
    let held = work(&artifact, json!({ "kubelet": "hold", "claim": true }));
    let mut bench = Cluster::bench(&cloud, DEPLOYER, held, &artifact).await;
    bench.change_order(|order| order.timeout_secs = 30);

    let (late, partial) = reason(execute(&bench.job).await);
    let failed = cluster.revisions("configmap", "globex-prod", "web");
    bench.next_attempt();
    bench.change_order(|order| order.work = work(&artifact, json!({})));
    let (without_claim, partial_without) = reason(execute(&bench.job).await);
    bench.next_attempt();
    bench.change_order(|order| order.work = work(&artifact, json!({ "claim": true })));
    let done = outputs(execute(&bench.job).await);

    assert!(late.starts_with("component `network`: `helm upgrade` ended with exit code 1: ") && partial, "{late}");
    // Helm would upgrade from the failed revision, because none was deployed.
    let message = "the deploy would delete objects that hold data: `PersistentVolumeClaim globex-prod/data`";
    assert!(without_claim.contains(message) && !partial_without, "{without_claim}");
    assert_eq!(done["revision"], 2);
    assert_eq!(failed, ["failed"]);
    assert_eq!(cluster.revisions("configmap", "globex-prod", "web"), ["superseded", "deployed"]);
}

#[tokio::test]
async fn a_release_that_somebody_else_has_pending_is_left_alone() {
    let test = "helm_chart::a_release_that_somebody_else_has_pending_is_left_alone";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let artifact = chart(&cloud).await;
    let mut bench = Cluster::bench(&cloud, DEPLOYER, work(&artifact, json!({})), &artifact).await;
    outputs(execute(&bench.job).await);
    let pending = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "sh.helm.release.v1.web.v2",
        "namespace": "globex-prod",
        "labels": { "owner": "helm", "name": "web", "version": "2", "status": "pending-upgrade" } } });
    cluster.apply("person", &pending);

    bench.next_attempt();
    let (first, partial) = reason(execute(&bench.job).await);
    bench.next_attempt();
    let (second, _) = reason(execute(&bench.job).await);

    assert!(first.contains("release `web` in namespace `globex-prod` is `pending-upgrade` at revision 2"), "{first}");
    assert!(first.contains("somebody else is changing it") && !partial, "{first}");
    assert_eq!(second, first, "an attempt that refused has left nothing behind");
    assert_eq!(cluster.revisions("configmap", "globex-prod", "web"), ["deployed", "pending-upgrade"]);
}
