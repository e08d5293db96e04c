//! A runner that is killed while Pulumi works, at chosen resources.

use freehold_protocol::order::{Artifact, RemovePart, Work};
use freehold_runner::kinds::execute;
use serde_json::{Value, json};

use super::{MARK, artifact, start, state, table, work};
use crate::cloud::{Cloud, objects};
use crate::fixture::outputs;
use crate::killed_runner::kill_at;

const RESOURCES: usize = 10;

/// Returns a program of ten resources. `held` is the number of a resource, the key of its wait, and the seconds, which
/// are also in a command line. Each point has seconds of its own, because other tests run meanwhile.
fn program(held: Option<(usize, &str, &str)>) -> Value {
    let one = |number: usize| {
        let mut all = table(&format!("r{number}"));
        if let Some((_, key, seconds)) = held.filter(|(at, _, _)| *at == number) {
            all[key] = json!(seconds);
        }
        all
    };
    json!({ "resources": (0..RESOURCES).map(one).collect::<Vec<_>>(), "outputs": { "made": "ten" } })
}

fn remove(artifact: &Artifact) -> Work {
    let what = Box::new(Work::Pulumi(work(artifact)));
    Work::Remove(RemovePart { what, destroy_data: true, removes_policies: false })
}

/// Returns the resources in the state.
async fn resources(cloud: &Cloud) -> Vec<Value> {
    state(cloud).await["checkpoint"]["latest"]["resources"].as_array().unwrap().clone()
}

/// Returns what is in the command line of the resource that takes this many seconds.
fn hold(seconds: &str) -> String {
    format!("sleep\u{0}{seconds}")
}

/// Ends what a killed runner began, and returns the log.
async fn take_up(cloud: &Cloud, work: Work, artifact: &Artifact, expected: Value) -> String {
    let mut bench = cloud.bench(work, artifact);
    bench.next_attempt();
    let outcome = execute(&bench.job).await;
    let log = bench.log();
    assert_eq!(outputs(outcome), expected, "{log}");
    assert!(log.contains("which a killed attempt left on the stack"), "{log}");
    log
}

#[tokio::test]
async fn an_update_resumes_wherever_it_was_killed_and_makes_nothing_twice() {
    let name = "ten_kills::an_update_resumes_wherever_it_was_killed_and_makes_nothing_twice";
    let Some(cloud) = start(name).await else { return };
    let quick = artifact(&cloud, &program(None)).await;
    for point in 0..RESOURCES {
        let seconds = format!("3153700{point}");
        let slow = artifact(&cloud, &program(Some((point, "hold", seconds.as_str())))).await;
        kill_at(&cloud, &hold(&seconds), Work::Pulumi(work(&slow)), &slow).await;
        assert_eq!(resources(&cloud).await.len(), point);

        take_up(&cloud, Work::Pulumi(work(&quick)), &quick, json!({ "made": "ten" })).await;

        let made = resources(&cloud).await;
        assert!(made.len() == RESOURCES && made.iter().all(|one| one["made"] == 1), "point {point}: {made:?}");
        let mut bench = cloud.bench(remove(&quick), &quick);
        bench.next_attempt();
        outputs(execute(&bench.job).await);
        // The runner of the next point has a job of its own, so it finds no mark of a later attempt.
        cloud.put_object(MARK, "").await;
    }
}

#[tokio::test]
async fn a_removal_resumes_wherever_it_was_killed_and_leaves_nothing() {
    let name = "ten_kills::a_removal_resumes_wherever_it_was_killed_and_leaves_nothing";
    let Some(cloud) = start(name).await else { return };
    let quick = artifact(&cloud, &program(None)).await;
    // The resources are removed in the opposite order: the points are at the first one, in the middle, and at the last.
    for point in [9, 5, 0] {
        outputs(execute(&cloud.bench(Work::Pulumi(work(&quick)), &quick).job).await);
        cloud.put_object(MARK, "").await;
        let seconds = format!("3153730{point}");
        let slow = artifact(&cloud, &program(Some((point, "hold_removal", seconds.as_str())))).await;
        kill_at(&cloud, &hold(&seconds), remove(&slow), &slow).await;
        let left = resources(&cloud).await.len();

        let log = take_up(&cloud, remove(&quick), &quick, json!({})).await;

        assert_eq!(left, point + 1);
        assert!(log.contains(&format!("{left} resources to destroy")), "point {point}: {log}");
        assert!(resources(&cloud).await.is_empty(), "point {point}");
        let locks = objects(&cloud.customer, "terraform/network/.pulumi/locks/").await;
        assert!(locks.is_empty(), "point {point}: {locks:?}");
        // The runner of the next point has a job of its own, so it finds no mark of a later attempt.
        cloud.put_object(MARK, "").await;
    }
}
