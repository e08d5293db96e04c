//! A runner is killed in the middle of Terraform, in the middle of an image copy, and together with its disk.

use std::path::Path;

use anyhow::Context as _;
use freehold_tests::harness::runner::on_an_empty_disk;
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Install, Needs, World, app};
use serde_json::Value;

const NEEDS: Needs =
    Needs { cloud: &[Capability::HttpApi, Capability::Registry], programs: &["terraform|tofu", "bwrap"] };

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_killed_in_the_middle_of_terraform_ends_the_deploy_right_once() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_kill.terraform", NEEDS).await? else { return Ok(()) };
    let (install, nap) = slow_install(&world).await?;
    let mut runner = world.runner(&install).await?;
    until("Terraform is at work", SOON, || async { Ok(is_running(&nap)?.then_some(())) }).await?;

    runner.kill().await?;
    until("its job has died with it", SOON, || async { Ok((!is_running(&nap)?).then_some(())) }).await?;
    let locked = states(&world, &install).await?;
    runner.start_again()?;
    let ended = world.provisioned(&install).await?;

    assert!(locked.iter().any(|key| key.ends_with("settings.tfstate.tflock")), "it was not in the middle: {locked:?}");
    everything_ended_right_once(&world, &install, &ended, "settings").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_machine_is_replaced_and_the_old_one_that_comes_back_enrols_with_a_new_key() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_kill.machine", NEEDS).await? else { return Ok(()) };
    let (install, nap) = slow_install(&world).await?;
    let mut runner = world.runner(&install).await?;
    let old = until("the runner has enrolled", SOON, || async { Ok(runner_key(&world).await.ok()) }).await?;
    until("Terraform is at work", SOON, || async { Ok(is_running(&nap)?.then_some(())) }).await?;

    runner.kill().await?;
    runner.replace(&on_an_empty_disk(&install.config)?)?;
    let ended = world.provisioned(&install).await?;

    everything_ended_right_once(&world, &install, &ended, "settings").await?;
    let new = runner_key(&world).await?;
    let row = world.rows("install#globex", "state").await?;
    let retired = &row.first().context("the install has no row")?.1["retired"];
    assert_ne!(new, old);
    assert!(retired.as_array().is_some_and(|keys| keys.contains(&Value::from(old.clone()))), "{retired}");

    runner.kill().await?;
    runner.replace(&install.config)?;
    until("the old machine's hello is refused", SOON, || async {
        let refused = world.rows("install#globex", "refused#").await?;
        Ok(refused.into_iter().find(|(_, row)| row["runner"] == old.as_str()))
    })
    .await?;
    let third = until("the old machine has enrolled with a new key", SOON, || async {
        Ok(Some(runner_key(&world).await?).filter(|key| *key != new))
    })
    .await?;
    assert!(third != old, "a replaced key never comes back");
    let deployed = world.vendor(&["deploy", "globex", "--input", "greeting=good evening"]).await?;
    assert_eq!(deployed["state"], "succeeded", "{deployed}\n{}", runner.log());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_killed_in_the_middle_of_an_image_copy_copies_the_rest() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_kill.image", NEEDS).await? else { return Ok(()) };
    let demo = app::demo(world.directory(), &[3_000_000; 24])?;
    world.ship(&demo).await?;
    let install = world.install("globex", "demo").await?;
    let layers = layers(&demo)?;
    let mut runner = world.runner(&install).await?;
    until("a layer is there", SOON, || async {
        Ok((missing(&world, &install, &layers).await? < layers.len()).then_some(()))
    })
    .await?;

    runner.kill().await?;
    let left = missing(&world, &install, &layers).await?;
    runner.start_again()?;
    let ended = world.provisioned(&install).await?;

    assert!(left > 0, "all {} layers were there: it was not in the middle", layers.len());
    assert_eq!(missing(&world, &install, &layers).await?, 0);
    everything_ended_right_once(&world, &install, &ended, "web").await?;
    let ecr = aws_sdk_ecr::Client::new(&world.administrator(&install.account)?);
    let images = ecr.describe_images().repository_name("fh-acme/globex").send().await?;
    let view = world.vendor(&["install", "show", "globex"]).await?;
    let web = view["components"].as_array().and_then(|all| all.iter().find(|one| one["component"] == "web"));
    let digest = web.and_then(|web| web["artifact"].as_str()).context("`web` is not deployed")?;
    assert!(images.image_details().iter().any(|image| image.image_digest() == Some(digest)));
    Ok(())
}

