//! Locks of Terraform states that a job may have left, although its runner was not killed.

use freehold_protocol::order::Artifact;
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::{Value, json};

use super::{LOCK, MARK, artifact, slow, work};
use crate::cloud::Cloud;
use crate::fixture::{Bench, eventually, kill_own, outputs, own_processes, processes, reason};

/// Returns a job after the first one.
fn job(cloud: &Cloud, artifact: &Artifact, number: u32) -> Bench {
    let mut bench = cloud.bench(work(artifact, json!({})), artifact);
    bench.change_order(|order| order.job = format!("job_{number:020}").parse().unwrap());
    bench
}

async fn object(cloud: &Cloud, key: &str) -> Value {
    serde_json::from_slice(&cloud.object(key).await.expect("the object")).unwrap()
}

#[tokio::test]
async fn the_lock_of_a_terraform_that_was_killed_alone_is_removed_by_the_next_job() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let test = "terraform_module::locks::the_lock_of_a_terraform_that_was_killed_alone_is_removed_by_the_next_job";
    let Some(cloud) = Cloud::here(test).await else { return };
    let held = artifact(&cloud, &slow("31536023")).await;
    let first = job(&cloud, &held, 1);

    let (outcome, ()) = tokio::join!(execute(&first.job), async {
        eventually("the slow resource is being made", || !processes("sleep 31536023").is_empty()).await;
        kill_own("terraform\u{0}apply\u{0}");
    });
    let (lock, mark) = (object(&cloud, LOCK).await, object(&cloud, MARK).await);
    let second = job(&cloud, &artifact(&cloud, &slow("0")).await, 2);
    let mended = execute(&second.job).await;

    let (why, partial) = reason(outcome);
    assert!(why.contains("`terraform apply` ended with exit code 137") && partial, "{why}");
    assert_eq!((&mark["ended"], &mark["left"]), (&json!(false), &json!([lock["ID"]])));
    let log = second.log();
    assert_eq!(outputs(mended), json!({ "quick": "done" }), "{log}");
    assert!(log.contains("which a killed attempt left on the state"), "{log}");
    assert!(cloud.object(LOCK).await.is_none() && object(&cloud, MARK).await["ended"] == true);
}

#[tokio::test]
async fn a_lock_that_a_killed_attempt_found_is_not_taken_for_its_own() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let test = "terraform_module::locks::a_lock_that_a_killed_attempt_found_is_not_taken_for_its_own";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = artifact(&cloud, &slow("0")).await;
    let id = "8b9d4dd2-0000-0000-0000-000000000000";
    let lock = json!({ "ID": id, "Operation": "OperationTypeApply", "Info": "", "Who": "alice@laptop", "Version": "1.11.4",
        "Created": "2026-11-21T00:00:00.5Z", "Path": "x" });
    cloud.put_object(LOCK, &lock.to_string()).await;

    // The second job finds the mark of an attempt whose runner was killed while it waited for the lock.
    let killed = json!({ "job": "job_00000000000000000001", "fence": { "dispatch": 1, "receive": 1 }, "ended": false,
        "others": [id] });
    for (number, mark) in [(1, None), (2, Some(killed))] {
        if let Some(mark) = mark {
            cloud.put_object(MARK, &mark.to_string()).await;
        }
        let bench = job(&cloud, &artifact, number);

        // Terraform waits for the lock for a minute; it is killed as soon as it tries.
        let (outcome, ()) = tokio::join!(execute(&bench.job), async {
            eventually("terraform plans", || !own_processes("terraform\u{0}plan\u{0}").is_empty()).await;
            kill_own("terraform\u{0}plan\u{0}");
        });

        assert!(reason(outcome).0.contains("`terraform plan` ended with exit code 137"), "{}", bench.log());
        assert_eq!(object(&cloud, LOCK).await, lock);
        assert_eq!(object(&cloud, MARK).await["ended"], true);
    }
}
