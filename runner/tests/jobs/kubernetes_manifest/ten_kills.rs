//! A runner that is killed while it applies a manifest.

use std::time::Instant;

use freehold_protocol::order::{Artifact, SyncImage, Work};
use freehold_runner::kinds::execute;
use freehold_skips::have;

use super::{manifest, work};
use crate::cloud::Cloud;
use crate::cluster::{self, Cluster, DEPLOYER};
use crate::fixture::{Bench, outputs};

/// Not a test by itself, and nothing without its variables: the runner that the next test kills.
#[tokio::test]
async fn a_runner_that_applies_objects() {
    let Ok(artifact) = std::env::var("FREEHOLD_TEST_ARTIFACT_OF_OBJECTS") else { return };
    let artifact: Artifact = serde_json::from_str(&artifact).unwrap();
    let cloud = Cloud::joined().await;
    let mut bench = Bench::new(work(&artifact));
    Cluster::enter(&cloud, DEPLOYER, &mut bench).await;
    execute(&bench.job).await;
}

/// Thirty objects, each with the number of the point; those of the point before have other names and are pruned.
fn many(point: u32) -> String {
    let one = |number| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{}-{number}}}\ndata: {{point: \"{point}\"}}\n---\n",
            point % 2
        )
    };
    (0..30).map(one).collect()
}

#[tokio::test]
async fn an_attempt_at_a_manifest_is_taken_up_wherever_it_was_killed() {
    let test = "kubernetes_manifest::ten_kills::an_attempt_at_a_manifest_is_taken_up_wherever_it_was_killed";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let artifact = manifest(&cloud, &many(99)).await;
    let mut bench = Cluster::bench(&cloud, DEPLOYER, work(&artifact), &artifact).await;
    let begun = Instant::now();
    outputs(execute(&bench.job).await);
    let whole = begun.elapsed();

    for point in 0..10_u32 {
        let artifact = manifest(&cloud, &many(point)).await;
        let image = SyncImage { component: "network".parse().unwrap(), artifact: artifact.clone() };
        outputs(execute(&cloud.bench(Work::ContainerImage(image), &artifact).job).await);
        let mut runner = tokio::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kubernetes_manifest::ten_kills::a_runner_that_applies_objects"])
            .env("FREEHOLD_TEST_ARTIFACT_OF_OBJECTS", serde_json::to_string(&artifact).unwrap())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(whole / 10 * point).await;
        runner.kill().await.unwrap();
        let left = names(&cluster);

        bench.next_attempt();
        bench.change_order(|order| order.work = work(&artifact));
        outputs(execute(&bench.job).await);

        println!("point {point}: {} objects were there", left.len());
        let mut expected: Vec<String> = (0..30).map(|number| format!("c{}-{number}", point % 2)).collect();
        expected.sort();
        assert_eq!(names(&cluster), expected);
    }
}

/// Returns the names of the ConfigMaps that the manifest may have made.
fn names(cluster: &Cluster) -> Vec<String> {
    let path = "--output=jsonpath={.items[*].metadata.name}";
    let found = cluster.kubectl(&["get", "configmap", "--namespace=globex-prod", path]).unwrap();
    let mut names: Vec<String> =
        found.split(' ').filter(|name| name.starts_with(['c']) && name.contains('-')).map(str::to_owned).collect();
    names.sort();
    names
}