/// Ships the demo app with a Terraform module that takes some seconds; returns the command that takes them.
async fn slow_install(world: &World) -> anyhow::Result<(Install, String)> {
    let demo = app::demo(world.directory(), &[1000])?;
    let nap = format!("10.{:07}", std::process::id());
    let slow = format!(
        "\nresource \"terraform_data\" \"slow\" {{\n  depends_on = [terraform_data.message]\n\n  \
         provisioner \"local-exec\" {{\n    command = \"sleep {nap}\"\n  }}\n}}\n"
    );
    let module = demo.join("modules/settings/main.tf");
    let text = std::fs::read_to_string(&module)?;
    std::fs::write(&module, text + &slow)?;
    world.ship(&demo).await?;
    Ok((world.install("globex", "demo").await?, nap))
}

/// Returns whether a process `sleep <nap>` is alive.
fn is_running(nap: &str) -> anyhow::Result<bool> {
    let wanted = format!("sleep\0{nap}\0");
    for entry in std::fs::read_dir("/proc")? {
        let command = std::fs::read(entry?.path().join("cmdline")).unwrap_or_default();
        if command == wanted.as_bytes() {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn runner_key(world: &World) -> anyhow::Result<String> {
    let view = world.vendor(&["install", "show", "globex"]).await?;
    Ok(view["runner"]["key"].as_str().context("the install has no runner")?.to_owned())
}

/// Asserts that each job succeeded once, the one of `interrupted` at its second try, and what is there then.
async fn everything_ended_right_once(
    world: &World,
    install: &Install,
    ended: &Value,
    interrupted: &str,
) -> anyhow::Result<()> {
    assert_eq!(ended["state"], "succeeded", "{ended}");
    let nodes = ended["nodes"].as_array().context("no nodes")?;
    assert_eq!(nodes.len(), 6, "{ended}");
    for node in nodes {
        let job = world.vendor(&["job", "show", node["job"].as_str().context("no job")?]).await?;
        let history = job["history"].as_array().context("no history")?;
        let ends = history.iter().filter(|record| record["to"] == "succeeded").count();
        assert_eq!((job["state"].as_str(), ends), (Some("succeeded"), 1), "{job}");
        if node["name"] == interrupted {
            assert!(job["fence"]["receive"].as_u64() > Some(1), "it was not tried again: {job}");
        }
    }
    let states = states(world, install).await?;
    assert_eq!(states, ["terraform/settings.tfstate", "terraform/store-info.tfstate"], "states, and no lock");
    let cfn = aws_sdk_cloudformation::Client::new(&world.administrator(&install.account)?);
    let stack = cfn.describe_stacks().stack_name("acme--globex--storage").send().await?;
    let status = stack.stacks().first().and_then(|stack| stack.stack_status()).context("the app has no stack")?;
    assert_eq!(status.as_str(), "CREATE_COMPLETE", "it was made once, and not updated");
    no_resource_is_there_twice(world, install).await
}

async fn no_resource_is_there_twice(world: &World, install: &Install) -> anyhow::Result<()> {
    let s3 = aws_sdk_s3::Client::new(&world.administrator(&install.account)?);
    let object = s3.get_object().bucket(bucket(install)).key("terraform/settings.tfstate").send().await?;
    let state: Value = serde_json::from_slice(&object.body.collect().await?.into_bytes())?;
    for resource in state["resources"].as_array().context("an empty state")? {
        let instances = resource["instances"].as_array().context("no instances")?;
        assert_eq!(instances.len(), 1, "{resource}");
        assert!(instances.iter().all(|one| one["status"] != "tainted" && one["deposed"].is_null()), "{resource}");
    }
    Ok(())
}

fn bucket(install: &Install) -> String {
    format!("fh-acme--globex--{}", install.account)
}

/// Returns the states and the locks of states.
async fn states(world: &World, install: &Install) -> anyhow::Result<Vec<String>> {
    let s3 = aws_sdk_s3::Client::new(&world.administrator(&install.account)?);
    let objects = s3.list_objects_v2().bucket(bucket(install)).prefix("terraform/").send().await?;
    let keys = objects.contents().iter().filter_map(|object| Some(object.key()?.to_owned()));
    Ok(keys.filter(|key| !key.ends_with(".fence.json")).collect())
}

/// Returns the digests of the image's layers.
fn layers(demo: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(demo.join("image/blobs/sha256"))? {
        let entry = entry?;
        if entry.metadata()?.len() > 1_000_000 {
            found.push(format!("sha256:{}", entry.file_name().to_string_lossy()));
        }
    }
    Ok(found)
}

/// Returns how many of `layers` the install registry does not have.
async fn missing(world: &World, install: &Install, layers: &[String]) -> anyhow::Result<usize> {
    use aws_sdk_ecr::types::LayerAvailability::Available;
    let ecr = aws_sdk_ecr::Client::new(&world.administrator(&install.account)?);
    let ask = ecr.batch_check_layer_availability().repository_name("fh-acme/globex");
    let answer = ask.set_layer_digests(Some(layers.to_vec())).send().await?;
    let there = answer.layers().iter().filter(|layer| layer.layer_availability() == Some(&Available)).count();
    Ok(layers.len() - there)
}
