//! A runner that is killed while Helm works, at chosen changes of the cluster.

use freehold_protocol::order::{Artifact, RemovePart, Work};
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::{Value, json};

use super::{chart, work};
use crate::cloud::Cloud;
use crate::cluster::barrier::{Aim, Barrier, REVISION_DELETED};
use crate::cluster::killed_runner::{kill, kill_at, start};
use crate::cluster::{self, Cluster, DEPLOYER};
use crate::fixture::{Bench, outputs, reason};
use crate::killed_runner::bring;

const RELEASE: (&str, &str) = ("globex-prod", "web");
/// The number of ConfigMaps that an upgrade with another text changes: `settings`, and those of the value `texts`.
const CHANGED: usize = 9;

/// A cluster and a bench whose artifact is in the install registry, so that the runner to be killed needs no grant.
async fn ready_to_kill(cloud: &Cloud) -> (Cluster, Artifact, Bench) {
    let cluster = Cluster::make(cloud).await;
    let artifact = chart(cloud).await;
    bring(cloud, &artifact).await;
    let bench = Cluster::bench(cloud, DEPLOYER, work(&artifact, json!({})), &artifact).await;
    (cluster, artifact, bench)
}

fn with_text(artifact: &Artifact, text: &str) -> Work {
    work(artifact, json!({ "text": text, "texts": CHANGED - 1 }))
}

fn give(bench: &mut Bench, work: Work) {
    bench.change_order(|order| order.work = work);
}

/// Returns the text of each ConfigMap of the chart.
fn texts(cluster: &Cluster) -> Vec<String> {
    let all = cluster.objects("configmap", RELEASE.0);
    all.iter().filter_map(|one| one["data"]["text"].as_str().map(str::to_owned)).collect()
}

/// Returns the status word of the newest revision.
fn newest(cluster: &Cluster) -> Option<String> {
    cluster.revisions("configmap", RELEASE.0, RELEASE.1).pop()
}

/// Returns the name of a change without the number of a revision, which is another one in each attempt.
fn without_number(change: &str) -> &str {
    change.rsplit_once(".v").filter(|(_, number)| number.parse::<u32>().is_ok()).map_or(change, |(name, _)| name)
}

