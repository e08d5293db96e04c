//! A runner that is killed while Helm works.

use std::time::Instant;

use freehold_protocol::order::{Artifact, SyncImage, Work};
use freehold_protocol::report::Fence;
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::{Value, json};

use super::{chart, work};
use crate::cloud::Cloud;
use crate::cluster::{self, Cluster, DEPLOYER};
use crate::fixture::{Bench, descendants, eventually, outputs, processes, reason};

/// Not a test by itself, and nothing without its variables: the runner that the next tests kill.
#[tokio::test]
async fn a_runner_that_installs() {
    let Ok(order) = std::env::var("FREEHOLD_TEST_ORDER") else { return };
    let (artifact, values, fence): (Artifact, Value, Fence) = serde_json::from_str(&order).unwrap();
    let cloud = Cloud::joined().await;
    let mut bench = Bench::new(work(&artifact, values));
    bench.job.fence = fence;
    Cluster::enter(&cloud, DEPLOYER, &mut bench).await;
    // Seen only when the runner is not killed, which a test that waits for something else wants to know.
    println!("{:?}\n{}", execute(&bench.job).await, bench.log());
}

/// A cluster and a bench whose artifact is in the install registry, so that the runner to be killed needs no grant.
async fn ready_to_kill(cloud: &Cloud) -> (Cluster, Artifact, Bench) {
    let cluster = Cluster::make(cloud).await;
    let artifact = chart(cloud).await;
    let image = SyncImage { component: "network".parse().unwrap(), artifact: artifact.clone() };
    outputs(execute(&cloud.bench(Work::ContainerImage(image), &artifact).job).await);
    let bench = Cluster::bench(cloud, DEPLOYER, work(&artifact, json!({})), &artifact).await;
    (cluster, artifact, bench)
}

/// Starts a runner with the next attempt of a bench.
fn start(bench: &mut Bench, artifact: &Artifact, values: &Value) -> tokio::process::Child {
    bench.next_attempt();
    tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "helm_chart::ten_kills::a_runner_that_installs", "--nocapture"])
        .env("FREEHOLD_TEST_ORDER", json!([artifact, values, bench.job.fence]).to_string())
        .spawn()
        .unwrap()
}

async fn kill(mut runner: tokio::process::Child) {
    // Tests that run at the same time have programs of Helm too.
    let own = descendants(runner.id().expect("the runner has not ended"));
    runner.kill().await.unwrap();
    eventually("helm is gone", || !processes("--history-max").iter().any(|id| own.contains(id))).await;
}

#[tokio::test]
async fn a_release_that_a_killed_attempt_left_pending_is_recovered() {
    let test = "helm_chart::ten_kills::a_release_that_a_killed_attempt_left_pending_is_recovered";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let (cluster, artifact, mut bench) = ready_to_kill(&cloud).await;
    let release = ("globex-prod", "web");

    // A first install that did not succeed: it has no deployed revision, and its pods are never ready.
    let runner = start(&mut bench, &artifact, &json!({ "kubelet": "hold" }));
    cluster.until_revision("configmap", release, "pending-install").await;
    kill(runner).await;
    bench.next_attempt();
    let installed = outputs(execute(&bench.job).await);
    let install_log = bench.log();
    // An upgrade whose pods are never ready.
    let runner = start(&mut bench, &artifact, &json!({ "kubelet": "hold", "text": "bad" }));
    cluster.until_revision("configmap", release, "pending-upgrade").await;
    kill(runner).await;
    bench.next_attempt();
    let upgraded = outputs(execute(&bench.job).await);
    let upgrade_log = bench.log();

    println!("{install_log}\n{upgrade_log}");
    let message = "was left `pending-install` at revision 1 by a killed attempt; uninstalling the release";
    assert!(install_log.contains(message));
    assert_eq!(installed["revision"], 1);
    let message = "was left `pending-upgrade` at revision 2 by a killed attempt; rolling back to revision 1";
    assert!(upgrade_log.contains(message));
    assert_eq!(upgraded["revision"], 4);
    assert_eq!(cluster.object("configmap", "globex-prod", "settings")["data"]["text"], "file");
}

#[tokio::test]
async fn a_first_release_that_failed_keeps_its_claim_after_a_killed_attempt() {
    let test = "helm_chart::ten_kills::a_first_release_that_failed_keeps_its_claim_after_a_killed_attempt";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let (cluster, artifact, mut bench) = ready_to_kill(&cloud).await;
    let claim = || cluster.object("persistentvolumeclaim", "globex-prod", "data")["metadata"].clone();
    bench.change_order(|order| {
        order.timeout_secs = 30;
        order.work = work(&artifact, json!({ "kubelet": "hold", "claim": true }));
    });
    let (late, _) = reason(execute(&bench.job).await);
    let made = claim();

    let runner = start(&mut bench, &artifact, &json!({ "kubelet": "hold", "claim": true, "text": "second" }));
    cluster.until_revision("configmap", ("globex-prod", "web"), "pending-upgrade").await;
    kill(runner).await;
    bench.next_attempt();
    bench.change_order(|order| {
        order.timeout_secs = 600;
        order.work = work(&artifact, json!({ "claim": true }));
    });
    let done = outputs(execute(&bench.job).await);
    let (log, kept) = (bench.log(), claim());

    println!("{late}\n{log}");
    let message = "was left `pending-upgrade` at revision 2 by a killed attempt; rolling back to revision 1";
    assert!(log.contains(message));
    assert_eq!(done["revision"], 4);
    assert!(made["uid"].is_string() && kept["deletionTimestamp"].is_null(), "{made} {kept}");
    assert_eq!(kept["uid"], made["uid"], "the claim is still the first one");
}

#[tokio::test]
async fn an_attempt_at_a_chart_is_taken_up_wherever_it_was_killed() {
    let test = "helm_chart::ten_kills::an_attempt_at_a_chart_is_taken_up_wherever_it_was_killed";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let (cluster, artifact, mut bench) = ready_to_kill(&cloud).await;
    let begun = Instant::now();
    outputs(execute(&bench.job).await);
    let whole = begun.elapsed();

    // From the start of an attempt to about its end.
    for point in 0..10_u32 {
        let text = json!({ "text": format!("point {point}") });
        let runner = start(&mut bench, &artifact, &text);
        tokio::time::sleep(whole / 10 * point).await;
        kill(runner).await;
        let left = cluster.revisions("configmap", "globex-prod", "web");

        bench.next_attempt();
        bench.change_order(|order| order.work = work(&artifact, text));
        let outcome = execute(&bench.job).await;

        println!("point {point}: left {left:?}\n{}", bench.log());
        outputs(outcome);
        let settings = cluster.object("configmap", "globex-prod", "settings");
        assert_eq!(settings["data"]["text"], format!("point {point}"));
        assert_eq!(cluster.revisions("configmap", "globex-prod", "web").last().unwrap(), "deployed");
    }
}
