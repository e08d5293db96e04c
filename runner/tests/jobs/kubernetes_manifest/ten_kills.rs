//! A runner that is killed while it applies a manifest, at chosen changes of the cluster.

use std::ops::Range;

use freehold_protocol::order::{Artifact, RemovePart, Work};
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::{Value, json};

use super::{manifest, work};
use crate::cloud::Cloud;
use crate::cluster::barrier::{Aim, Barrier};
use crate::cluster::killed_runner::{kill, kill_at, start};
use crate::cluster::{self, Cluster, DEPLOYER};
use crate::fixture::{Bench, eventually, outputs};
use crate::killed_runner::bring;

const OBJECTS: usize = 30;
/// A Deployment that never becomes healthy, because the fake kubelet holds its pod.
const HELD: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: held}
spec:
  selector: {matchLabels: {app: held}}
  template:
    metadata: {labels: {app: held, fake-kubelet: hold}}
    spec: {containers: [{name: held, image: \"example.invalid/held:1\"}]}
";

/// Thirty objects, each with the number of the point; those of the point before have other names and are pruned.
fn many(point: usize) -> String {
    let one = |name: String| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{point: \"{point}\"}}\n---\n")
    };
    part(point, 0..OBJECTS).into_iter().map(one).collect()
}

/// Returns the names of some objects of a point, in the order in which they are applied.
fn part(point: usize, numbers: Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("c{}-{number:02}", point % 2)).collect()
}

/// Returns the names of the objects after this many changes: those of the point are created, then those of the point
/// before are deleted.
fn after(point: usize, changes: usize) -> Vec<String> {
    let created = part(point, 0..changes.min(OBJECTS));
    let kept = part(point + 1, changes.saturating_sub(OBJECTS)..OBJECTS);
    sorted([created, kept].concat())
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

/// Returns the names of the objects of all points.
fn names(cluster: &Cluster) -> Vec<String> {
    let all = cluster.objects("configmap", "globex-prod");
    let of_points = all.iter().filter(|one| one["data"]["point"].is_string());
    sorted(of_points.map(|one| one["metadata"]["name"].as_str().unwrap().to_owned()).collect())
}

/// Returns an artifact that is in the install registry.
async fn brought(cloud: &Cloud, text: &str) -> Artifact {
    let artifact = manifest(cloud, text).await;
    bring(cloud, &artifact).await;
    artifact
}

fn give(bench: &mut Bench, work: Work) {
    bench.change_order(|order| order.work = work);
}

/// A cluster with the objects of a point, its barrier, and the bench that has applied them.
async fn applied(cloud: &Cloud, point: usize) -> (Cluster, Barrier, Bench) {
    let cluster = Cluster::make(cloud).await;
    let artifact = brought(cloud, &many(point)).await;
    let bench = Cluster::bench(cloud, DEPLOYER, work(&artifact), &artifact).await;
    outputs(execute(&bench.job).await);
    let barrier = Barrier::before(&cluster).await;
    (cluster, barrier, bench)
}

/// The first point is in the plan. The next ones are from before the first change to before the last one: among the
/// objects that are made, between these and those that are pruned, and among the latter. At the last point, all changes
/// are made.
#[tokio::test]
async fn an_attempt_at_a_manifest_is_taken_up_wherever_it_was_killed() {
    let test = "kubernetes_manifest::ten_kills::an_attempt_at_a_manifest_is_taken_up_wherever_it_was_killed";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let (cluster, barrier, mut bench) = applied(&cloud, 9).await;

    let changes = [0, 1, 15, 29, 30, 31, 45, 59];
    let aims = changes.map(|number| (Aim::After(number), number));
    for (point, (aim, number)) in [(Aim::First("dry run of "), 0)].into_iter().chain(aims).enumerate() {
        give(&mut bench, work(&brought(&cloud, &many(point)).await));
        kill_at(&barrier, aim, &mut bench, || true).await;
        let (passed, left) = (barrier.passed(), names(&cluster));

        bench.next_attempt();
        outputs(execute(&bench.job).await);

        assert_eq!((passed.len(), left), (number, after(point, number)), "point {point}: {passed:?}");
        assert_eq!(names(&cluster), after(point, 2 * OBJECTS), "point {point}");
    }
    give(&mut bench, work(&brought(&cloud, &(many(9) + HELD)).await));
    barrier.close_at(Aim::After(usize::MAX));
    let runner = start(&mut bench);
    let waits = || names(&cluster) == after(9, 2 * OBJECTS) && cluster.objects("pod", "globex-prod").len() == 1;
    eventually("the runner waits for the Deployment", waits).await;
    kill(runner).await;
    let passed = barrier.passed();

    bench.next_attempt();
    give(&mut bench, work(&brought(&cloud, &many(9)).await));
    outputs(execute(&bench.job).await);

    assert_eq!(passed.len(), 2 * OBJECTS + 1, "{passed:?}");
    assert_eq!(names(&cluster), after(9, 2 * OBJECTS));
    assert_eq!(cluster.object("deployment", "globex-prod", "held"), Value::Null);
}

/// Ends a removal that a killed runner began, and looks for what is left.
async fn end_removal(cloud: &Cloud, cluster: &Cluster, bench: &mut Bench) {
    bench.next_attempt();
    outputs(execute(&bench.job).await);

    assert_eq!(names(cluster), [""; 0], "{}", bench.log());
    let inventory = cloud.object("kubernetes/network.inventory.json").await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&inventory).unwrap()["objects"], json!([]));
}

/// The points are before the first deletion, in the middle, before the last deletion, and when a finalizer still keeps
/// the last object.
#[tokio::test]
async fn a_removal_of_a_manifest_is_taken_up_wherever_it_was_killed() {
    let test = "kubernetes_manifest::ten_kills::a_removal_of_a_manifest_is_taken_up_wherever_it_was_killed";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let (cluster, barrier, mut bench) = applied(&cloud, 0).await;
    let apply = bench.job.order.work.clone();
    let removal =
        Work::Remove(RemovePart { what: Box::new(apply.clone()), destroy_data: false, removes_policies: false });
    let set_finalizers = |finalizers: &Value| {
        let patch = format!("--patch={}", json!({ "metadata": { "finalizers": finalizers } }));
        let last = part(0, OBJECTS - 1..OBJECTS).concat();
        cluster.kubectl(&["patch", "configmap", &last, "-n", "globex-prod", "--type=merge", &patch]).unwrap();
    };

    for deleted in [0, OBJECTS / 2, OBJECTS - 1] {
        give(&mut bench, removal.clone());
        kill_at(&barrier, Aim::After(deleted), &mut bench, || true).await;
        assert_eq!(names(&cluster), part(0, deleted..OBJECTS));
        end_removal(&cloud, &cluster, &mut bench).await;
        give(&mut bench, apply.clone());
        bench.next_attempt();
        outputs(execute(&bench.job).await);
    }
    set_finalizers(&json!(["example.org/keep"]));
    give(&mut bench, removal);
    let runner = start(&mut bench);
    let last = part(0, OBJECTS - 1..OBJECTS);
    eventually("one object is left", || names(&cluster) == last).await;
    let is_deleted =
        || cluster.object("configmap", "globex-prod", &last[0])["metadata"]["deletionTimestamp"].is_string();
    eventually("the last object is deleted and kept", is_deleted).await;
    kill(runner).await;
    set_finalizers(&Value::Null);

    end_removal(&cloud, &cluster, &mut bench).await;
}
