//! Images of pod specs that are not in the install registry: named by default, refused when the customer wants that.
//! The API server here is Kubernetes 1.20, which has no `ValidatingAdmissionPolicy`.

use freehold_protocol::order::{
    ApplyManifest, Artifact, CHART_CONFIG, CHART_LAYER, ClusterOf, InstallChart, MANIFEST_ARTIFACT, MANIFEST_LAYER,
    Package, RemovePart, SyncImage, Work,
};
use freehold_runner::config::ClusterImages;
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::Value;

use crate::artifacts::of_layer;
use crate::cloud::Cloud;
use crate::cluster::{self, Cluster, DEPLOYER};
use crate::fixture::{Bench, outputs, reason};

const NAMESPACE: &str = "globex-prod";
const REFUSED: &str = "component `network`: its pods name images that are not in the install registry: ";

/// A settings object, and a CronJob with this image.
fn manifest(image: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: one}}\n---\napiVersion: batch/v1beta1\nkind: CronJob\n\
         metadata: {{name: nightly}}\nspec:\n  schedule: \"0 3 * * *\"\n  jobTemplate: {{spec: {{template: {{spec: \
         {{restartPolicy: Never, containers: [{{name: a, image: \"{image}\"}}]}}}}}}}}\n"
    )
}

async fn next(cloud: &Cloud, bench: &mut Bench, artifact: &Artifact, work: Work) {
    bench.next_attempt();
    bench.job.grants = cloud.grants(artifact, 0, "");
    bench.change_order(|order| order.work = work);
}

async fn manifest_of(cloud: &Cloud, image: &str) -> (Artifact, Work) {
    let layer = manifest(image).into_bytes();
    let artifact = of_layer(cloud, Package::KubernetesManifest, layer, (MANIFEST_LAYER, MANIFEST_ARTIFACT)).await;
    let work = Work::KubernetesManifest(ApplyManifest {
        component: "network".parse().unwrap(),
        artifact: artifact.clone(),
        cluster: ClusterOf::Sandbox,
        namespace: NAMESPACE.into(),
    });
    (artifact, work)
}

