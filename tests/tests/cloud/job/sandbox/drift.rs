//! Drift of a sandbox with real programs: a resource of the sandbox is changed behind Freehold's back, found without its value
//! under mode `provision`, and repaired by a deploy of the sandbox.

use anyhow::{Context as _, ensure};
use freehold_tests::harness::{Install, World};
use serde_json::{Value, json};

use super::{NEEDS, app_with_sandbox};

const STATE: &str = "terraform/sandbox/sandbox.tfstate";
const BY_HAND: &str = "changed-by-hand-4712";

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_in_the_sandbox_is_found_and_repaired_by_its_deploy() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_sandbox.drift", NEEDS).await? else { return Ok(()) };
    world.ship(&app_with_sandbox(world.directory())?).await?;
    let install = world.install("globex", "small").await?;
    let _runner = world.runner(&install).await?;
    world.provisioned(&install).await?;

    world.run(&["drift", "detect", "globex"]).await?.ended_with(0)?;
    let before = [part(&world, "sandbox").await?, part(&world, "site").await?];
    change_by_hand(&world, &install).await?;
    world.run(&["drift", "detect", "globex", "--component", "sandbox"]).await?.ended_with(0)?;
    let found = part(&world, "sandbox").await?;
    let check = world.vendor(&["workflow", "show", text(&found["workflow"])]).await?;
    let job = world.vendor(&["job", "show", text(&check["nodes"][0]["job"])]).await?;

    ensure!(before.iter().all(|part| part["state"] == "in_sync"), "{before:?}");
    ensure!(found["state"] == "drifted" && part(&world, "site").await?["state"] == "in_sync", "{found}");
    let [network] = found["resources"].as_array().context("no resources")?.as_slice() else {
        anyhow::bail!("not one resource: {found}");
    };
    assert_eq!(
        (text(&network["address"]), text(&network["change"]), &network["attributes"]),
        ("terraform_data.network", "update", &json!(["input"]))
    );
    assert_eq!((check["nodes"].as_array().map(Vec::len), text(&job["mode"])), (Some(1), "provision"), "{check} {job}");
    ensure!(!found.to_string().contains(BY_HAND) && !job.to_string().contains(BY_HAND), "{found} {job}");
    ensure!(state(&world, &install).await?.to_string().contains(BY_HAND), "a check repairs nothing");

    world.vendor(&["deploy", "globex", "--sandbox"]).await?;
    world.run(&["drift", "detect", "globex", "--component", "sandbox"]).await?.ended_with(0)?;

    ensure!(!state(&world, &install).await?.to_string().contains(BY_HAND), "the deploy repairs it");
    let repaired = part(&world, "sandbox").await?;
    ensure!(repaired["state"] == "in_sync" && repaired["resources"].is_null(), "{repaired}");
    let history = world.vendor(&["history", "globex", "--all"]).await?;
    let has = |line: &str| history.as_array().into_iter().flatten().any(|one| one["what"] == line);
    ensure!(has("drift found: 1 resource of `sandbox`"), "{history}");
    ensure!(has("drift repaired by a deploy: 1 resource of `sandbox`"), "{history}");
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

async fn state(world: &World, install: &Install) -> anyhow::Result<Value> {
    let s3 = aws_sdk_s3::Client::new(&world.administrator(&install.account)?);
    let object = s3.get_object().bucket(bucket(install)).key(STATE).send().await?;
    Ok(serde_json::from_slice(&object.body.collect().await?.into_bytes())?)
}

/// Changes the only resource, as a person with rights in the customer's account can.
async fn change_by_hand(world: &World, install: &Install) -> anyhow::Result<()> {
    let mut found = state(world, install).await?;
    let attributes = &mut found["resources"][0]["instances"][0]["attributes"];
    for name in ["input", "output"] {
        attributes[name]["value"] = json!(BY_HAND);
    }
    let s3 = aws_sdk_s3::Client::new(&world.administrator(&install.account)?);
    s3.put_object().bucket(bucket(install)).key(STATE).body(serde_json::to_vec(&found)?.into()).send().await?;
    Ok(())
}

fn bucket(install: &Install) -> String {
    format!("fh-acme--globex--{}", install.account)
}
