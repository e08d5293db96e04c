//! Drift with real programs: a resource is changed behind Freehold's back, found without its value, acknowledged, ignored, and
//! repaired by a deploy. The history tells all of it.

use anyhow::{Context as _, ensure};
use freehold_tests::harness::{Capability, Install, Needs, World, app};
use serde_json::{Value, json};

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced],
    programs: &["bwrap", "terraform|tofu"],
};

/// A resource of Terraform itself: what it is, is in the object that holds the state.
const MODULE: &str = "resource \"terraform_data\" \"page\" { input = \"one\" }\nresource \"terraform_data\" \"other\" { input = \"two\" }\n";
const STATE: &str = "terraform/site.tfstate";
const BY_HAND: &str = "changed-by-hand-4711";

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_behind_freeholds_back_is_found_acknowledged_and_repaired() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_drift", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    let component = "name = \"site\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"../site\"\n\
                     drift_schedule = \"0 3 * * *\"\n";
    app::write(&directory, "components/site.toml", component)?;
    app::write(&directory, "site/main.tf", MODULE)?;
    world.ship(&directory).await?;
    let install = world.install("globex", "small").await?;
    let _runner = world.runner(&install).await?;
    world.provisioned(&install).await?;

    // Before anybody touched it, nothing differs. What cannot be checked is refused.
    let none = world.run(&["drift", "list", "globex"]).await?.ended_with(0)?;
    ensure!(none.contains("no drift check of `globex` has ended"), "{none}");
    let unknown = world.run(&["drift", "detect", "globex", "--component", "nothing"]).await?.ended_with(4)?;
    ensure!(unknown.contains("`nothing` is not deployed"), "{unknown}");
    world.run(&["drift", "detect", "globex"]).await?.ended_with(0)?;
    ensure!(part(&world).await?["state"] == "in_sync", "{}", part(&world).await?);

    // One resource is changed and one is removed behind Freehold's back.
    change_by_hand(&world, &install).await?;
    world.run(&["drift", "detect", "globex"]).await?.ended_with(0)?;
    let found = part(&world).await?;
    let differences: Vec<(&str, &str, &Value)> = found["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| (text(&one["address"]), text(&one["change"]), &one["attributes"]))
        .collect();
    ensure!(
        differences
            == [("terraform_data.other", "create", &Value::Null), ("terraform_data.page", "update", &json!(["input"]))],
        "{found}"
    );
    ensure!(found["state"] == "drifted" && found["since"].is_null(), "{found}");
    let details = world.run(&["install", "show", "globex"]).await?.ended_with(0)?;
    ensure!(details.contains("drifted since") && details.contains("terraform_data.page"), "{details}");

    // Neither the list nor the log of the job has the value, and nothing was repaired.
    let check = world.vendor(&["workflow", "show", text(&found["workflow"])]).await?;
    ensure!(check["kind"] == "detect-drift" && check["nodes"][0]["state"] == "succeeded", "{check}");
    let line = "drift: the next deploy would `update` terraform_data.page: input";
    let log = world.log(text(&check["nodes"][0]["job"]), |log| log.contains(line)).await?;
    ensure!(log.contains(line), "{log}");
    ensure!(!log.contains(BY_HAND) && !found.to_string().contains(BY_HAND), "{log} {found}");
    ensure!(state(&world, &install).await?.to_string().contains(BY_HAND), "a check repairs nothing");

    // One difference is acknowledged, the other one ignored by a rule.
    let known = ["drift", "acknowledge", "globex", "terraform_data.page", "--reason", "until Friday"];
    world.run(&known).await?.ended_with(0)?;
    ensure!(part(&world).await?["state"] == "drifted", "the other one is not known");
    let ignore = ["drift", "ignore", "globex", "terraform_data.o*", "--reason", "gone for good"];
    world.run(&ignore).await?.ended_with(0)?;
    world.run(&["drift", "detect", "globex"]).await?.ended_with(0)?;
    let list = world.run(&["drift", "list", "globex"]).await?.ended_with(0)?;
    ensure!(part(&world).await?["state"] == "acknowledged", "{list}");
    ensure!(list.contains("until Friday") && list.contains("ignored by a rule"), "{list}");
    let absent = ["drift", "acknowledge", "globex", "terraform_data.none", "--reason", "x"];
    world.run(&absent).await?.ended_with(3)?;

    // A deploy repairs both.
    world.run(&["deploy", "globex", "--component", "site"]).await?.ended_with(0)?;
    ensure!(!state(&world, &install).await?.to_string().contains(BY_HAND), "the deploy repairs it");
    world.run(&["drift", "detect", "globex", "--component", "site"]).await?.ended_with(0)?;
    let repaired = part(&world).await?;
    ensure!(repaired["state"] == "in_sync" && repaired["resources"].is_null(), "{repaired}");

    let history = world.vendor(&["history", "globex", "--all"]).await?;
    let lines: Vec<String> =
        history.as_array().into_iter().flatten().map(|one| text(&one["what"]).to_owned()).collect();
    ensure!(
        lines
            == [
                "detect-drift",
                "drift repaired by a deploy: 2 resources of `site`",
                "deploy-components",
                "detect-drift",
                "drift acknowledged: 1 resource of `site`",
                "drift found: 2 resources of `site`",
                "detect-drift",
                "detect-drift",
                "provision-install",
            ],
        "{history}"
    );
    ensure!(history[0]["by"]["arn"].is_string() && history[4]["why"] == "until Friday", "{history}");
    ensure!(history[2]["result"] == "succeeded", "{history}");
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns what is known of the drift of the only component.
async fn part(world: &World) -> anyhow::Result<Value> {
    let list = world.vendor(&["drift", "list", "globex"]).await?;
    Ok(list["parts"][0].clone())
}

async fn state(world: &World, install: &Install) -> anyhow::Result<Value> {
    let s3 = aws_sdk_s3::Client::new(&world.administrator(&install.account)?);
    let object = s3.get_object().bucket(bucket(install)).key(STATE).send().await?;
    Ok(serde_json::from_slice(&object.body.collect().await?.into_bytes())?)
}

/// Changes the first resource, and takes the second one away, as a person with rights in the customer's account can.
async fn change_by_hand(world: &World, install: &Install) -> anyhow::Result<()> {
    let mut found = state(world, install).await?;
    let resources = found["resources"].as_array_mut().context("the state has no resources")?;
    resources.retain(|one| one["name"] != "other");
    let attributes = &mut resources.first_mut().context("no resource")?["instances"][0]["attributes"];
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
