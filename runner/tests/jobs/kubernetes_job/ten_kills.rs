//! A runner that is killed while its program runs as a Kubernetes Job.

use std::time::Instant;

use freehold_protocol::order::{Artifact, Work};
use freehold_runner::kinds::execute;
use serde_json::Value;

use super::{NAMESPACE, image, job, pods_made, work};
use crate::cloud::Cloud;
use crate::cluster::{self, Cluster, DEPLOYER};
use crate::fixture::{Bench, outputs};

/// Not a test by itself, and nothing without its variables: the runner that the next test kills.
#[tokio::test]
async fn a_runner_that_runs_a_program() {
    let Ok(artifact) = std::env::var("FREEHOLD_TEST_ARTIFACT_OF_A_PROGRAM") else { return };
    let number = std::env::var("FREEHOLD_TEST_JOB").unwrap().parse().unwrap();
    let artifact: Artifact = serde_json::from_str(&artifact).unwrap();
    let cloud = Cloud::joined().await;
    let mut bench = Bench::new(Work::KubernetesJob(work(&artifact, "", "")));
    Cluster::enter(&cloud, DEPLOYER, &mut bench).await;
    job(&mut bench, number);
    execute(&bench.job).await;
}

#[tokio::test]
async fn a_program_runs_once_wherever_its_runner_was_killed() {
    let test = "kubernetes_job::ten_kills::a_program_runs_once_wherever_its_runner_was_killed";
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let artifact = image(&cloud).await;
    let whole = Work::KubernetesJob(work(&artifact, "", ""));
    let mut bench = Cluster::bench(&cloud, DEPLOYER, whole, &artifact).await;
    job(&mut bench, 99);
    let begun = Instant::now();
    outputs(execute(&bench.job).await);
    let whole = begun.elapsed();

    for point in 0..10_u32 {
        let mut runner = tokio::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kubernetes_job::ten_kills::a_runner_that_runs_a_program"])
            .env("FREEHOLD_TEST_ARTIFACT_OF_A_PROGRAM", serde_json::to_string(&artifact).unwrap())
            .env("FREEHOLD_TEST_JOB", point.to_string())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(whole / 10 * point).await;
        runner.kill().await.unwrap();
        let name = format!("network-{point:020x}-1");
        let was_there = cluster.object("job", NAMESPACE, &name) != Value::Null;

        bench.next_attempt();
        job(&mut bench, point);
        let ended = outputs(execute(&bench.job).await);

        println!("point {point}: the Kubernetes Job was there: {was_there}");
        assert_eq!(ended["job"], name);
        assert_eq!(pods_made(&cluster, &name).await, 1);
        let all = cluster.kubectl(&["get", "jobs", "-n", NAMESPACE, "-oname"]).unwrap();
        assert_eq!(all, format!("job.batch/{name}"));
    }
}
