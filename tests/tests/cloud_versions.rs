//! App versions in the tenant's bucket: a large app from sync to a finished job, with every function under its own role.

#![cfg(test)]

use anyhow::{Context as _, ensure};
use freehold_protocol::limits::MAX_TABLE_VERSION_BYTES;
use freehold_tests::harness::{Capability, Needs, World, app};

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
    let shown = world.vendor(&["app", "show", "small"]).await?;
    let listed = world.vendor(&["app", "versions", "small"]).await?;

    assert_eq!((&synced["changed"], &again["changed"]), (&true.into(), &false.into()));
    assert_eq!((&synced["version"], &listed[0]["version"]), (&shown["version"], &shown["version"]));
    let text = shown["document"]["actions"][0]["steps"][0]["inline_contents"].as_str().context("a script")?;
    ensure!(text.len() > MAX_TABLE_VERSION_BYTES, "the script has {} bytes", text.len());
    let install = world.install("globex", "small").await?;
    let _runner = world.runner(&install).await?;
    assert_eq!(world.provisioned(&install).await?["state"], "succeeded");
    let run = world.vendor(&["action", "run", "globex", "say"]).await?;
    assert_eq!(run["state"], "succeeded", "{run}");
    Ok(())
}
