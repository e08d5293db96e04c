//! The locks of a stack: those of a Pulumi that was killed, and those of somebody else.

use std::collections::BTreeMap;

use freehold_protocol::order::{Artifact, Work};
use freehold_protocol::report::Outcome;
use freehold_runner::job::StopReason;
use freehold_runner::kinds::execute;
use serde_json::{Value, json};

use super::{MARK, artifact, start, state, table, work};
use crate::cloud::{Cloud, s3};
use crate::fixture::{BUCKET, Bench, eventually, kill_own, outputs, processes, reason};

const LOCKS: &str = "terraform/network/.pulumi/locks/";
const LOCK: &str = "terraform/network/.pulumi/locks/organization/net/globex-prod/1.json";

/// Returns the names of the locks on the stack.
async fn locks(cloud: &Cloud) -> Vec<String> {
    let objects = s3(&cloud.customer).list_objects_v2().bucket(BUCKET).prefix(LOCKS).send().await.unwrap();
    objects.contents().iter().map(|object| object.key().unwrap().to_owned()).collect()
}

async fn mark(cloud: &Cloud) -> Value {
    serde_json::from_slice(&cloud.object(MARK).await.expect("a mark")).unwrap()
}

/// Returns a program whose second resource takes `seconds`.
async fn slow(cloud: &Cloud, seconds: &str) -> Artifact {
    let mut held = table("b");
    held["hold"] = json!(seconds);
    artifact(cloud, &json!({ "resources": [table("a"), held] })).await
}

/// Returns a job after the first one.
fn job(cloud: &Cloud, artifact: &Artifact, number: u32) -> Bench {
    let mut bench = cloud.bench(Work::Pulumi(work(artifact)), artifact);
    bench.change_order(|order| order.job = format!("job_{number:020}").parse().unwrap());
    bench
}

