//! The whole path: a vendor ships an app, a customer installs it, a runner deploys it, in two accounts.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Install, Needs, World, app};
use serde_json::Value;

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced],
    programs: &["terraform|tofu", "bwrap"],
};

#[tokio::test(flavor = "multi_thread")]
async fn a_vendor_ships_a_customer_installs_and_a_runner_deploys() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_path", NEEDS).await? else { return Ok(()) };
    let again = world.deploy_tenant().await?.json()?;
    assert_eq!(again["changed"], false, "a second `tenant deploy` changed something: {again}");
    let built = world.ship(&app::demo(world.directory(), &[200_000])?).await?;
    let install = world.install("globex", "demo").await?;
    let _runner = world.runner(&install).await?;

    let provisioned = world.provisioned(&install).await?;

    assert_eq!(provisioned["state"], "succeeded", "{provisioned}");
    the_customer_has_what_was_deployed(&world, &install).await?;
    both_registries_have_every_artifact(&world, &install, &built).await?;
    only_what_depends_on_a_changed_input_is_deployed(&world).await?;
    an_action_runs_and_its_log_can_be_read(&world).await?;
    the_same_key_starts_nothing_twice_and_a_second_deploy_is_refused(&world).await?;
    the_customer_has_what_was_deployed(&world, &install).await
}

async fn the_customer_has_what_was_deployed(world: &World, install: &Install) -> anyhow::Result<()> {
    let customer = world.administrator(&install.account)?;
    let (s3, sqs) = (aws_sdk_s3::Client::new(&customer), aws_sdk_sqs::Client::new(&customer));
    let (bucket, state) = (format!("globex-demo-{}", install.account), state_bucket(install));

    s3.head_bucket().bucket(&bucket).send().await.context("the app's bucket")?;
    let queue = sqs.get_queue_url().queue_name("globex-demo").send().await.context("the app's queue")?;
    let objects = s3.list_objects_v2().bucket(&state).prefix("terraform/").send().await?;
    let objects = objects.contents().iter().filter_map(|object| object.key());
    let objects: Vec<&str> = objects.filter(|key| !key.ends_with(".fence.json")).collect();
    assert_eq!(objects, ["terraform/settings.tfstate", "terraform/store-info.tfstate"], "states, and no lock");

    let view = world.vendor(&["install", "show", "globex"]).await?;
    assert_eq!(view["state"], "ready", "{view}");
    let summary = &component(&view, "store-info")?["outputs"]["summary"];
    let summary = summary.as_str().context("`store-info` has no output `summary`")?;
    assert!(summary.contains(&bucket), "{summary}");
    assert!(summary.contains(queue.queue_url().unwrap_or("no queue")), "{summary}");
    let settings = component(&view, "settings")?;
    assert!(settings["outputs"]["token"].is_null(), "a sensitive output left the account: {settings}");
    Ok(())
}

async fn both_registries_have_every_artifact(world: &World, install: &Install, built: &Value) -> anyhow::Result<()> {
    let builds = built["builds"].as_array().context("no builds")?;
    let wanted: BTreeSet<String> = builds.iter().filter_map(|one| Some(one["artifact"].as_str()?.to_owned())).collect();
    let view = world.vendor(&["install", "show", "globex"]).await?;
    let deployed = view["components"].as_array().context("nothing is deployed")?;
    let deployed: BTreeSet<String> =
        deployed.iter().filter_map(|one| Some(one["artifact"].as_str()?.to_owned())).collect();

    let in_tenant = digests(world, world.tenant_account(), &format!("fh-{}", world.tenant())).await?;
    let in_install = digests(world, &install.account, "fh-acme/globex").await?;

    assert_eq!(wanted.len(), 4, "{built}");
    assert_eq!(deployed, wanted);
    assert!(in_tenant.is_superset(&wanted), "tenant registry: {in_tenant:?}, built: {wanted:?}");
    assert!(in_install.is_superset(&wanted), "install registry: {in_install:?}, built: {wanted:?}");
    Ok(())
}

async fn digests(world: &World, account: &str, repository: &str) -> anyhow::Result<BTreeSet<String>> {
    let client = aws_sdk_ecr::Client::new(&world.administrator(account)?);
    let images = client.describe_images().repository_name(repository).send().await.context("the images")?;
    Ok(images.image_details().iter().filter_map(|image| Some(image.image_digest()?.to_owned())).collect())
}

async fn only_what_depends_on_a_changed_input_is_deployed(world: &World) -> anyhow::Result<()> {
    let changed = world.vendor(&["deploy", "globex", "--input", "greeting=good morning"]).await?;
    let unchanged = world.vendor(&["deploy", "globex"]).await?;

    assert_eq!(succeeded(&changed)?, BTreeSet::from(["settings", "action:health-check"]));
    assert_eq!(succeeded(&unchanged)?, BTreeSet::new());
    let view = world.vendor(&["install", "show", "globex"]).await?;
    assert_eq!(component(&view, "settings")?["outputs"]["message"], "good morning from globex");
    Ok(())
}

async fn an_action_runs_and_its_log_can_be_read(world: &World) -> anyhow::Result<()> {
    let run = world.vendor(&["action", "run", "globex", "health-check"]).await?;

    assert_eq!(succeeded(&run)?, BTreeSet::from(["action:health-check"]));
    let job = run["nodes"][0]["job"].as_str().context("no job")?;
    let line = "greeting: good morning from globex";
    let log = world.log(job, |log| log.contains(line)).await?;
    assert!(log.contains(line), "{log}");
    Ok(())
}

async fn the_same_key_starts_nothing_twice_and_a_second_deploy_is_refused(world: &World) -> anyhow::Result<()> {
    let deploy = ["deploy", "globex", "--all", "--no-wait", "--idempotency-key", "monday"];
    let first = world.vendor(&deploy).await?;
    let second = world.run(&["deploy", "globex", "--no-wait"]).await?.ended_with(4)?;
    let again = world.vendor(&deploy).await?;
    let workflow = first["workflow"].as_str().context("no workflow")?;

    assert_eq!(first, again);
    assert!(second.contains("install `globex` is being worked on by"), "{second}");
    assert!(second.contains(workflow), "{second}");
    let ended = world.vendor(&["workflow", "watch", workflow]).await?;
    assert_eq!(succeeded(&ended)?.len(), 5, "{ended}");
    let free = until("the install is free again", SOON, || async {
        let view = world.vendor(&["install", "show", "globex"]).await?;
        Ok(view["live"].is_null().then_some(view))
    });
    assert_eq!(free.await?["state"], "ready");
    let after = world.vendor(&deploy).await?;
    assert_eq!(after, first, "the same key, later");
    Ok(())
}

fn state_bucket(install: &Install) -> String {
    format!("fh-acme--{}--{}", install.name, install.account)
}

fn component<'a>(install: &'a Value, name: &str) -> anyhow::Result<&'a Value> {
    let all = install["components"].as_array().context("no components")?;
    all.iter().find(|one| one["component"] == name).with_context(|| format!("`{name}` is not deployed"))
}

/// Returns the nodes of a workflow that ended well; all of them must have.
fn succeeded(workflow: &Value) -> anyhow::Result<BTreeSet<&str>> {
    ensure!(workflow["state"] == "succeeded", "{workflow}");
    let nodes = workflow["nodes"].as_array().context("no nodes")?;
    ensure!(nodes.iter().all(|node| node["state"] == "succeeded"), "{workflow}");
    Ok(nodes.iter().filter_map(|node| node["name"].as_str()).collect())
}
