//! Webhooks with real programs: a CI without AWS credentials moves a channel by a signed call, and nobody else does.

use std::process::Command;

use anyhow::{Context as _, ensure};
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, CommandOutput, Needs, World, app, clients};
use serde_json::Value;

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::IamEnforced, Capability::AnyAccount, Capability::EmptyAccounts],
    programs: &["openssl", "curl"],
};

/// Calls a webhook as a CI does: with `freehold` and the key file, and without any credentials.
async fn call(world: &World, url: &str, words: &[&str]) -> anyhow::Result<CommandOutput> {
    let all = [&["webhook", "call", url, "--json"], words].concat();
    world.outside(&all).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ci_without_credentials_moves_a_channel_by_a_signed_call() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_webhooks", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    let path = directory.display().to_string();
    let mut versions = Vec::new();
    for name in ["one", "two"] {
        app::edit(&directory, "metadata.toml", "one action", &format!("one action, {name}"))?;
        versions.push(world.vendor(&["app", "sync", &path]).await?["version"].clone());
        world.vendor(&["release", "create", "small", "--name", name]).await?;
    }
    world.vendor(&["channel", "move", "small", "stable", "one"]).await?;
    let install = world.install_with_inputs("globex", "small", &[]).await?;
    let _runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    world.vendor(&["install", "release", "globex", "--channel", "stable"]).await?;
    has_version(&world, &versions[0]).await?;
    has_caught_up(&world).await?;
    let add = ["webhook", "add", "ci", "--app", "small", "--channel", "stable", "--key-file", "ci.pem"];

    // Off by default, and said so.
    let off = world.run(&add).await?.ended_with(4)?;
    ensure!(off.contains("--webhooks on"), "{off}");
    let url = format!("{}/v1/webhooks/ci/calls", world.api_url().await?);
    let closed = call(&world, &url, &["--key-file", "ci.pem", "--release", "two"]).await?.ended_with(6)?;
    ensure!(closed.contains("takes no calls of webhooks"), "{closed}");

    world.deploy_tenant_with(&["--webhooks", "on"]).await?.json()?;
    let added = world.vendor(&add).await?;
    assert_eq!(added["path"], "/v1/webhooks/ci/calls");
    let called = call(&world, &url, &["--key-file", "ci.pem", "--release", "two", "--id", "build-7"]).await?.json()?;
    let again = call(&world, &url, &["--key-file", "ci.pem", "--release", "two", "--id", "build-7"]).await?;

    assert_eq!((&called["started"], &called["release"]), (&"channel".into(), &"two".into()), "{called}");
    assert_eq!(again.json()?, called);
    has_version(&world, &versions[1]).await?;
    let channels = world.vendor(&["channel", "list", "small"]).await?;
    assert_eq!((&channels[0]["moves"], &channels[0]["moved_by"]["webhook"]), (&2.into(), &"ci".into()), "{channels}");
    let workflow = world.newest_workflow("globex").await?;
    assert_eq!(
        (&workflow["asked_by"]["by"], &workflow["state"]),
        (&"webhook".into(), &"succeeded".into()),
        "{workflow}"
    );

    // The lines of the documentation, with openssl and curl instead of `freehold`.
    let output = by_hand(&world, &url, "two")?;
    ensure!(output.contains(r#""started":"channel""#), "{output}");
    refused_for_everybody_else(&world, &url).await?;

    // Closed again, and not by the route alone.
    world.deploy_tenant_with(&["--webhooks", "off"]).await?.json()?;
    let closed = call(&world, &url, &["--key-file", "ci.pem", "--release", "one"]).await?.ended_with(6)?;
    ensure!(closed.contains("takes no calls of webhooks"), "{closed}");
    world.deploy_tenant_with(&["--webhooks", "on"]).await?.json()?;
    world.vendor(&["webhook", "remove", "ci"]).await?;
    let gone = call(&world, &url, &["--key-file", "ci.pem", "--release", "one"]).await?.ended_with(6)?;
    ensure!(gone.contains("no webhook `ci` has the key"), "{gone}");
    assert_eq!(world.vendor(&["channel", "list", "small"]).await?[0]["release"], "two");
    Ok(())
}

/// Another key starts nothing, and the open route leads to no other operation.
async fn refused_for_everybody_else(world: &World, url: &str) -> anyhow::Result<()> {
    let words = ["genpkey", "-algorithm", "ed25519", "-out", "other.pem"];
    let made = Command::new("openssl").args(words).current_dir(world.directory()).status()?;
    ensure!(made.success(), "openssl made no key");
    let stranger = call(world, url, &["--key-file", "other.pem", "--release", "one"]).await?.ended_with(6)?;
    ensure!(stranger.contains("no webhook `ci` has the key"), "{stranger}");
    let base = url.trim_end_matches("/webhooks/ci/calls");
    for path in
        ["installs", "webhooks", "webhooks/ci/remove", "webhooks/ci/calls/../remove", "webhooks/ci%2Fremove/calls"]
    {
        for method in ["GET", "POST"] {
            let out = Command::new("curl")
                .args([
                    "-s",
                    "--path-as-is",
                    "-o",
                    "/dev/null",
                    "-w",
                    "%{http_code}",
                    "-X",
                    method,
                    &format!("{base}/{path}"),
                ])
                .output()?;
            let status = String::from_utf8(out.stdout)?;
            ensure!(["400", "401", "403", "404"].contains(&status.as_str()), "{method} {path}: {status}");
        }
    }
    Ok(())
}

/// Calls the webhook as docs/webhooks.md shows it; returns what it printed. It fails with the call.
fn by_hand(world: &World, url: &str, release: &str) -> anyhow::Result<String> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/webhooks.md"))?;
    let block = page.split("```bash\n").nth(1).and_then(|rest| rest.split("```").next());
    let script = block.context("docs/webhooks.md has no script")?;
    ensure!(script.contains("openssl pkeyutl") && script.contains("curl"), "{script}");
    let out = Command::new("bash")
        .args(["-euc", &format!("{script}\n")])
        .envs([("WEBHOOK_URL", url), ("WEBHOOK_KEY", "ci.pem"), ("RELEASE", release), ("EVENT", "build-8")])
        .current_dir(world.directory())
        .output()?;
    let output = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "{output}");
    Ok(output)
}

/// Waits until `globex` has this version. The schedule is called each minute; here it is called at once.
async fn has_caught_up(world: &World) -> anyhow::Result<()> {
    let table = aws_sdk_dynamodb::Client::new(&world.administrator(world.tenant_account())?);
    let due = || table.scan().table_name(format!("fh-{}", world.tenant())).into_paginator().items().send();
    until("the install has no task to follow its channel", SOON, || async {
        let mut rows = due();
        while let Some(row) = rows.next().await {
            let row = row?;
            let text = |name: &str| row.get(name).and_then(|value| value.as_s().ok()).cloned().unwrap_or_default();
            if text("pk") == "due" && text("body").contains("\"due\":\"follow\"") {
                return Ok(None);
            }
        }
        Ok(Some(()))
    })
    .await
}

async fn has_version(world: &World, version: &Value) -> anyhow::Result<()> {
    until("the install has the release of its channel", SOON, || async {
        clients::invoke(&world.administrator(world.tenant_account())?, world.tenant(), "sweep").await?;
        let view = world.vendor(&["install", "show", "globex"]).await?;
        Ok((view["version"] == *version && view["live"].is_null()).then_some(()))
    })
    .await
}
