//! App versions, with every function under its own role: a large app from sync to a finished job, and an install that gets
//! the releases of its channel by itself.

use anyhow::{Context as _, ensure};
use freehold_protocol::limits::MAX_TABLE_VERSION_BYTES;
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Needs, World, app, clients};
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
async fn a_large_app_is_synced_installed_and_run() -> anyhow::Result<()> {
    let needs = Needs {
        cloud: &[Capability::HttpApi, Capability::IamEnforced, Capability::AnyAccount, Capability::EmptyAccounts],
        programs: &[],
    };
    let Some(world) = World::start("cloud_versions.large", needs).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    let script = "echo 'one line of a long script'\n".repeat(20_000);
    let action = format!(
        "name = \"large\"\ntimeout = \"1m\"\n\n[[triggers]]\ntype = \"manual\"\n\n\
         [[steps]]\nname = \"large\"\ninline_contents = '''\n{}'''\n",
        script.replace('\'', "")
    );
    app::write(&directory, "actions/large.toml", &action)?;
    let path = directory.display().to_string();

    let synced = world.vendor(&["app", "sync", &path]).await?;
    let again = world.vendor(&["app", "sync", &path]).await?;
    let app_view = world.vendor(&["app", "show", "small"]).await?;
    let versions = world.vendor(&["app", "versions", "small"]).await?;

    assert_eq!((&synced["changed"], &again["changed"]), (&true.into(), &false.into()));
    assert_eq!((&synced["version"], &versions[0]["version"]), (&app_view["version"], &app_view["version"]));
    let text = app_view["document"]["actions"][0]["steps"][0]["inline_contents"].as_str().context("a script")?;
    ensure!(text.len() > MAX_TABLE_VERSION_BYTES, "the script has {} bytes", text.len());
    let install = world.install("globex", "small").await?;
    let _runner = world.runner(&install).await?;
    assert_eq!(world.provisioned(&install).await?["state"], "succeeded");
    let run = world.vendor(&["action", "run", "globex", "say"]).await?;
    assert_eq!(run["state"], "succeeded", "{run}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_install_gets_the_releases_of_its_channel_and_a_pin_holds() -> anyhow::Result<()> {
    let needs = Needs {
        cloud: &[Capability::HttpApi, Capability::IamEnforced, Capability::AnyAccount, Capability::EmptyAccounts],
        programs: &[],
    };
    let Some(world) = World::start("cloud_versions.channel", needs).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    let path = directory.display().to_string();
    let mut versions = Vec::new();
    for name in ["one", "two"] {
        app::edit(&directory, "metadata.toml", "one action", &format!("one action, {name}"))?;
        versions.push(world.vendor(&["app", "sync", &path]).await?["version"].clone());
        world.vendor(&["release", "create", "small", "--name", name]).await?;
    }
    world.vendor(&["channel", "move", "small", "stable", "one"]).await?;
    let install = world.install("globex", "small").await?;
    let _runner = world.runner(&install).await?;
    world.provisioned(&install).await?;

    world.vendor(&["install", "release", "globex", "--channel", "stable"]).await?;
    has_version(&world, &versions[0]).await?;
    world.vendor(&["channel", "move", "small", "stable", "two"]).await?;
    has_version(&world, &versions[1]).await?;
    let followed = world.newest_workflow("globex").await?;
    let channels = world.vendor(&["channel", "list", "small"]).await?;
    let again = world.vendor(&["channel", "move", "small", "stable", "two", "--again"]).await?;
    let none = world.run(&["channel", "move", "small", "beta", "two", "--again"]).await?.ended_with(3)?;
    let pinned = world.vendor(&["install", "release", "globex", "--pin", "one"]).await?;
    let other = world.run(&["deploy", "globex", "--release", "two"]).await?.ended_with(4)?;
    world.vendor(&["deploy", "globex"]).await?;

    assert_eq!((&followed["release"], &followed["state"]), (&"two".into(), &"succeeded".into()), "{followed}");
    assert_eq!(
        (&channels[0]["release"], &channels[0]["installs"], &channels[0]["moves"]),
        (&"two".into(), &1.into(), &2.into())
    );
    assert_eq!(followed["asked_by"], channels[0]["moved_by"], "{followed}");
    assert_eq!((&again["release"], &again["moves"]), (&"two".into(), &3.into()), "{again}");
    ensure!(none.contains("has no channel `beta` yet"), "{none}");
    assert_eq!(pinned["release"]["release"], "one", "{pinned}");
    ensure!(other.contains("install `globex` follows release `one`"), "{other}");
    assert_eq!(world.vendor(&["install", "show", "globex"]).await?["version"], versions[0]);
    Ok(())
}

/// Waits until `globex` has this version. The schedule is called each minute; here it is called at once.
async fn has_version(world: &World, version: &Value) -> anyhow::Result<()> {
    until("the install has the release of its channel", SOON, || async {
        clients::invoke(&world.administrator(world.tenant_account())?, world.tenant(), "sweep").await?;
        let view = world.vendor(&["install", "show", "globex"]).await?;
        Ok((view["version"] == *version && view["live"].is_null()).then_some(()))
    })
    .await
}
