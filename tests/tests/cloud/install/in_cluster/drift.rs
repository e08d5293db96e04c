//! Drift in the customer's cluster with real programs: somebody changes objects of a chart and of a manifest by
//! `kubectl`. A check finds them without their values, and a deploy repairs them.

use anyhow::{Context as _, ensure};
use freehold_tests::harness::World;
use serde_json::{Value, json};

use super::NEEDS;
use crate::install::demo_cluster::{GREETING, POLICY, QUOTA, app_with_cluster, cluster, delete, object, patch};

const BY_HAND: &str = "changed-by-hand-4713";
const PARTS: [&str; 4] = ["--component", "greeter", "--component", "limits"];

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_changed_in_the_cluster_is_found_without_values_and_repaired_by_a_deploy() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_in_cluster.drift", NEEDS).await? else { return Ok(()) };
    world.ship(&app_with_cluster(&world)?).await?;
    let install = world.install("globex", "demo").await?;
    let _runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    let cluster = cluster(&world, &install).await?;
    let contents = async || {
        let (greeting, policy) = (object(&cluster, GREETING).await?, object(&cluster, POLICY).await?);
        anyhow::Ok([greeting["data"].clone(), policy["spec"].clone(), object(&cluster, QUOTA).await?["spec"].clone()])
    };
    let detect = [&["drift", "detect", "globex"][..], &PARTS].concat();
    let before = contents().await?;
    for (made, component) in [(GREETING, "greeter"), (POLICY, "limits")] {
        let labels = object(&cluster, made).await?["metadata"]["labels"].clone();
        let ours = ["app", "component", "install"].map(|name| labels[format!("freehold.dev/{name}")].clone());
        ensure!(ours == [json!("demo"), json!(component), json!("globex")], "{labels}");
    }

    // Before anybody has changed something, nothing differs.
    world.run(&detect).await?.ended_with(0)?;
    for name in ["greeter", "limits"] {
        let clean = part(&world, name).await?;
        ensure!(clean["state"] == "in_sync", "{clean}");
    }

    patch(&cluster, GREETING, &json!({ "data": { "index.html": BY_HAND } })).await?;
    let from = json!([{ "from": [{ "podSelector": { "matchLabels": { "app": BY_HAND } } }] }]);
    patch(&cluster, POLICY, &json!({ "spec": { "ingress": from } })).await?;
    delete(&cluster, QUOTA).await?;
    let by_hand = contents().await?;
    world.run(&detect).await?.ended_with(0)?;
    let (greeter, limits) = (part(&world, "greeter").await?, part(&world, "limits").await?);
    ensure!(differences(&greeter) == [("ConfigMap demo/greeter", "update", json!(["data.index.html"]))], "{greeter}");
    ensure!(
        differences(&limits)
            == [
                ("NetworkPolicy demo/own-namespace-only", "update", json!(["spec.ingress"])),
                ("ResourceQuota demo/demo", "create", Value::Null),
            ],
        "{limits}"
    );
    ensure!(contents().await? == by_hand, "a check repairs nothing");

    // Neither the table nor the logs of the checks have the value.
    let check = world.vendor(&["workflow", "show", text(&greeter["workflow"])]).await?;
    for node in check["nodes"].as_array().context("no nodes")? {
        let log = world.log(text(&node["job"]), |log| log.contains("drift: the next deploy would")).await?;
        ensure!(log.contains("drift: the next deploy would `update`") && !log.contains(BY_HAND), "{log}");
    }
    ensure!(!greeter.to_string().contains(BY_HAND) && !limits.to_string().contains(BY_HAND), "{greeter} {limits}");
    let details = world.run(&["install", "show", "globex"]).await?.ended_with(0)?;
    ensure!(details.contains("drifted since") && details.contains("ConfigMap demo/greeter"), "{details}");

    world.run(&[&["deploy", "globex"][..], &PARTS].concat()).await?.ended_with(0)?;
    ensure!(contents().await? == before, "the deploy repairs everything: {:?}", contents().await?);
    let deploy = world.newest_workflow("globex").await?;
    let nodes = deploy["nodes"].as_array().context("no nodes")?;
    let of_limits = nodes.iter().find(|node| node["name"] == "limits").context("no node `limits`")?;
    let line = "NetworkPolicy demo/own-namespace-only: `spec.ingress` was edited by `kubectl-patch`";
    let log = world.log(text(&of_limits["job"]), |log| log.contains(line)).await?;
    ensure!(log.contains(line), "{log}");

    world.run(&detect).await?.ended_with(0)?;
    for name in ["greeter", "limits"] {
        let repaired = part(&world, name).await?;
        ensure!(repaired["state"] == "in_sync" && repaired["resources"].is_null(), "{repaired}");
    }
    let history = world.vendor(&["history", "globex", "--all"]).await?;
    for drift in ["1 resource of `greeter`", "2 resources of `limits`"] {
        for what in [format!("drift found: {drift}"), format!("drift repaired by a deploy: {drift}")] {
            let has = history.as_array().into_iter().flatten().any(|one| one["what"] == what.as_str());
            ensure!(has, "no `{what}` in {history}");
        }
    }
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns what is known of the drift of a part.
async fn part(world: &World, name: &str) -> anyhow::Result<Value> {
    let list = world.vendor(&["drift", "list", "globex"]).await?;
    let found = list["parts"].as_array().into_iter().flatten().find(|part| part["component"] == name);
    found.cloned().with_context(|| format!("`{name}` was not checked: {list}"))
}

/// Returns the address, the change and the attributes of each resource that differs.
fn differences(part: &Value) -> Vec<(&str, &str, Value)> {
    let resources = part["resources"].as_array().into_iter().flatten();
    resources.map(|one| (text(&one["address"]), text(&one["change"]), one["attributes"].clone())).collect()
}
