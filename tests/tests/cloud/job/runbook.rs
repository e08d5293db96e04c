//! A runbook across two accounts: its steps follow each other, a failure stops it, and it continues where it stopped, also
//! after its runner was killed.

use anyhow::{Context as _, ensure};
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Needs, World, app};
use serde_json::Value;

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced],
    programs: &["terraform|tofu", "bwrap"],
};

/// The second step fails until the install's input has another value. The last one takes so long that its runner can be
/// killed meanwhile.
const RUNBOOK: &str = r#"
name = "maintain"
description = "Deploys and looks"

[[inputs]]
name = "ticket"
description = "The ticket of the change"
required = true

[[steps]]
name = "names"
type = "component_deploy"
component_name = "naming"

[[steps]]
name = "gate"
type = "command"
command = 'echo "ticket $TICKET" && test "{{ .nuon.inputs.inputs.retention_days }}" = 5'
env_vars = { TICKET = "{{ .nuon.runbook.inputs.ticket }}" }

[[steps]]
type = "action"
action_name = "health-check"

[[steps]]
type = "component_deploy"
component_name = "queue"
deploy_dependencies = true

[[steps]]
name = "nap"
type = "command"
command = '[ "{{ .nuon.inputs.inputs.retention_days }}" != 5 ] || sleep 240'
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_runbook_stops_at_a_failure_and_continues_where_it_stopped() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_runbook", NEEDS).await? else { return Ok(()) };
    let directory = world.directory().join("shop");
    world.vendor(&["app", "init", &directory.display().to_string()]).await?;
    app::write(&directory, "runbooks/maintain.toml", RUNBOOK)?;
    world.ship(&directory).await?;
    let install = world.install("globex", "shop").await?;
    let mut runner = world.runner(&install).await?;
    world.provisioned(&install).await?;

    // What is wrong is refused before anything runs.
    let list = world.run(&["runbook", "list", "globex"]).await?.ended_with(0)?;
    ensure!(list.contains("--input ticket=TEXT  The ticket of the change (required)"), "{list}");
    let unknown = world.run(&["runbook", "run", "globex", "maintian"]).await?.ended_with(3)?;
    ensure!(unknown.contains("did you mean `maintain`?"), "{unknown}");
    let missing = world.run(&["runbook", "run", "globex", "maintain"]).await?.ended_with(2)?;
    ensure!(missing.contains("give it with `--input ticket=VALUE`"), "{missing}");

    // The second step fails, and nothing after it starts.
    let run = ["runbook", "run", "globex", "maintain", "--input", "ticket=OPS-42"];
    let failed = world.run(&run).await?.ended_with(1)?;
    ensure!(failed.contains("step 2 (run action runbook-maintain-step-2)"), "{failed}");
    let all = world.vendor(&["runbook", "runs", "globex"]).await?;
    let id = all[0]["run"].as_str().context("no run")?.to_owned();
    let view = world.vendor(&["runbook", "show", &id]).await?;
    ensure!(states(&view) == ["succeeded", "failed", "waiting", "waiting", "waiting"], "{view}");
    let log = log_of(&world, &view["steps"][1], "ticket OPS-42").await?;
    ensure!(log.contains("ticket OPS-42"), "{log}");

    // What was wrong is put right, and the run continues. Its runner dies in the last step.
    world.vendor(&["install", "inputs", "globex", "--input", "retention_days:=5"]).await?;
    let resume = ["runbook", "resume", &id, "--reason", "five days now", "--no-wait"];
    world.vendor(&resume).await?;
    let napping = until("the last step runs", 4 * SOON, || async {
        let view = world.vendor(&["runbook", "show", &id]).await?;
        ensure!(view["state"] == "running", "{view}");
        let workflow = view["steps"][4]["workflow"].as_str().map(str::to_owned);
        let Some(workflow) = workflow else { return Ok(None) };
        let nap = world.vendor(&["workflow", "show", &workflow]).await?;
        let job = nap["nodes"][0]["job"].as_str().map(str::to_owned);
        let Some(job) = job else { return Ok(None) };
        let job = world.vendor(&["job", "show", &job]).await?;
        Ok((job["state"] == "running").then_some(view))
    })
    .await?;
    ensure!(napping["steps"][0]["tries"] == 1 && napping["steps"][1]["tries"] == 2, "{napping}");
    let busy = world.run(&run).await?.ended_with(4)?;
    ensure!(busy.contains(&format!("is busy with run `{id}`")), "{busy}");
    runner.kill().await?;
    runner.start_again()?;
    let cut = world.run(&["runbook", "watch", &id]).await?.ended_with(1)?;
    ensure!(cut.contains("step 5 (run action runbook-maintain-step-5)"), "{cut}");

    // A cancel stops it. The last try has nothing to sleep for, and ends it.
    world.vendor(&resume).await?;
    world.vendor(&["runbook", "cancel", &id]).await?;
    let stopped = world.run(&["runbook", "watch", &id]).await?.ended_with(1)?;
    ensure!(stopped.contains("cancelled"), "{stopped}");
    world.vendor(&["install", "inputs", "globex", "--input", "retention_days:=4"]).await?;
    let ended = world.run(&["runbook", "resume", &id, "--reason", "for good"]).await?.ended_with(0)?;
    ensure!(ended.contains("runbook `maintain` of `globex` succeeded"), "{ended}");

    let view = world.vendor(&["runbook", "show", &id]).await?;
    ensure!(states(&view) == ["succeeded"; 5], "{view}");
    let reasons: Vec<&str> =
        view["resumed"].as_array().into_iter().flatten().filter_map(|one| one["reason"].as_str()).collect();
    ensure!(reasons == ["five days now", "five days now", "for good"], "{view}");
    ensure!(view["asked_by"]["arn"].is_string() && view["steps"][3]["tries"] == 1, "{view}");
    let again = world.run(&["runbook", "resume", &id, "--reason", "once more"]).await?.ended_with(4)?;
    ensure!(again.contains("has succeeded; start a new run"), "{again}");
    Ok(())
}

fn states(view: &Value) -> Vec<&str> {
    view["steps"].as_array().into_iter().flatten().filter_map(|step| step["state"].as_str()).collect()
}

/// Returns the log of the only job of a step, once it has `line`.
async fn log_of(world: &World, step: &Value, line: &str) -> anyhow::Result<String> {
    let workflow = step["workflow"].as_str().context("the step has no workflow")?;
    let view = world.vendor(&["workflow", "show", workflow]).await?;
    let job = view["nodes"][0]["job"].as_str().context("the workflow has no job")?;
    world.log(job, |log| log.contains(line)).await
}