#[tokio::test]
async fn a_release_that_a_killed_attempt_left_pending_is_recovered() {
    let test = "helm_chart::ten_kills::a_release_that_a_killed_attempt_left_pending_is_recovered";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let (cluster, artifact, mut bench) = ready_to_kill(&cloud).await;

    // A first install that did not succeed: it has no deployed revision, and its pods are never ready.
    give(&mut bench, work(&artifact, json!({ "kubelet": "hold" })));
    let runner = start(&mut bench);
    cluster.until_revision("configmap", RELEASE, "pending-install").await;
    kill(runner).await;
    bench.next_attempt();
    give(&mut bench, work(&artifact, json!({})));
    let installed = outputs(execute(&bench.job).await);
    let install_log = bench.log();
    // An upgrade whose pods are never ready.
    give(&mut bench, work(&artifact, json!({ "kubelet": "hold", "text": "bad" })));
    let runner = start(&mut bench);
    cluster.until_revision("configmap", RELEASE, "pending-upgrade").await;
    kill(runner).await;
    bench.next_attempt();
    give(&mut bench, work(&artifact, json!({})));
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
async fn a_first_release_that_failed_keeps_its_claim_and_is_not_deployed_before_it_is_ready() {
    let test =
        "helm_chart::ten_kills::a_first_release_that_failed_keeps_its_claim_and_is_not_deployed_before_it_is_ready";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let (cluster, artifact, mut bench) = ready_to_kill(&cloud).await;
    let claim = || cluster.object("persistentvolumeclaim", RELEASE.0, "data")["metadata"].clone();
    give(&mut bench, work(&artifact, json!({ "kubelet": "hold", "claim": true })));
    bench.change_order(|order| order.timeout_secs = 30);
    let (late, _) = reason(execute(&bench.job).await);
    let made = claim();

    give(&mut bench, work(&artifact, json!({ "kubelet": "hold", "claim": true, "text": "second" })));
    bench.change_order(|order| order.timeout_secs = 600);
    let runner = start(&mut bench);
    cluster.until_revision("configmap", RELEASE, "pending-upgrade").await;
    kill(runner).await;
    // The chart is that of the failed revision, so a rollback leaves nothing to change.
    bench.next_attempt();
    give(&mut bench, work(&artifact, json!({ "kubelet": "hold", "claim": true })));
    bench.change_order(|order| {
        order.timeout_secs = 30;
        order.skip_noops = true;
    });
    let (not_ready, partial) = reason(execute(&bench.job).await);
    let (log, left) = (bench.log(), cluster.revisions("configmap", RELEASE.0, RELEASE.1));
    bench.next_attempt();
    give(&mut bench, work(&artifact, json!({ "claim": true })));
    bench.change_order(|order| order.timeout_secs = 600);
    let done = outputs(execute(&bench.job).await);
    let kept = claim();

    println!("{late}\n{log}\n{not_ready}");
    let message = "was left `pending-upgrade` at revision 2 by a killed attempt; rolling back to revision 1";
    assert!(log.contains(message));
    assert!(not_ready.starts_with("component `network`: `helm rollback` ended with exit code 1: ") && partial);
    assert!(not_ready.ends_with("; and release `web` was not upgraded; deploy again to upgrade it"));
    assert_eq!(left, ["failed", "pending-upgrade", "failed"]);
    assert_eq!(done["revision"], 4);
    assert!(made["uid"].is_string() && kept["deletionTimestamp"].is_null(), "{made} {kept}");
    assert_eq!(kept["uid"], made["uid"], "the claim is still the first one");
}

/// The first point is in the plan. The others are spread over the changes of an upgrade, from the one that makes the
/// revision to the one that calls it deployed.
#[tokio::test]
async fn an_attempt_at_a_chart_is_taken_up_wherever_it_was_killed() {
    let test = "helm_chart::ten_kills::an_attempt_at_a_chart_is_taken_up_wherever_it_was_killed";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let (cluster, artifact, mut bench) = ready_to_kill(&cloud).await;
    give(&mut bench, with_text(&artifact, "first"));
    outputs(execute(&bench.job).await);
    let barrier = Barrier::before(&cluster).await;
    barrier.close_at(Aim::After(usize::MAX));
    bench.next_attempt();
    give(&mut bench, with_text(&artifact, "second"));
    outputs(execute(&bench.job).await);
    let changes = barrier.passed();
    assert!(changes.len() > CHANGED, "{changes:?}");

    let mut all_changed = Vec::new();
    for point in 0..10 {
        let before = if point == 0 { 0 } else { (point - 1) * (changes.len() - 1) / 8 };
        let aim = if point == 0 { Aim::First("dry run of ") } else { Aim::After(before) };
        let text = format!("point {point}");
        give(&mut bench, with_text(&artifact, &text));
        kill_at(&barrier, aim, &mut bench, || true).await;
        let (passed, left) = (barrier.passed(), newest(&cluster));
        let changed = texts(&cluster).iter().filter(|one| **one == text).count();

        bench.next_attempt();
        let outcome = execute(&bench.job).await;

        println!("point {point}: passed {passed:?}, left {left:?}\n{}", bench.log());
        outputs(outcome);
        let expected: Vec<&str> = changes[..before].iter().map(|change| without_number(change)).collect();
        assert_eq!(passed.iter().map(|change| without_number(change)).collect::<Vec<_>>(), expected, "point {point}");
        assert_eq!(changed, expected.iter().filter(|change| !change.contains("sh.helm.release")).count());
        let status = if expected.is_empty() { "deployed" } else { "pending-upgrade" };
        assert_eq!(left.as_deref(), Some(status), "point {point}");
        assert_eq!(texts(&cluster), vec![text; CHANGED]);
        assert_eq!(newest(&cluster).as_deref(), Some("deployed"));
        all_changed.push(changed);
    }
    assert!(all_changed.iter().any(|changed| (1..CHANGED).contains(changed)), "{all_changed:?}");
    assert_eq!((all_changed[0], all_changed[1], all_changed[9]), (0, 0, CHANGED));
}

#[tokio::test]
async fn a_removal_of_a_chart_is_taken_up_wherever_it_was_killed() {
    let test = "helm_chart::ten_kills::a_removal_of_a_chart_is_taken_up_wherever_it_was_killed";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let (cluster, artifact, mut bench) = ready_to_kill(&cloud).await;
    let barrier = Barrier::before(&cluster).await;
    let installed = with_text(&artifact, "text");
    let removed =
        Work::Remove(RemovePart { what: Box::new(installed.clone()), destroy_data: false, removes_policies: false });

    // Helm marks the revision, deletes the Deployment and then the ConfigMaps, and at last the revision.
    for (aim, status, left) in [
        (Aim::After(0), "deployed", CHANGED),
        (Aim::After(1), "uninstalling", CHANGED),
        (Aim::After(6), "uninstalling", CHANGED - 4),
        (Aim::First(REVISION_DELETED), "uninstalling", 0),
    ] {
        give(&mut bench, installed.clone());
        bench.next_attempt();
        outputs(execute(&bench.job).await);
        give(&mut bench, removed.clone());
        kill_at(&barrier, aim, &mut bench, || texts(&cluster).len() == left).await;
        let revisions = cluster.revisions("configmap", RELEASE.0, RELEASE.1);

        bench.next_attempt();
        let outcome = execute(&bench.job).await;

        println!("{aim:?}: {revisions:?}\n{}", bench.log());
        outputs(outcome);
        assert_eq!(revisions, [status], "{aim:?}");
        assert_eq!((texts(&cluster), newest(&cluster)), (Vec::new(), None), "{aim:?}");
        assert_eq!(cluster.object("deployment", RELEASE.0, "web"), Value::Null, "{aim:?}");
        let mark = cloud.object("kubernetes/network.fence.json").await.unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&mark).unwrap()["ended"], true, "{aim:?}");
    }
}
