//! A runner that is killed while Pulumi works.

use freehold_protocol::order::{Artifact, RemovePart, SyncImage, Work};
use freehold_runner::kinds::execute;
use serde_json::json;

use super::{MARK, artifact, start, state, table, work};
use crate::fixture::{Bench, eventually, outputs, processes};

/// Not a test by itself, and nothing without its variables: the runner that the next test kills.
#[tokio::test]
async fn a_runner_that_updates() {
    let Ok(artifact) = std::env::var("FREEHOLD_TEST_ARTIFACT") else { return };
    let artifact: Artifact = serde_json::from_str(&artifact).unwrap();
    execute(&Bench::new(Work::Pulumi(work(&artifact))).job).await;
}

#[tokio::test]
async fn an_update_resumes_wherever_it_was_killed_and_makes_nothing_twice() {
    let name = "ten_kills::an_update_resumes_wherever_it_was_killed_and_makes_nothing_twice";
    let Some(cloud) = start(name).await else { return };
    let resources = |held: Option<usize>| {
        let one = |number: usize| {
            let mut all = table(&format!("r{number}"));
            if held == Some(number) {
                all["hold"] = json!(format!("3153700{number}"));
            }
            all
        };
        json!({ "resources": (0..10).map(one).collect::<Vec<_>>(), "outputs": { "made": "ten" } })
    };
    for point in 0..10_usize {
        let slow = artifact(&cloud, &resources(Some(point))).await;
        // Brings the artifact into the install registry, so that the runner to be killed needs no grant.
        let image = SyncImage { component: "network".parse().unwrap(), artifact: slow.clone() };
        outputs(execute(&cloud.bench(Work::ContainerImage(image), &slow).job).await);
        let mut runner = tokio::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "pulumi::ten_kills::a_runner_that_updates"])
            .env("FREEHOLD_TEST_ARTIFACT", serde_json::to_string(&slow).unwrap())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let hold = format!("sleep\u{0}3153700{point}");
        eventually("the resource is being made", || !processes(&hold).is_empty()).await;
        runner.kill().await.unwrap();
        eventually("pulumi is gone", || processes(&hold).is_empty()).await;

        let quick = artifact(&cloud, &resources(None)).await;
        let mut bench = cloud.bench(Work::Pulumi(work(&quick)), &quick);
        bench.next_attempt();
        let outcome = execute(&bench.job).await;

        let log = bench.log();
        assert_eq!(outputs(outcome), json!({ "made": "ten" }), "point {point}: {log}");
        assert!(log.contains("which a killed attempt left on the stack"), "point {point}: {log}");
        let state = state(&cloud).await;
        let made = state["checkpoint"]["latest"]["resources"].as_array().unwrap();
        assert!(made.len() == 10 && made.iter().all(|one| one["made"] == 1), "point {point}: {made:?}");
        let remove = Work::Remove(RemovePart {
            what: Box::new(Work::Pulumi(work(&quick))),
            destroy_data: true,
            removes_policies: false,
        });
        let mut bench = cloud.bench(remove, &quick);
        bench.next_attempt();
        outputs(execute(&bench.job).await);
        // The runner of the next point has a job of its own, so it finds no mark of a later attempt.
        cloud.put_object(MARK, "").await;
    }
}
