//! A verified deploy in the customer's cluster with real programs: the gate of a chart stays closed, and the chart and
//! the manifest run as before again.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, ensure};
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Cluster, World, app};
use serde_json::Value;

use super::NEEDS;
use crate::install::demo_cluster::{GREETING, NAMESPACE, POLICY, app_with_cluster, cluster, object};

/// The chart is healthy with the greeting of the first deploy only.
const HEALTH: &str = r#"

[health]
block_deploy = true
stabilization_window = "10s"

[[health.probes]]
name = "greets"
type = "exec"
command = ["test", "{{ .nuon.inputs.inputs.greeting }}", "=", "hello"]
"#;
/// An object that only the second version of the chart has.
const MORE: [&str; 2] = ["configmap", "more"];
const MORE_TEXT: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: more\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_verified_deploy_whose_chart_stays_unhealthy_brings_back_what_ran_in_the_cluster() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_in_cluster.roll_back", NEEDS).await? else { return Ok(()) };
    let directory = app_with_cluster(&world)?;
    add_health(&directory)?;
    world.ship(&directory).await?;
    let install = world.install("globex", "demo").await?;
    let _runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    let cluster = cluster(&world, &install).await?;
    let (before, artifacts_before) = (contents(&cluster).await?, artifacts(&world).await?);

    app::write(&directory, "charts/greeter/templates/more.yaml", MORE_TEXT)?;
    world.ship(&directory).await?;
    let failed = world.run(&["deploy", "globex", "--input", "greeting=two", "--verified"]).await?;
    ensure!(failed.code == 1 && failed.error.contains("component `greeter` is not healthy"), "{failed:?}");
    let deploy = until("the deploy names its roll back", SOON, || async {
        let all = world.vendor(&["workflow", "list", "globex"]).await?;
        let all = all.as_array().context("no list")?;
        let verified = all.iter().find(|one| one["verified"] == true && !one["rolled_back"].is_null());
        Ok(verified.cloned())
    })
    .await?;
    let by = deploy["rolled_back"]["workflow"].as_str().with_context(|| format!("refused: {deploy}"))?;
    let roll_back = world.vendor(&["workflow", "watch", by]).await?;
    let after = world.vendor(&["install", "show", "globex"]).await?;

    ensure!(state_of(&deploy, &world, "greeter").await? == "succeeded", "the chart was deployed: {deploy}");
    ensure!(roll_back["roll_back_of"] == deploy["workflow"] && roll_back["state"] == "succeeded", "{roll_back}");
    assert_eq!(contents(&cluster).await?, before);
    assert_eq!(artifacts(&world).await?, artifacts_before);
    ensure!(object(&cluster, MORE).await?.is_null(), "the object of the version that failed is gone");
    ensure!(
        after["health"]["state"] == "healthy" && after["inputs"].get("greeting").is_none_or(|value| value == "hello"),
        "{after}"
    );
    // The first deploy, the one that failed, and the roll back: each is a revision of the release.
    let words = ["get", "secrets", NAMESPACE, "--selector=owner=helm,name=greeter", "--output=json"];
    let revisions = cluster.kubectl(&words).await?.json()?;
    assert_eq!(revisions["items"].as_array().map(Vec::len), Some(3));
    Ok(())
}

fn add_health(directory: &Path) -> anyhow::Result<()> {
    let file = "components/greeter.toml";
    let text = std::fs::read_to_string(directory.join(file))?;
    app::write(directory, file, &format!("{text}{HEALTH}"))
}

/// Returns what the chart and the manifest have in the cluster.
async fn contents(cluster: &Cluster) -> anyhow::Result<[Value; 2]> {
    let (greeting, policy) = (object(cluster, GREETING).await?, object(cluster, POLICY).await?);
    ensure!(greeting["data"].is_object() && policy["spec"].is_object(), "{greeting} {policy}");
    Ok([greeting["data"].clone(), policy["spec"].clone()])
}

/// Returns the digest of the artifact of each deployed component.
async fn artifacts(world: &World) -> anyhow::Result<BTreeMap<String, Value>> {
    let install = world.vendor(&["install", "show", "globex"]).await?;
    let components = install["components"].as_array().context("no components")?;
    Ok(components.iter().map(|one| (one["component"].to_string(), one["artifact"].clone())).collect())
}

/// Returns the state of a node of a workflow.
async fn state_of(workflow: &Value, world: &World, node: &str) -> anyhow::Result<Value> {
    let id = workflow["workflow"].as_str().context("a workflow without an id")?;
    let view = world.vendor(&["workflow", "show", id]).await?;
    let found = view["nodes"].as_array().into_iter().flatten().find(|one| one["name"] == node);
    Ok(found.with_context(|| format!("no node `{node}`: {view}"))?["state"].clone())
}
