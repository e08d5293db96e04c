//! A runner that is killed while Terraform works, at each of ten resources.

use freehold_protocol::order::{Artifact, RemovePart, Work};
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::{Value, json};

use super::{artifact, work};
use crate::cloud::Cloud;
use crate::fixture::outputs;
use crate::killed_runner::kill_at;

const RESOURCES: usize = 10;

/// Returns a module of this many resources, each of which waits for the one before. The resource `held` takes a year,
/// and the number of its seconds is in a command line. Each test has numbers of its own, because others run meanwhile.
fn module(resources: usize, held: Option<(usize, &str)>) -> String {
    let one = |number: usize| {
        let after = number.checked_sub(1).map(|before| format!("depends_on = [terraform_data.r{before}]"));
        let seconds = held.filter(|(at, _)| *at == number).map_or("0", |(_, seconds)| seconds);
        format!(
            "resource \"terraform_data\" \"r{number}\" {{\n  {}\n  provisioner \"local-exec\" {{ command = \"sleep {seconds}\" \
             }}\n}}\n",
            after.unwrap_or_default()
        )
    };
    let all: String = (0..resources).map(one).collect();
    format!(
        "variable \"size\" {{ type = number }}\n{all}output \"made\" {{ value = terraform_data.r{}.id != \"\" }}\n",
        resources - 1
    )
}

/// Returns the ids of the resources in the state, in the order of their names.
async fn ids(cloud: &Cloud) -> Vec<String> {
    let state = cloud.object("terraform/network.tfstate").await;
    let state: Value = state.map(|state| serde_json::from_slice(&state).unwrap()).unwrap_or_default();
    let resources = state["resources"].as_array().cloned().unwrap_or_default();
    let id = |one: &Value| one["instances"][0]["attributes"]["id"].as_str().unwrap().to_owned();
    resources.iter().map(id).collect()
}

fn remove(artifact: &Artifact) -> Work {
    Work::Remove(RemovePart { what: Box::new(work(artifact, json!({}))), destroy_data: false, removes_policies: false })
}

async fn take_up(cloud: &Cloud, artifact: &Artifact) -> (Value, String) {
    let mut bench = cloud.bench(work(artifact, json!({})), artifact);
    bench.next_attempt();
    let outcome = execute(&bench.job).await;
    let log = bench.log();
    (outputs(outcome), log)
}

#[tokio::test]
async fn an_apply_is_taken_up_at_each_resource_and_keeps_what_earlier_jobs_made() {
    let test = "terraform_module::ten_kills::an_apply_is_taken_up_at_each_resource_and_keeps_what_earlier_jobs_made";
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let Some(cloud) = Cloud::here(test).await else { return };
    let mut before = Vec::new();
    for point in 0..RESOURCES {
        // Each job adds one resource to the state of the jobs before, and is killed while it makes this one.
        let seconds = format!("3153720{point}");
        let slow = artifact(&cloud, &module(point + 1, Some((point, seconds.as_str())))).await;
        kill_at(&cloud, &format!("sleep {seconds}"), work(&slow, json!({})), &slow).await;
        assert!(cloud.object(super::LOCK).await.is_some(), "point {point}: a killed attempt leaves its lock");
        assert_eq!(ids(&cloud).await, before, "point {point}: the state is kept");

        let quick = artifact(&cloud, &module(point + 1, None)).await;
        let (made, log) = take_up(&cloud, &quick).await;

        assert_eq!(made, json!({ "made": true }), "point {point}: {log}");
        assert!(log.contains("which a killed attempt left on the state"), "point {point}: {log}");
        assert!(log.contains("1 to create, 0 to update, 0 to replace, 0 to delete"), "point {point}: {log}");
        assert!(cloud.object(super::LOCK).await.is_none(), "point {point}");
        let after = ids(&cloud).await;
        assert_eq!((after.len(), &after[..point]), (point + 1, before.as_slice()), "point {point}");
        before = after;
        // The runner of the next point has the same job, so it must find no mark of a later attempt.
        cloud.put_object(super::MARK, "").await;
    }
}

/// Terraform writes the state to the bucket when it ends, and in a long apply 20 seconds or more apart. So a kill loses what
/// was made in the seconds before, and the next attempt makes it anew. Pulumi writes each change.
#[tokio::test]
async fn a_first_apply_ends_right_after_a_kill_in_its_middle_and_makes_anew_what_terraform_had_not_written() {
    let test = "terraform_module::ten_kills::a_first_apply_ends_right_after_a_kill_in_its_middle_and_makes_anew_what_terraform_had_not_written";
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let Some(cloud) = Cloud::here(test).await else { return };
    let quick = artifact(&cloud, &module(RESOURCES, None)).await;
    for point in [1, 5, 9] {
        let seconds = format!("3153721{point}");
        let slow = artifact(&cloud, &module(RESOURCES, Some((point, seconds.as_str())))).await;
        kill_at(&cloud, &format!("sleep {seconds}"), work(&slow, json!({})), &slow).await;
        let left = ids(&cloud).await;

        let (made, log) = take_up(&cloud, &quick).await;

        assert_eq!(made, json!({ "made": true }), "point {point}: {log}");
        let wanted = format!("{} to create, 0 to update, 0 to replace, 0 to delete", RESOURCES - left.len());
        assert!(log.contains(&wanted), "point {point}, with {left:?}: {log}");
        let after = ids(&cloud).await;
        assert_eq!((after.len(), &after[..left.len()]), (RESOURCES, left.as_slice()), "point {point}");
        let mut bench = cloud.bench(remove(&quick), &quick);
        bench.next_attempt();
        outputs(execute(&bench.job).await);
        // The runner of the next point has the same job, so it must find no mark of a later attempt.
        cloud.put_object(super::MARK, "").await;
    }
}

#[tokio::test]
async fn a_removal_is_taken_up_after_a_kill() {
    let test = "terraform_module::ten_kills::a_removal_is_taken_up_after_a_kill";
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let Some(cloud) = Cloud::here(test).await else { return };
    let held = "variable \"size\" { type = number }\nresource \"terraform_data\" \"first\" {}\nresource \"terraform_data\" \"r\" {\n  \
                depends_on = [terraform_data.first]\n  provisioner \"local-exec\" {\n    when = destroy\n    command = \
                \"sleep SECONDS\"\n  }\n}\n";
    let seconds = "31537220";
    let slow = artifact(&cloud, &held.replace("SECONDS", seconds)).await;
    let quick = artifact(&cloud, &held.replace("SECONDS", "0")).await;
    outputs(execute(&cloud.bench(work(&slow, json!({})), &slow).job).await);
    cloud.put_object(super::MARK, "").await;
    kill_at(&cloud, &format!("sleep {seconds}"), remove(&slow), &slow).await;
    assert_eq!(ids(&cloud).await.len(), 2);

    let mut bench = cloud.bench(remove(&quick), &quick);
    bench.next_attempt();
    let removed = execute(&bench.job).await;

    assert_eq!(outputs(removed), json!({}), "{}", bench.log());
    assert!(ids(&cloud).await.is_empty() && cloud.object(super::LOCK).await.is_none());
}