/// A chart whose release has no pod, and whose hook has one with this image.
pub(crate) async fn chart_of(cloud: &Cloud, hook: &str, image: &str) -> (Artifact, Work) {
    let job = format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n  annotations: {{helm.sh/hook: {hook}}}\nspec:\n  \
         template: {{spec: {{restartPolicy: Never, containers: [{{name: a, image: \"{image}\"}}]}}}}\n"
    );
    let settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n";
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    for (name, text) in [
        ("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 0.1.0\n"),
        ("web/templates/settings.yaml", settings),
        ("web/templates/job.yaml", &job),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    let layer = tar.into_inner().unwrap().finish().unwrap();
    let artifact = of_layer(cloud, Package::HelmChart, layer, (CHART_LAYER, CHART_CONFIG)).await;
    let work = Work::HelmChart(InstallChart {
        component: "network".parse().unwrap(),
        artifact: artifact.clone(),
        cluster: ClusterOf::Sandbox,
        release: "web".into(),
        namespace: NAMESPACE.into(),
        storage_driver: "configmap".into(),
        take_ownership: false,
        values: Default::default(),
        values_files: Vec::new(),
    });
    (artifact, work)
}

fn strict(bench: &mut Bench) {
    bench.change_config(|config| config.cluster_images = ClusterImages::InstallRegistry);
}

#[tokio::test]
async fn an_image_of_another_registry_is_named_or_refused() {
    let test = "cluster::images::an_image_of_another_registry_is_named_or_refused";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let (artifact, foreign) = manifest_of(&cloud, "example.invalid/nightly:1").await;
    let mut bench = Cluster::bench(&cloud, DEPLOYER, foreign.clone(), &artifact).await;
    strict(&mut bench);

    let refused = reason(execute(&bench.job).await);
    let refused_log = bench.log();
    let untouched = cluster.object("configmap", NAMESPACE, "one");
    bench.change_config(|config| config.cluster_images = ClusterImages::Any);
    next(&cloud, &mut bench, &artifact, foreign).await;
    outputs(execute(&bench.job).await);
    let named_log = bench.log();
    // The image as a component of the app, under the names that the runner gives it.
    let types = ("application/vnd.oci.image.layer.v1.tar", "application/vnd.example.image");
    let image = of_layer(&cloud, Package::Image, b"a program".to_vec(), types).await;
    let copy = Work::ContainerImage(SyncImage { component: "network".parse().unwrap(), artifact: image.clone() });
    next(&cloud, &mut bench, &image, copy).await;
    let copied = outputs(execute(&bench.job).await);
    let (repository, tag) = (copied["image"]["repository"].as_str().unwrap(), copied["image"]["tag"].as_str().unwrap());
    strict(&mut bench);
    let mut own_logs = Vec::new();
    for own in [format!("{repository}:{tag}"), copied["reference"].as_str().unwrap().to_owned()] {
        let (artifact, work) = manifest_of(&cloud, &own).await;
        next(&cloud, &mut bench, &artifact, work).await;
        outputs(execute(&bench.job).await);
        own_logs.push(bench.log());
    }

    assert!(!refused.1 && refused.0.starts_with(REFUSED), "{refused:?}");
    assert!(refused.0.contains("`example.invalid/nightly:1` (CronJob nightly); the customer lets"), "{refused:?}");
    assert!(
        refused_log.contains("images: 0 of the install registry, 1 others\n  `example.invalid/nightly:1` (CronJob")
    );
    assert_eq!(untouched, Value::Null);
    assert!(named_log.contains("images: 0 of the install registry, 1 others\n"), "{named_log}");
    for log in own_logs {
        assert!(log.contains("images: 1 of the install registry, 0 others\n"), "{log}");
        assert!(log.contains("the cluster has no `ValidatingAdmissionPolicy`"), "{log}");
    }
}

#[tokio::test]
async fn the_hooks_of_a_chart_are_looked_at_too() {
    let test = "cluster::images::the_hooks_of_a_chart_are_looked_at_too";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let (artifact, hook) = chart_of(&cloud, "pre-install", "example.invalid/migrate:1").await;
    let mut bench = Cluster::bench(&cloud, DEPLOYER, hook, &artifact).await;
    strict(&mut bench);

    let refused = reason(execute(&bench.job).await);
    let untouched = cluster.object("configmap", NAMESPACE, "settings");
    // Nothing runs the hooks of `helm test`.
    let (artifact, test_only) = chart_of(&cloud, "test", "example.invalid/test:1").await;
    next(&cloud, &mut bench, &artifact, test_only.clone()).await;
    outputs(execute(&bench.job).await);
    let log = bench.log();
    let removal = Work::Remove(RemovePart { what: Box::new(test_only), destroy_data: true, removes_policies: false });
    next(&cloud, &mut bench, &artifact, removal).await;
    outputs(execute(&bench.job).await);

    assert!(!refused.1 && refused.0.starts_with(REFUSED), "{refused:?}");
    assert!(refused.0.contains("`example.invalid/migrate:1` (Job migrate)"), "{refused:?}");
    assert_eq!(untouched, Value::Null);
    assert!(log.contains("1 to create, 0 to update, 0 to delete, 0 unchanged\n  + ConfigMap globex-prod/settings\n"));
}

/// The annotation of a test hook, and labels that Helm reads and this runner does not.
const UNREADABLE_TEST: &str = "test}\n  labels: {a: b, <<: {a: c}";

#[tokio::test]
async fn a_hook_that_cannot_be_read_fails_a_chart() {
    let test = "cluster::images::a_hook_that_cannot_be_read_fails_a_chart";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let (artifact, hook) = chart_of(&cloud, UNREADABLE_TEST, "example.invalid/test:1").await;
    let bench = Cluster::bench(&cloud, DEPLOYER, hook, &artifact).await;

    let refused = reason(execute(&bench.job).await);

    let text = "component `network`: a hook of the chart cannot be read, so no policy can be evaluated on it";
    assert!(!refused.1 && refused.0.starts_with(text), "{refused:?}");
    assert!(refused.0.contains("key `a` is before a `<<`"), "{refused:?}");
    assert_eq!(cluster.object("configmap", NAMESPACE, "settings"), Value::Null);
}
