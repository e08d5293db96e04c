//! Automatic retries with real programs: a module whose state cannot be read fails until the state is put right, and is then
//! applied once without a person.

use anyhow::{Context as _, ensure};
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Install, Needs, World, app};
use serde_json::Value;

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced],
    programs: &["bwrap", "terraform|tofu"],
};
const MOST: u64 = 10;
const COMPONENT: &str = r#"name = "net"
type = "terraform_module"
terraform_version = "1.11.3"
source = "./net"
max_auto_retries = 10
"#;
const STATE: &str = "terraform/net.tfstate";

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_fails_is_deployed_again_until_it_succeeds() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_retries", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    app::write(&directory, "components/net.toml", COMPONENT)?;
    app::write(&directory, "net/main.tf", "resource \"terraform_data\" \"this\" { input = \"one\" }\n")?;
    world.ship(&directory).await?;
    let install = world.install("globex", "small").await?;
    let bucket = format!("fh-acme--globex--{}", install.account);
    let s3 = aws_sdk_s3::Client::new(&world.administrator(&install.account)?);
    s3.put_object().bucket(&bucket).key(STATE).body(b"not a state".to_vec().into()).send().await?;
    let runner = world.runner(&install).await?;

    until("the component was tried again", SOON, || async {
        Ok((retries(&node(&world, &install).await?) > 0).then_some(()))
    })
    .await?;
    s3.delete_object().bucket(&bucket).key(STATE).send().await?;
    let provisioned = world.provisioned(&install).await?;

    assert_eq!(provisioned["state"], "succeeded", "{provisioned}");
    let node = node(&world, &install).await?;
    let retries = retries(&node);
    assert!((1..=MOST).contains(&retries), "{node}");
    let started = format!("Started job `{}`", node["job"].as_str().unwrap_or_default());
    assert_eq!(runner.log().matches(&started).count() as u64, 1 + retries, "{}", runner.log());
    let state = s3.get_object().bucket(&bucket).key(STATE).send().await?.body.collect().await?;
    let state: Value = serde_json::from_slice(&state.into_bytes())?;
    assert_eq!((&state["serial"], state["resources"].as_array().map(Vec::len)), (&Value::from(1), Some(1)), "{state}");
    Ok(())
}

/// Returns the node of the component in the provisioning.
async fn node(world: &World, install: &Install) -> anyhow::Result<Value> {
    let workflow = install.created["workflow"].as_str().context("an install without a workflow")?;
    let view = world.vendor(&["workflow", "show", workflow]).await?;
    ensure!(view["state"] != "failed", "{view}");
    let found = view["nodes"].as_array().into_iter().flatten().find(|node| node["name"] == "net");
    // Before the provisioning has a plan, it has no nodes.
    Ok(found.cloned().unwrap_or_default())
}

fn retries(node: &Value) -> u64 {
    node["retried"].as_u64().unwrap_or_default()
}
