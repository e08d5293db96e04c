//! Licences across two accounts: a deploy and an action bring the newest licence to the app, and whoever has the
//! tenant's root key can verify its text.

use anyhow::Context as _;
use freehold_tests::harness::{Capability, Install, Needs, World, app};
use serde_json::{Value, json};

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced],
    programs: &["bwrap", "terraform|tofu"],
};

const COMPONENT: &str = r#"name = "site"
type = "terraform_module"
terraform_version = "1.11.3"
source = "./site"

[vars]
licence = "{{ .nuon.install.licence }}"
"#;

const MODULE: &str = r#"variable "licence" {
  type = string
}

resource "terraform_data" "licence" {
  input = var.licence
}

output "licence" {
  value = terraform_data.licence.output
}
"#;

const ACTION: &str = r#"name = "read-licence"
timeout = "1m"

[[triggers]]
type = "manual"

[[steps]]
name = "read"
command = 'printf "licence=%s" "$LICENCE" > "$FREEHOLD_OUTPUTS"'

[steps.env_vars]
LICENCE = "{{ .nuon.install.licence }}"
"#;

/// The last second of 2099, in milliseconds since 1970.
const END_OF_2099: u64 = 4_102_444_799_000;

#[tokio::test(flavor = "multi_thread")]
async fn deploys_and_actions_bring_the_newest_licence_and_the_root_key_verifies_it() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_licence", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    app::write(&directory, "components/site.toml", COMPONENT)?;
    app::write(&directory, "site/main.tf", MODULE)?;
    app::write(&directory, "actions/read-licence.toml", ACTION)?;
    world.ship(&directory).await?;
    let install = world.install("globex", "small").await?;
    set_licence(&world, &["--fact", "plan=team", "--fact", "seats:=50", "--until", "2099-12-31"]).await?;
    let _runner = world.runner(&install).await?;
    let provisioned = world.provisioned(&install).await?;
    assert_eq!(provisioned["state"], "succeeded", "{provisioned}");

    the_first_deploy_brings_the_licence(&world, &install).await?;
    an_action_brings_the_next_one_and_a_deploy_follows_once(&world, &install).await?;
    a_withdrawal_arrives_as_a_licence_that_is_over(&world, &install).await
}

async fn the_first_deploy_brings_the_licence(world: &World, install: &Install) -> anyhow::Result<()> {
    let text = licence_of_component(world).await?;
    let view = world.vendor(&["install", "show", "globex"]).await?;

    let verified = verified(world, install, &text).await?;

    let licence = &verified["licence"];
    assert_eq!((&licence["serial"], &licence["not_after"]), (&json!(1), &json!(END_OF_2099)), "{verified}");
    assert_eq!(licence["facts"], json!({ "plan": "team", "seats": 50 }), "{verified}");
    assert_eq!(verified["over"], false, "{verified}");
    assert_eq!(view["licence"]["signed"], text.as_str(), "the vendor sees another text: {view}");
    Ok(())
}

async fn an_action_brings_the_next_one_and_a_deploy_follows_once(
    world: &World,
    install: &Install,
) -> anyhow::Result<()> {
    let former = licence_of_component(world).await?;
    set_licence(world, &["--fact", "seats:=60"]).await?;

    let brought = licence_of_action(world).await?;
    let after_action = licence_of_component(world).await?;
    let deploy = world.vendor(&["deploy", "globex"]).await?;
    let after_deploy = licence_of_component(world).await?;
    let unchanged = world.vendor(&["deploy", "globex"]).await?;

    let verified = verified(world, install, &brought).await?;
    let licence = &verified["licence"];
    assert_eq!((&licence["serial"], &licence["facts"]), (&json!(2), &json!({ "seats": 60 })), "{verified}");
    assert_eq!(after_action, former, "the action deployed the component");
    assert_eq!((names(&deploy), &deploy["state"]), (vec!["site"], &json!("succeeded")), "{deploy}");
    assert_eq!(after_deploy, brought, "two orders brought different texts of one licence");
    assert_eq!(unchanged["nodes"], json!([]), "{unchanged}");
    Ok(())
}

async fn a_withdrawal_arrives_as_a_licence_that_is_over(world: &World, install: &Install) -> anyhow::Result<()> {
    set_licence(world, &["--withdraw"]).await?;

    let verified = verified(world, install, &licence_of_action(world).await?).await?;

    let licence = &verified["licence"];
    assert_eq!((&licence["serial"], &licence["facts"]), (&json!(3), &json!({})), "{verified}");
    assert_eq!((&licence["withdrawn"], &verified["over"]), (&json!(true), &json!(true)), "{verified}");
    let end = licence["not_after"].as_u64().with_context(|| format!("no end: {verified}"))?;
    let signed = licence["signed_at"].as_u64().with_context(|| format!("no time of the signature: {verified}"))?;
    assert!(end <= signed, "{verified}");
    Ok(())
}

/// Runs `freehold install set-licence` for the install with these words.
async fn set_licence(world: &World, words: &[&str]) -> anyhow::Result<Value> {
    world.vendor(&[&["install", "set-licence", "globex"][..], words].concat()).await
}

/// Returns the licence with which the component was deployed.
async fn licence_of_component(world: &World) -> anyhow::Result<String> {
    let view = world.vendor(&["install", "show", "globex"]).await?;
    let site = view["components"].as_array().into_iter().flatten().find(|one| one["component"] == "site");
    let text = site.and_then(|site| site["outputs"]["licence"].as_str());
    Ok(text.with_context(|| format!("the component has no licence: {view}"))?.to_owned())
}

/// Runs the action; returns the licence that it read.
async fn licence_of_action(world: &World) -> anyhow::Result<String> {
    let run = world.vendor(&["action", "run", "globex", "read-licence"]).await?;
    let id = run["nodes"][0]["job"].as_str().with_context(|| format!("no job: {run}"))?;
    let job = world.vendor(&["job", "show", id]).await?;
    let text = job["outputs"]["licence"].as_str();
    Ok(text.with_context(|| format!("the action has no licence: {job}"))?.to_owned())
}

/// Verifies the text of a licence with the root key in the customer's stack, without an account; returns the output.
async fn verified(world: &World, install: &Install, text: &str) -> anyhow::Result<Value> {
    let config = std::fs::read_to_string(&install.config)?;
    let key = config.lines().find_map(|line| line.strip_prefix("tenant_key = ")).context("no key")?.trim_matches('"');
    let file = world.directory().join("licence.json").display().to_string();
    std::fs::write(&file, text)?;
    let verify = ["customer", "verify-licence", &file, "--root-key", key, "--install", "globex", "--json"];
    world.outside(&verify).await?.json()
}

/// Returns the names of the nodes of a workflow.
fn names(workflow: &Value) -> Vec<&str> {
    let nodes = workflow["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    nodes.iter().filter_map(|node| node["name"].as_str()).collect()
}
