//! The unchanged app of `freehold app init` deploys, and a deploy of a change runs what `app diff` announces.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use freehold_tests::harness::{Capability, Install, Needs, Runner, World, app};
use serde_json::Value;

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced],
    programs: &["terraform|tofu", "bwrap"],
};

#[tokio::test(flavor = "multi_thread")]
async fn a_new_app_deploys_as_it_is_and_a_diff_foretells_the_next_deploy() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_init", NEEDS).await? else { return Ok(()) };
    let directory = world.directory().join("shop");
    let dir = directory.display().to_string();
    world.vendor(&["app", "init", &dir]).await?;
    everything_is_new_before_the_first_sync(&world, &dir).await?;
    world.ship(&directory).await?;
    nothing_differs(&world, &dir).await?;

    let install = world.install("globex", "shop").await?;
    let mut runner = world.runner(&install).await?;
    let provisioned = world.provisioned(&install).await?;

    let nodes = ["preflight:install", "naming", "queue", "action:health-check"];
    assert_eq!(succeeded(&provisioned)?, BTreeSet::from(nodes));
    assert!(has_queue(&world, &install, "globex-prod-jobs").await?);
    a_change_runs_what_the_diff_announced(&world, &install, &mut runner, &directory).await
}

async fn everything_is_new_before_the_first_sync(world: &World, dir: &str) -> anyhow::Result<()> {
    let diff = world.vendor(&["app", "diff", dir]).await?;

    assert_eq!(diff["from"], Value::Null, "{diff}");
    assert_eq!(announced(&diff)?, BTreeSet::from(["naming", "queue", "action:health-check"]));
    assert_eq!(diff["roles"].as_array().context("no roles")?.len(), 3);
    Ok(())
}

async fn nothing_differs(world: &World, dir: &str) -> anyhow::Result<()> {
    let output = world.run(&["app", "diff", dir, "--exit-code"]).await?.ended_with(0)?;

    assert!(output.contains("app shop: version 1 -> ") && output.contains("no differences"), "{output}");
    Ok(())
}

async fn a_change_runs_what_the_diff_announced(
    world: &World,
    install: &Install,
    runner: &mut Runner,
    directory: &std::path::Path,
) -> anyhow::Result<()> {
    let dir = directory.display().to_string();
    app::edit(directory, "inputs.toml", "default      = \"prod\"", "default      = \"live\"")?;
    app::edit(directory, "permissions/queue.json", "\"sqs:DeleteQueue\"", "\"sqs:Delete*\"")?;
    let output = world.run(&["app", "diff", &dir, "--exit-code"]).await?.ended_with(1)?;
    assert!(output.contains("default  \"prod\" -> \"live\""), "{output}");
    assert!(output.contains("allows sqs:Delete* on arn:aws:sqs:*:*:{{ .nuon.install.id }}-*"), "{output}");

    let before = world.vendor(&["app", "diff", &dir]).await?;
    world.ship(directory).await?;
    let between = world.vendor(&["app", "diff", "--app", "shop", "1", "2"]).await?;
    // It may remove more than was agreed to.
    world.agree(install, runner).await?;
    let deployed = world.vendor(&["deploy", install.name.as_str()]).await?;

    assert_eq!(announced(&before)?, succeeded(&deployed)?);
    assert_eq!(announced(&before)?, BTreeSet::from(["naming", "queue", "action:health-check"]));
    assert_eq!(between["deploy"], before["deploy"]);
    assert!(has_queue(world, install, "globex-live-jobs").await?);
    let graph = world.vendor(&["app", "graph", "--app", "shop", "--version", "2"]).await?;
    assert_eq!((&graph["edges"][0]["from"], &graph["edges"][0]["to"]), (&"naming".into(), &"queue".into()));
    Ok(())
}

async fn has_queue(world: &World, install: &Install, name: &str) -> anyhow::Result<bool> {
    let client = aws_sdk_sqs::Client::new(&world.administrator(&install.account)?);
    let found = client.list_queues().queue_name_prefix(name).send().await.context("the queues")?;
    Ok(!found.queue_urls().is_empty())
}

/// Returns the nodes that a diff says will run.
fn announced(diff: &Value) -> anyhow::Result<BTreeSet<&str>> {
    let runs = diff["deploy"].as_array().context("no deploy")?;
    Ok(runs.iter().filter_map(|run| run["node"].as_str()).collect())
}

/// Returns the nodes of a workflow that ended well; all of them must have.
fn succeeded(workflow: &Value) -> anyhow::Result<BTreeSet<&str>> {
    ensure!(workflow["state"] == "succeeded", "{workflow}");
    let nodes = workflow["nodes"].as_array().context("no nodes")?;
    ensure!(nodes.iter().all(|node| node["state"] == "succeeded"), "{workflow}");
    Ok(nodes.iter().filter_map(|node| node["name"].as_str()).collect())
}
