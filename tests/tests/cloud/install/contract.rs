//! Contracts across two accounts: the runner refuses a release with wider terms than the customer agreed to, names the
//! difference, and resumes once the customer launches the new template. A release with narrower terms needs no consent.

use anyhow::{Context as _, ensure};
use freehold_app::table::evidence;
use freehold_aws::store::DynamoStore;
use freehold_protocol::order::Order;
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Install, Needs, World, app};
use serde_json::Value;

const NEEDS: Needs = Needs { cloud: &[Capability::HttpApi, Capability::IamEnforced], programs: &["bwrap"] };

/// An action that runs when the install is made, and whenever a person says so. What a killed runner still waited for may be
/// handed to it: only so is such an order followed by the next one.
const ACTION: &str = "name = \"say\"\ntimeout = \"1m\"\nidempotent = true\n\n[[triggers]]\ntype = \"manual\"\n\n\
                      [[triggers]]\ntype = \"post-provision\"\n\n[[steps]]\nname = \"say\"\ncommand = \"echo said\"\n";

const POLICY: &str = r#"{"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": "sqs:PurgeQueue", "Resource": "arn:aws:sqs:*:*:{{ .nuon.install.id }}-*"}
]}"#;

const BEYOND: &str = "role `provision` allows sqs:PurgeQueue on arn:aws:sqs:*:*:{{ .nuon.install.id }}-*";

#[tokio::test(flavor = "multi_thread")]
async fn a_release_beyond_the_consent_is_refused_by_the_runner_until_the_customer_agrees() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_contract", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    app::write(&directory, "actions/say.toml", ACTION)?;
    let path = directory.display().to_string();
    let role = std::fs::read_to_string(directory.join("permissions/provision.toml"))?;
    world.vendor(&["app", "sync", &path]).await?;
    let install = world.install("globex", "small").await?;
    let config = std::fs::read_to_string(&install.config)?;
    ensure!(config.contains("accepted_contract = \"sha256:"), "{config}");

    // Launched, then the vendor asks for more.
    let wider = format!("{role}\n[[policies]]\nname = \"purge\"\ncontents = \"./purge.json\"\n");
    app::write(&directory, "permissions/purge.json", POLICY)?;
    app::write(&directory, "permissions/provision.toml", &wider)?;
    world.vendor(&["app", "sync", &path]).await?;
    let mut runner = world.runner(&install).await?;
    let failed = world.provisioned(&install).await;
    ensure!(failed.is_err(), "the runner followed a release that nobody agreed to: {failed:?}");

    the_runner_itself_named_what_is_beyond(&world).await?;
    the_vendor_hears_it_before_anything_is_sent(&world).await?;
    a_switch_is_not_consent(&world, &install).await?;
    let output = world.agree(&install, &mut runner).await?;
    ensure!(output.contains("\nyou agreed to the contract sha256:"), "{output}");
    let run = world.vendor(&["action", "run", "globex", "say"]).await?;
    assert_eq!(run["state"], "succeeded", "{run}");

    // The permission goes: nobody has to agree to that.
    app::write(&directory, "permissions/provision.toml", &role)?;
    world.vendor(&["app", "sync", &path]).await?;
    let output = world.run(&["contract", "diff", "globex"]).await?.ended_with(0)?;
    ensure!(output.contains("no new consent is needed"), "{output}");
    let narrower = world.vendor(&["action", "run", "globex", "say"]).await?;
    assert_eq!(narrower["state"], "succeeded", "{narrower}");
    the_order_proved_that_it_asks_for_less(&world, &narrower).await?;
    the_customer_checks_the_signature_with_the_key_of_the_own_stack(&world, &install).await
}

#[tokio::test(flavor = "multi_thread")]
async fn other_steps_of_an_action_wait_for_the_consent_and_their_release_does_not() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_contract.steps", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    app::write(&directory, "actions/say.toml", ACTION)?;
    let path = directory.display().to_string();
    world.vendor(&["app", "sync", &path]).await?;
    let install = world.install("globex", "small").await?;
    let mut runner = world.runner(&install).await?;
    world.provisioned(&install).await?;

    app::write(&directory, "actions/say.toml", &ACTION.replace("echo said", "echo else"))?;
    world.vendor(&["app", "sync", &path]).await?;
    let deploy = world.vendor(&["deploy", "globex"]).await?;
    let refused = world.run(&["action", "run", "globex", "say"]).await?.ended_with(4)?;
    world.agree(&install, &mut runner).await?;
    let run = world.vendor(&["action", "run", "globex", "say"]).await?;

    assert_eq!(deploy["state"], "succeeded", "{deploy}");
    ensure!(refused.contains("action `say` executes other steps: `sha256:"), "{refused}");
    assert_eq!(run["state"], "succeeded", "{run}");
    Ok(())
}

