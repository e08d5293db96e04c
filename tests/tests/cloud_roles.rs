//! Roles across two accounts: a runner configured by its stack alone, modes that the customer switches off and on, and
//! break-glass, which expires by itself.

#![cfg(test)]

use std::time::Duration;

use anyhow::Context as _;
use aws_sdk_sqs::primitives::{DateTime, DateTimeFormat};
use freehold_tests::harness::wait::until;
use freehold_tests::harness::{Capability, Needs, World, app};
use serde_json::Value;

const NEEDS: Needs = Needs { cloud: &[Capability::HttpApi, Capability::IamEnforced], programs: &["bwrap"] };

const BREAK_GLASS: &str = r#"[[role]]
name = "{{ .nuon.install.id }}-break-glass"
description = "Looks at everything when something is on fire"

[[role.policies]]
managed_policy_name = "ReadOnlyAccess"
"#;

/// Says under which role it runs, when it is asked to.
fn action(name: &str, more: &str) -> String {
    format!(
        r#"name = "{name}"
timeout = "1m"
{more}

[[triggers]]
type = "manual"

[[steps]]
name = "say"
inline_contents = """
#!/bin/sh
echo done
"""
"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_switches_modes_and_opens_break_glass_for_a_while() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_roles", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    app::write(&directory, "break_glass.toml", BREAK_GLASS)?;
    app::write(&directory, "actions/look.toml", &action("look", ""))?;
    app::write(
        &directory,
        "actions/repair.toml",
        &action("repair", "break_glass_role = \"{{.nuon.install.id}}-break-glass\""),
    )?;
    world.vendor(&["app", "sync", &directory.display().to_string()]).await?;
    let install = world.install("globex", "small").await?;
    let runner = world.runner_of_stack(&install).await?;
    let provisioned = world.provisioned(&install).await?;
    assert_eq!(provisioned["state"], "succeeded", "{provisioned}\n{}", runner.log());

    let closed = run(&world, &["repair"]).await?;
    let elsewhere = run(&world, &["look", "--role", "break-glass"]).await?;
    let open = run(&world, &["look"]).await?;
    world.change_stack(&install, &["EnableMaintenance=false"]).await?;
    let off = run(&world, &["look"]).await?;
    world.change_stack(&install, &["EnableMaintenance=true"]).await?;
    let on = run(&world, &["look"]).await?;

    assert_eq!((state_of(&closed), state_of(&elsewhere), state_of(&open)), ("blocked", "blocked", "succeeded"));
    assert_eq!((state_of(&off), state_of(&on)), ("blocked", "succeeded"));
    assert_eq!((closed["mode"].as_str(), closed["role"].as_str()), (Some("break_glass"), Some("break-glass")));
    for (job, said) in [
        (&closed, "set parameter `EnableBreakGlass` of the install stack to `true`, and `BreakGlassUntil`"),
        (&off, "set parameter `EnableMaintenance` of the install stack to `true`"),
    ] {
        assert!(job["reason"].as_str().unwrap_or_default().contains(said), "{job}");
    }

    let end = now()? + 45;
    let until_then = DateTime::from_secs(end).fmt(DateTimeFormat::DateTime)?;
    world.change_stack(&install, &["EnableBreakGlass=true", &format!("BreakGlassUntil={until_then}")]).await?;
    let glass = run(&world, &["repair"]).await?;
    assert_eq!(state_of(&glass), "succeeded", "{glass}");
    until("break-glass is over", Duration::from_secs(120), async || Ok((now()? > end).then_some(()))).await?;
    assert_eq!(state_of(&run(&world, &["repair"]).await?), "blocked");
    Ok(())
}

/// Runs an action; returns its job.
async fn run(world: &World, arguments: &[&str]) -> anyhow::Result<Value> {
    let run = [&["action", "run", "globex"], arguments].concat();
    // It ends with 1 when the action does not succeed.
    let _ = world.run(&run).await?;
    let workflow = world.newest_workflow("globex").await?;
    let id = workflow["nodes"][0]["job"].as_str().with_context(|| format!("no job: {workflow}"))?;
    world.vendor(&["job", "show", id]).await
}

fn state_of(job: &Value) -> &str {
    job["state"].as_str().unwrap_or_default()
}

/// Returns the seconds since 1970.
fn now() -> anyhow::Result<i64> {
    Ok(i64::try_from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs())?)
}
