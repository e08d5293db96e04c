//! A gate waits for a required check that a program outside of Freehold reports. A check that failed closes the gate, and
//! a check that passed opens it, with real programs.

use anyhow::{Context as _, ensure};
use freehold_protocol::{JobId, WorkflowId};
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{CommandOutput, World, app, clients};
use serde_json::Value;

use super::health::{INPUTS, NEEDS, NET, SITE, component, net, server, states};

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_waits_for_its_required_check_and_opens_only_when_it_passed() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_required_checks", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    app::write(&directory, "inputs.toml", INPUTS)?;
    app::write(&directory, "components/net.toml", &net(&server().await?, "well"))?;
    app::edit(&directory, "components/net.toml", "[health]\n", "[health]\nrequired_checks = [\"load\"]\n")?;
    let reads = "[vars]\nnet = \"{{ .nuon.components.net.outputs.id }}\"\n";
    app::write(&directory, "components/site.toml", &component("site", reads))?;
    app::write(&directory, "net/main.tf", NET)?;
    app::write(&directory, "site/main.tf", SITE)?;
    world.ship(&directory).await?;
    let install = world.install("globex", "small").await?;
    let _runner = world.runner(&install).await?;

    // The first deploy waits. The install and the job name the missing check.
    let first: WorkflowId = install.created["workflow"].as_str().context("no workflow")?.parse()?;
    until("the gate waits for its check", SOON, || async {
        let text = world.run(&["install", "show", "globex"]).await?.ended_with(0)?;
        Ok(text.contains("load missing").then_some(()))
    })
    .await?;
    let gate = JobId::derive(&first, "health:net");
    let text = world.run(&["job", "show", gate.as_str()]).await?.ended_with(0)?;
    report(&world, &["load", "failed", "--reason", "too slow"]).await?.ended_with(0)?;
    ensure!(text.contains("waits for check `load` to pass until"), "{text}");
    ensure!(text.contains("`freehold check report globex COMPONENT NAME passed`"), "{text}");

    // The check failed: the gate stays closed, and what depends on it does not run.
    let closed = ended(&world, &first).await?;
    ensure!(closed["state"] == "failed", "{closed}");
    let nodes =
        [("health:net", "blocked"), ("net", "succeeded"), ("preflight:install", "succeeded"), ("site", "skipped")];
    ensure!(states(&closed) == nodes, "{closed}");
    let text = world.run(&["job", "show", gate.as_str()]).await?.ended_with(0)?;
    ensure!(text.contains("component `net` is not healthy: check `load` failed: too slow"), "{text}");
    let wrong = report(&world, &["lod", "passed"]).await?.ended_with(3)?;
    ensure!(wrong.contains("component `net` does not require check `lod`; it requires check `load`"), "{wrong}");

    // When the check passes later, the component is healthy without another deploy or health check.
    let before = health(&world).await?;
    report(&world, &["load", "passed"]).await?.ended_with(0)?;
    let after = health(&world).await?;
    ensure!(before["state"] == "unhealthy" && after["state"] == "healthy", "{before} {after}");
    ensure!(before["job"] == gate.as_str() && after["job"] == before["job"], "{before} {after}");

    // Another deploy of the component needs another result, and with it the deploy goes through.
    let begun = world.vendor(&["deploy", "globex", "--input", "size=large", "--no-wait"]).await?;
    let second: WorkflowId = begun["workflow"].as_str().context("no workflow")?.parse()?;
    let deploy = JobId::derive(&second, "net");
    until("the component is deployed again, so that a result is about this deploy", SOON, || async {
        let output = report(&world, &["load", "passed", "--deploy", deploy.as_str()]).await?;
        if output.code == 0 {
            return Ok(Some(()));
        }
        let refused = output.ended_with(4)?;
        ensure!(refused.contains("did not make the last deploy of component `net`"), "{refused}");
        Ok(None)
    })
    .await?;
    let opened = ended(&world, &second).await?;
    ensure!(opened["state"] == "succeeded", "{opened}");
    ensure!(states(&opened) == [("health:net", "succeeded"), ("net", "succeeded"), ("site", "succeeded")], "{opened}");
    let text = world.run(&["install", "show", "globex"]).await?.ended_with(0)?;
    ensure!(text.contains("load passed") && !text.contains("load missing"), "{text}");
    Ok(())
}

/// Runs `freehold check report` for `net` with these words.
async fn report(world: &World, words: &[&str]) -> anyhow::Result<CommandOutput> {
    world.run(&[&["check", "report", "globex", "net"][..], words].concat()).await
}

/// Returns the workflow once it has ended. The schedule calls the sweep each minute; here it is called at once.
async fn ended(world: &World, workflow: &WorkflowId) -> anyhow::Result<Value> {
    until("the workflow has ended", SOON, || async {
        clients::invoke(&world.administrator(world.tenant_account())?, world.tenant(), "sweep").await?;
        let view = world.vendor(&["workflow", "show", workflow.as_str()]).await?;
        Ok(matches!(view["state"].as_str(), Some("succeeded" | "failed")).then_some(view))
    })
    .await
}

/// Returns the health of `net`.
async fn health(world: &World) -> anyhow::Result<Value> {
    let view = world.vendor(&["install", "show", "globex"]).await?;
    let components = view["components"].as_array().context("no components")?;
    let net = components.iter().find(|one| one["component"] == "net").context("no `net`")?;
    Ok(net["health"].clone())
}