/// The customer flips a switch with the new template, which would give the roles more permissions: nothing changes.
/// With the template that was launched, the switch alone changes.
async fn a_switch_is_not_consent(world: &World, install: &Install) -> anyhow::Result<()> {
    let accepted = |stack: &Value| stack["outputs"]["AcceptedContract"].as_str().map(str::to_owned);
    let first = accepted(&world.change_stack(install, &[]).await?).context("the stack has no contract")?;
    let wider = world.directory().join("wider.yaml").display().to_string();
    world.run(&["install", "stack", &install.name, "-o", &wider]).await?.ended_with(0)?;
    ensure!(!std::fs::read_to_string(&wider)?.contains(&first), "the template offers what is accepted");

    let launch = ["install", "launch", &install.name, "--template", &wider, "--parameter", "EnableDeprovision=true"];
    let refused = world.command(&install.account, &launch).await?.ended_with(4)?;
    let stayed = world.change_stack(install, &[]).await?;
    let switched = world.change_stack(install, &["EnableDeprovision=true"]).await?;

    ensure!(refused.contains(&format!("but the stack has accepted {first}")), "{refused}");
    assert_eq!(stayed["changed"], false, "{stayed}");
    ensure!(switched["changed"] == true && accepted(&switched).as_ref() == Some(&first), "{switched}");
    Ok(())
}

async fn the_runner_itself_named_what_is_beyond(world: &World) -> anyhow::Result<()> {
    let workflow = world.newest_workflow("globex").await?;
    let node = &workflow["nodes"][0];

    assert_eq!((&workflow["state"], &node["state"]), (&"failed".into(), &"blocked".into()), "{workflow}");
    let reason = node["reason"].as_str().context("no reason")?;
    for part in ["customer agreed to the contract `sha256:", BEYOND, "`freehold install stack globex`"] {
        ensure!(reason.contains(part), "{part}: {reason}");
    }
    Ok(())
}

async fn the_vendor_hears_it_before_anything_is_sent(world: &World) -> anyhow::Result<()> {
    let before = world.newest_workflow("globex").await?;

    let action = world.run(&["action", "run", "globex", "say"]).await?.ended_with(4)?;
    let deploy = world.run(&["deploy", "globex"]).await?.ended_with(4)?;
    let diff = world.run(&["contract", "diff", "globex"]).await?.ended_with(1)?;

    ensure!(action.contains(BEYOND) && deploy.contains(BEYOND), "{action}{deploy}");
    ensure!(diff.contains(&format!("  + {BEYOND}\n")) && diff.contains("has to agree"), "{diff}");
    assert_eq!(world.newest_workflow("globex").await?["workflow"], before["workflow"]);
    Ok(())
}

async fn the_order_proved_that_it_asks_for_less(world: &World, run: &Value) -> anyhow::Result<()> {
    let job = run["nodes"][0]["job"].as_str().context("no job")?.parse()?;
    let store = DynamoStore::new(&world.administrator(world.tenant_account())?, format!("fh-{}", world.tenant()));

    let kept = evidence::kept(&store, &evidence::order_key(&job, 1)).await?.context("no order was kept")?;
    let order: Order = kept.signed().envelope().peek()?;

    let terms = order.terms.context("an order without terms")?;
    ensure!(terms.change.is_some(), "the runner cannot have known that this is less");
    Ok(())
}

async fn the_customer_checks_the_signature_with_the_key_of_the_own_stack(
    world: &World,
    install: &Install,
) -> anyhow::Result<()> {
    let config = std::fs::read_to_string(&install.config)?;
    let key = config.lines().find_map(|line| line.strip_prefix("tenant_key = ")).context("no key")?.trim_matches('"');
    let deploy = world.vendor(&["deploy", "globex"]).await?;
    assert_eq!(deploy["state"], "succeeded", "{deploy}");
    let file = world.directory().join("small.contract.json").display().to_string();
    until("the contract is signed", SOON, || async {
        let output = world.run(&["contract", "show", "small", "-o", &file]).await?;
        Ok((output.code == 0).then_some(()))
    })
    .await?;

    let verify = ["contract", "verify", &file, "--root-key"];
    let checked = world.command(&install.account, &[&verify[..], &[key]].concat()).await?.ended_with(0)?;
    let other = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
    let refused = world.command(&install.account, &[&verify[..], &[other]].concat()).await?.ended_with(1)?;

    ensure!(checked.contains(&format!("signed   by {} with root key", world.tenant())), "{checked}");
    ensure!(refused.contains("the signature of the contract is not valid"), "{refused}");
    Ok(())
}
