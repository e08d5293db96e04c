//! An attempt in a runner of its own, which a test kills while a program of the job works.

use freehold_protocol::order::{Artifact, SyncImage, Work};
use freehold_runner::kinds::execute;
use tokio::process::Command;

use crate::cloud::Cloud;
use crate::fixture::{Bench, eventually, outputs, processes};

/// Does nothing unless its variable is set: it is the runner that other tests kill.
#[tokio::test]
async fn a_runner_with_a_program() {
    let Ok(work) = std::env::var("FREEHOLD_TEST_WORK") else { return };
    execute(&Bench::new(serde_json::from_str(&work).unwrap()).job).await;
}

/// Brings an artifact into the install registry, so that the runner to be killed needs no grant.
pub(crate) async fn bring(cloud: &Cloud, artifact: &Artifact) {
    let image = SyncImage { component: "network".parse().unwrap(), artifact: artifact.clone() };
    outputs(execute(&cloud.bench(Work::ContainerImage(image), artifact).job).await);
}

/// Starts an attempt in a runner of its own, and kills the runner when a process has `hold` in its command line.
/// Returns when no process has it any more.
pub(crate) async fn kill_at(cloud: &Cloud, hold: &str, work: Work, artifact: &Artifact) {
    bring(cloud, artifact).await;
    let mut runner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed_runner::a_runner_with_a_program"])
        .env("FREEHOLD_TEST_WORK", serde_json::to_string(&work).unwrap())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("the program works", || !processes(hold).is_empty()).await;
    runner.kill().await.unwrap();
    eventually("the program is gone", || processes(hold).is_empty()).await;
}