#[tokio::test]
async fn the_lock_of_a_pulumi_that_was_killed_alone_is_removed_by_the_next_job() {
    let name = "locks::the_lock_of_a_pulumi_that_was_killed_alone_is_removed_by_the_next_job";
    let Some(cloud) = start(name).await else { return };
    let held = slow(&cloud, "31537020").await;
    let first = job(&cloud, &held, 1);

    let (outcome, ()) = tokio::join!(execute(&first.job), async {
        eventually("the resource is being made", || !processes("sleep\u{0}31537020").is_empty()).await;
        kill_own("pulumi\u{0}up\u{0}");
    });
    let left = locks(&cloud).await;
    let (first_mark, quick) = (mark(&cloud).await, artifact(&cloud, &json!({ "resources": [table("a")] })).await);
    let second = job(&cloud, &quick, 2);
    let mended = execute(&second.job).await;

    let (why, partial) = reason(outcome);
    assert!(why.contains("`pulumi up` ended with exit code 137") && partial, "{why}");
    assert_eq!((left.len(), &first_mark["ended"]), (1, &json!(false)));
    assert_eq!(first_mark["left"], json!(left));
    let log = second.log();
    assert_eq!(outputs(mended), json!({}), "{log}");
    assert!(log.contains(&format!("removing lock `{}`, which a killed attempt left", left[0])), "{log}");
    assert_eq!((locks(&cloud).await, &mark(&cloud).await["ended"]), (vec![], &json!(true)));
    assert_eq!(state(&cloud).await["checkpoint"]["latest"]["resources"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_lock_of_an_attempt_that_was_killed_while_it_made_the_stack_is_removed() {
    let name = "locks::the_lock_of_an_attempt_that_was_killed_while_it_made_the_stack_is_removed";
    let Some(cloud) = start(name).await else { return };
    let artifact = artifact(&cloud, &json!({ "resources": [table("a")] })).await;
    cloud.put_object(LOCK, "{}").await;
    let killed = json!({ "job": "job_00000000000000000001", "fence": { "dispatch": 1, "receive": 1 }, "ended": false });
    cloud.put_object(MARK, &killed.to_string()).await;

    let second = job(&cloud, &artifact, 2);
    let outcome = execute(&second.job).await;

    assert_eq!(outputs(outcome), json!({}), "{}", second.log());
    assert_eq!((locks(&cloud).await, &mark(&cloud).await["ended"]), (vec![], &json!(true)));
}

#[tokio::test]
async fn an_update_that_was_cancelled_and_ended_by_itself_leaves_no_claim_to_locks() {
    let name = "locks::an_update_that_was_cancelled_and_ended_by_itself_leaves_no_claim_to_locks";
    let Some(cloud) = start(name).await else { return };
    let held = slow(&cloud, "31537021").await;
    let first = job(&cloud, &held, 1);

    let (outcome, ()) = tokio::join!(execute(&first.job), async {
        eventually("the resource is being made", || !processes("sleep\u{0}31537021").is_empty()).await;
        first.stop.send(Some(StopReason::Cancelled)).unwrap();
    });
    let left = (locks(&cloud).await, mark(&cloud).await);
    // A person locks the stack before the next deploy.
    cloud.put_object(LOCK, "{}").await;
    let (why, _) = reason(execute(&job(&cloud, &held, 2).job).await);

    assert_eq!(outcome, Outcome::Cancelled);
    assert_eq!((left.0, &left.1["ended"]), (vec![], &json!(true)));
    assert!(why.contains("the stack is currently locked by 1 lock(s)"), "{why}");
    assert_eq!(locks(&cloud).await, [LOCK]);
}

#[tokio::test]
async fn a_job_that_fails_before_pulumi_runs_leaves_no_claim_to_locks() {
    let name = "locks::a_job_that_fails_before_pulumi_runs_leaves_no_claim_to_locks";
    let Some(cloud) = start(name).await else { return };
    let artifact = artifact(&cloud, &json!({ "resources": [table("a")] })).await;
    let mut wrong = work(&artifact);
    wrong.config = BTreeMap::from([("aws:defaultTags".to_owned(), json!("team=data"))]);

    let (early, _) = reason(execute(&cloud.bench(Work::Pulumi(wrong), &artifact).job).await);
    // A person locks the stack before the next deploy.
    cloud.put_object(LOCK, "{}").await;
    let (why, _) = reason(execute(&job(&cloud, &artifact, 2).job).await);

    assert!(early.contains("configuration `aws:defaultTags` must be a table"), "{early}");
    assert!(why.contains("the stack is currently locked by 1 lock(s)"), "{why}");
    assert_eq!(locks(&cloud).await, [LOCK]);
}

#[tokio::test]
async fn a_lock_of_somebody_else_is_not_touched() {
    let Some(cloud) = start("locks::a_lock_of_somebody_else_is_not_touched").await else { return };
    let artifact = artifact(&cloud, &json!({ "resources": [table("a")] })).await;
    cloud.put_object(LOCK, "{}").await;

    // The first job finds the lock. After it, the mark of a killed attempt names the lock as the one of somebody else, or
    // was written before the person locked the stack.
    let (why, _) = reason(execute(&job(&cloud, &artifact, 1).job).await);
    let first = mark(&cloud).await;
    let killed = |more: Value| {
        let mut mark =
            json!({ "job": "job_00000000000000000001", "fence": { "dispatch": 1, "receive": 1 }, "ended": false });
        mark.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        mark.to_string()
    };

    assert!(why.contains("the stack is currently locked by 1 lock(s)"), "{why}");
    assert_eq!(first["ended"], true);
    for (number, more) in [(2, json!({ "others": [LOCK] })), (3, json!({ "until": 1_000 })), (4, json!({ "left": [] }))]
    {
        cloud.put_object(MARK, &killed(more.clone())).await;
        let (why, _) = reason(execute(&job(&cloud, &artifact, number).job).await);

        assert!(why.contains("the stack is currently locked by 1 lock(s)"), "{more}: {why}");
        assert_eq!(locks(&cloud).await, [LOCK], "{more}");
    }
}
