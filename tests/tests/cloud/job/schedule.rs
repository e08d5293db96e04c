//! An action by cron, with the clock of the whole cloud moved: it runs once for each minute that is due, however often the
//! sweep runs in it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail, ensure};
use freehold_protocol::WorkflowId;
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{MovableClock, World, app, clients};
use serde_json::Value;

/// The minutes from one run to the next, as the schedule says.
const MINUTES: u64 = 10;
const TICK: &str = r#"name = "tick"
timeout = "1m"

[[triggers]]
type = "cron"
cron_schedule = "*/10 * * * *"

[[steps]]
name = "say"
command = "echo tick"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_action_runs_once_for_each_minute_that_is_due() -> anyhow::Result<()> {
    let Some((world, clock)) = World::start_with_clock("cloud_schedule", &["bwrap"]).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    app::write(&directory, "actions/tick.toml", TICK)?;
    world.vendor(&["app", "sync", &directory.display().to_string()]).await?;
    let install = world.install("globex", "small").await?;
    let _runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    let first = find_due(&world, &clock).await?;

    let mut expected = BTreeSet::new();
    for minute in [first, first + MINUTES] {
        ensure!(runs(&world).await?.len() == expected.len(), "it ran before its minute");
        move_to(&clock, minute)?;
        tokio::try_join!(sweep(&world), sweep(&world), sweep(&world))?;
        expected.insert(WorkflowId::derive("globex", &format!("cron tick {minute}")).to_string());
        let ended = until("the action has run", SOON, || async {
            let runs = runs(&world).await?;
            let is_over = runs.len() >= expected.len() && runs.values().all(|run| !run["ended_at"].is_null());
            Ok(is_over.then_some(runs))
        });
        let ended = ended.await?;
        sweep(&world).await?;

        assert_eq!(ended.keys().cloned().collect::<BTreeSet<_>>(), expected);
        assert!(ended.values().all(|run| run["state"] == "succeeded" && run["trigger"] == "schedule"), "{ended:?}");
        assert_eq!(runs(&world).await?.len(), expected.len());
    }
    Ok(())
}

/// Returns the minute since 1970 at which the action is due next. The sweep notes it after the provisioning has ended. It may
/// have looked before and postponed the note, so the time passes.
async fn find_due(world: &World, clock: &MovableClock) -> anyhow::Result<u64> {
    for minutes in 0..MINUTES {
        clock.set(i64::try_from(minutes * 60)?)?;
        sweep(world).await?;
        let rows = world.rows("due", "00").await?;
        if let Some((key, _)) = rows.iter().find(|(key, _)| key.ends_with("#globex#run#tick")) {
            return Ok(key.split('#').next().context("a key without a minute")?.parse::<u64>()?);
        }
    }
    bail!("the schedule was not noted within {MINUTES} minutes")
}

/// Lets the clock show some seconds after the beginning of a minute since 1970.
fn move_to(clock: &MovableClock, minute: u64) -> anyhow::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    clock.set(i64::try_from(minute * 60 + 5)? - i64::try_from(now)?)
}

/// Runs the sweep, which the schedule of the cloud calls each minute.
async fn sweep(world: &World) -> anyhow::Result<()> {
    clients::invoke(&world.administrator(world.tenant_account())?, world.tenant(), "sweep").await
}

/// Returns the runs of the action, by their workflows.
async fn runs(world: &World) -> anyhow::Result<BTreeMap<String, Value>> {
    let all = world.vendor(&["workflow", "list", "globex"]).await?;
    let runs = all.as_array().into_iter().flatten().filter(|view| view["action"] == "tick");
    Ok(runs.map(|view| (view["workflow"].as_str().unwrap_or_default().to_owned(), view.clone())).collect())
}
