//! An app with a sandbox: made first, read by a component, made again when it changed, and removed after all components.

mod drift;
mod pulumi;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use freehold_tests::harness::{Capability, Install, Needs, World, app};
use serde_json::{Value, json};

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced],
    programs: &["terraform|tofu", "bwrap"],
};

const SANDBOX: &str = r#"
variable "zone" { type = string }
resource "terraform_data" "network" { input = "network of ${var.zone}" }
output "network" { value = terraform_data.network.output }
"#;
const SITE: &str = r#"
variable "network" { type = string }
resource "terraform_data" "site" { input = "site in the ${var.network}" }
output "summary" { value = terraform_data.site.output }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_lives_from_the_first_deploy_to_the_teardown() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_sandbox", NEEDS).await? else { return Ok(()) };
    let directory = app_with_sandbox(world.directory())?;
    world.ship(&directory).await?;
    let install = world.install("globex", "small").await?;
    let _runner = world.runner(&install).await?;

    let provisioned = world.provisioned(&install).await?;

    assert_eq!(names(&provisioned), ["preflight:install", "sandbox", "site"], "{provisioned}");
    assert_eq!(summary(&world).await?, "site in the network of a");
    the_sandbox_has_a_state_of_its_own(&world, &install).await?;
    a_changed_sandbox_is_made_again(&world, &directory, ("zone = \"a\"", "zone = \"b\"")).await?;
    everything_is_removed_once_the_customer_allows_it(&world, &install).await
}

fn app_with_sandbox(parent: &Path) -> anyhow::Result<PathBuf> {
    let sandbox = "terraform_version = \"1.11.3\"\nsource = \"./sandbox\"\n[vars]\nzone = \"a\"\n";
    let directory = app_with_site(parent, sandbox)?;
    app::write(&directory, "sandbox/main.tf", SANDBOX)?;
    Ok(directory)
}

/// Writes an app with a sandbox, whose source is missing, and the component `site` that reads an output of it.
fn app_with_site(parent: &Path, sandbox: &str) -> anyhow::Result<PathBuf> {
    let directory = app::small(parent)?;
    let role =
        "type = \"deprovision\"\nname = \"{{ .nuon.install.id }}-deprovision\"\ndescription = \"does nothing\"\n";
    app::write(&directory, "permissions/deprovision.toml", role)?;
    app::write(&directory, "sandbox.toml", sandbox)?;
    let site = "name = \"site\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"../site\"\n[vars]\n\
                network = \"{{ .nuon.install.sandbox.outputs.network }}\"\n";
    app::write(&directory, "components/site.toml", site)?;
    app::write(&directory, "site/main.tf", SITE)?;
    Ok(directory)
}

async fn the_sandbox_has_a_state_of_its_own(world: &World, install: &Install) -> anyhow::Result<()> {
    let keys = states(world, install).await?;
    let states: Vec<&String> = keys.iter().filter(|key| key.ends_with(".tfstate")).collect();
    assert_eq!(states, ["terraform/sandbox/sandbox.tfstate", "terraform/site.tfstate"], "{keys:?}");
    Ok(())
}

/// Returns the names of the objects of states in the install's bucket.
async fn states(world: &World, install: &Install) -> anyhow::Result<Vec<String>> {
    let s3 = aws_sdk_s3::Client::new(&world.administrator(&install.account)?);
    let bucket = format!("fh-acme--globex--{}", install.account);
    let objects = s3.list_objects_v2().bucket(bucket).prefix("terraform/").send().await?;
    Ok(objects.contents().iter().filter_map(|object| object.key().map(str::to_owned)).collect())
}

async fn a_changed_sandbox_is_made_again(
    world: &World,
    directory: &Path,
    (old, new): (&str, &str),
) -> anyhow::Result<()> {
    app::edit(directory, "sandbox.toml", old, new)?;
    world.sync_and_build(directory, "small").await?;

    let changed = world.vendor(&["deploy", "globex"]).await?;
    let nothing = world.vendor(&["deploy", "globex"]).await?;
    let by_hand = world.vendor(&["deploy", "globex", "--sandbox"]).await?;

    assert_eq!(names(&changed), ["sandbox", "site"], "{changed}");
    assert_eq!(summary(world).await?, "site in the network of b");
    assert_eq!(nothing["nodes"], json!([]), "{nothing}");
    assert_eq!(names(&by_hand), ["sandbox", "site"], "{by_hand}");
    Ok(())
}

async fn everything_is_removed_once_the_customer_allows_it(world: &World, install: &Install) -> anyhow::Result<()> {
    let teardown = ["teardown", "globex", "--confirm", "globex"];

    let refused = world.run(&teardown).await?.ended_with(1)?;
    world.change_stack(install, &["EnableDeprovision=true"]).await?;
    let removed = world.vendor(&teardown).await?;

    assert!(refused.contains("`EnableDeprovision`"), "{refused}");
    assert_eq!(removed["state"], "succeeded", "{removed}");
    let view = world.vendor(&["install", "show", "globex"]).await?;
    assert_eq!((&view["state"], &view["components"]), (&json!("idle"), &json!([])), "{view}");
    assert_eq!(view["leftovers"]["found"], json!({ "resources": [] }), "{view}");
    let again = world.vendor(&teardown).await?;
    assert_eq!(names(&again), ["leftovers:list"], "{again}");
    Ok(())
}

fn names(workflow: &Value) -> Vec<&str> {
    let nodes = workflow["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    nodes.iter().filter_map(|node| node["name"].as_str()).collect()
}

async fn summary(world: &World) -> anyhow::Result<String> {
    let view = world.vendor(&["install", "show", "globex"]).await?;
    let components = view["components"].as_array().context("nothing is deployed")?;
    let site = components.iter().find(|one| one["component"] == "site").context("no `site`")?;
    Ok(site["outputs"]["summary"].as_str().context("no summary")?.to_owned())
}
