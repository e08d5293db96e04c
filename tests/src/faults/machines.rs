//! Faults of the runner's process and its machine.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use freehold_protocol::Digest;
use tokio::time::Instant;

use super::calls::{self, Work};
use super::cell::{Begun, Cell, INSTALL, LIMIT, POLL, RELEASE_KEY, states};
use super::class::{Point, Tried, declare, in_rows};
use crate::harness::runner::{How, Signal};
use crate::harness::wait::until;
use crate::harness::{MovableClock, Runner};
use crate::releases::{self, ARCHITECTURE};

declare! {
    3 "the lease ends in the middle of a job" stands_still [];
    5 "the runner is killed" killed [];
    6 "the machine is lost and replaced" replaced [];
    17 "clocks disagree" wrong_clock ["faketime"];
    31 "the runner is replaced by another version" upgraded [];
}

/// The action that shows that work continues after a runner was killed. The emulator first hands the next message to the poll
/// that died with the runner, so the second delivery may be the one that arrives; it starts nothing that must not run twice.
const NEXT: &str = "again";

/// The runner is stopped (SIGSTOP) with its job for longer than its lease, a second machine takes over, and the first one
/// continues (SIGCONT).
async fn stands_still(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let machine = format!("m{}", cell.next_try());
    cell.effects().hold(true);
    let begun = cell.act("again").await?;
    cell.wrote(&begun, "begin", 0).await?;
    let known = cell.runner.log().len();
    cell.runner.signal(Signal::STOP)?;
    let stopped = Instant::now();
    let mut second = cell.world.runner_on_machine(&cell.install, &machine).await?;
    cell.wrote(&begun, "begin", 1).await?;
    let overlap = stopped.elapsed();
    if point.of(&["before", "after"]) == "after" {
        cell.effects().hold(false);
        cell.wrote(&begun, "end", 0).await?;
    }
    cell.runner.signal(Signal::CONT)?;
    cell.effects().hold(false);
    let workflow = cell.ended(&begun).await?;
    // The job of the first runner, which was held before its effect, must not have gone on.
    until("the first runner has noticed", LIMIT, || async {
        let log = cell.runner.log();
        let recent = log.get(known..).unwrap_or_default();
        Ok((recent.contains("lease was lost") || recent.contains("Lost a lease")).then_some(()))
    })
    .await?;
    cell.everything_once(&begun, &workflow).await?;
    ensure!(cell.effects_of(&begun).len() == 1, "both attempts had their effect: {:?}", cell.effects_of(&begun));
    ensure!(workflow.state.as_str() == "succeeded", "{:?}", workflow.state);
    ensure!(overlap >= Duration::from_secs(20), "the second attempt began {overlap:?} after the first one stood still");
    cell.runner.kill().await?;
    let killed_at = Instant::now();
    std::mem::swap(&mut cell.runner, &mut second);
    let next = cell.act(NEXT).await?;
    cell.succeeds(&next).await?;
    polls_end(killed_at).await;
    Ok(Tried::Passed)
}

/// Waits until the poll of a runner that was killed takes nothing from the next try.
async fn polls_end(killed_at: Instant) {
    tokio::time::sleep_until(killed_at + POLL).await;
}

/// The runner is killed before or after each of its calls while it runs an action, and started again at once: between two
/// calls it writes its journal, its spool or its audit file.
async fn killed(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let again = cell.calls(&point, Work::Again, calls::OF_RUNNER).await?;
    let note = cell.calls(&point, Work::Note, calls::OF_RUNNER).await?;
    let [kill, call] = point.among([2, again + note]);
    let (row, skip) = in_rows(call, &[again, note]).context("a run makes no calls")?;
    let action = ["again", "note"][row];
    cell.fail(calls::OF_RUNNER, ["kill-before", "kill-after"][kill], &format!("skip={skip} times=1"))?;
    let begun = cell.act(action).await?;
    let Some(killed_at) = death(cell, &begun).await? else {
        cell.calm();
        cell.succeeds(&begun).await?;
        return Ok(Tried::Missed);
    };
    let lines = cell.effects().lines().len();
    cell.calm();
    cell.runner.start_again()?;
    let taken_up = taken_up(cell, &begun, lines).await?;
    let took = taken_up.duration_since(killed_at).as_secs_f64();
    let workflow = cell.ended(&begun).await?;
    cell.everything_once(&begun, &workflow).await?;
    let state = workflow.state.as_str();
    let jobs = cell.jobs(&workflow).await?;
    let interrupted = jobs.iter().any(|(_, job)| job.state.as_str() == "interrupted");
    let right = state == "succeeded" || (action == "note" && interrupted);
    ensure!(right, "it ended {state}: {:?}", states(&workflow));
    polls_end(killed_at).await;
    Ok(Tried::TakenUp(took))
}

/// Waits until the runner has died, or the work has ended without that; returns when it died.
async fn death(cell: &mut Cell, begun: &Begun) -> anyhow::Result<Option<Instant>> {
    let deadline = Instant::now() + LIMIT;
    loop {
        if !cell.runner.is_alive()? {
            return Ok(Some(Instant::now()));
        }
        let ended = cell.workflow(&begun.workflow).await?.state.is_terminal();
        ensure!(Instant::now() < deadline, "neither did the runner die nor the work end");
        // The last calls come after the workflow's end.
        if ended && cell.runner.ends(Duration::from_secs(2)).await.is_err() {
            return Ok(None);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until a job writes a line again or the work has ended.
async fn taken_up(cell: &Cell, begun: &Begun, lines: usize) -> anyhow::Result<Instant> {
    until("the work is taken up again", LIMIT, || async {
        let more = cell.effects().lines().len() > lines;
        let ended = more || cell.workflow(&begun.workflow).await?.state.is_terminal();
        Ok(ended.then(Instant::now))
    })
    .await
}

/// The runner is killed, and another one with an empty disk takes its place; in every second try the first one comes back.
async fn replaced(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let machine = format!("m{}", cell.next_try());
    let old = key(cell).await?;
    cell.effects().hold(true);
    let begun = cell.act("again").await?;
    cell.wrote(&begun, "begin", 0).await?;
    cell.runner.kill().await?;
    let mut killed_at = Instant::now();
    let before = cell.runner.how();
    cell.effects().hold(false);
    cell.runner = cell.world.runner_on_machine(&cell.install, &machine).await?;
    cell.succeeds(&begun).await?;
    let new = key(cell).await?;
    ensure!(new != old, "the new machine has the old key");
    let comes_back = point.of(&[false, true]);
    if comes_back {
        let mut late = Runner::start(before)?;
        until("the old machine has enrolled with a new key", LIMIT, || async {
            Ok(Some(key(cell).await?).filter(|key| *key != new && *key != old))
        })
        .await?;
        cell.runner.kill().await?;
        killed_at = Instant::now();
        std::mem::swap(&mut cell.runner, &mut late);
    }
    let next = cell.act(NEXT).await?;
    cell.succeeds(&next).await?;
    if comes_back {
        // A machine that is replaced a second time within a day gives up, so the next try gets one that never was.
        cell.runner.kill().await?;
        killed_at = Instant::now();
        cell.runner = cell.world.runner_on_machine(&cell.install, &format!("{machine}-next")).await?;
        let last = cell.act(NEXT).await?;
        cell.succeeds(&last).await?;
    }
    polls_end(killed_at).await;
    Ok(Tried::Passed)
}

async fn key(cell: &Cell) -> anyhow::Result<String> {
    let view = cell.world.vendor(&["install", "show", INSTALL]).await?;
    Ok(view["runner"]["key"].as_str().context("the install has no runner")?.to_owned())
}

/// The runner's clock is ten minutes off, or jumps by ten minutes in the middle of a job.
async fn wrong_clock(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let (begins, becomes) = point.of(&[(600, 600), (-600, -600), (0, 600), (0, -600)]);
    let clock = MovableClock::ahead_by(begins, cell.world.directory())?;
    let honest = cell.runner.how();
    cell.runner.kill().await?;
    let mut wrong = honest.clone();
    wrong.environment.extend(clock.environment()?);
    cell.runner = Runner::start(wrong)?;
    cell.effects().hold(true);
    let begun = cell.act("again").await?;
    cell.wrote(&begun, "begin", 0).await?;
    clock.set(becomes)?;
    if begins != becomes {
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    cell.effects().hold(false);
    let tried = cell.succeeds(&begun).await;
    cell.runner.kill().await?;
    let killed_at = Instant::now();
    cell.runner = Runner::start(honest)?;
    tried?;
    let next = cell.act(NEXT).await?;
    cell.succeeds(&next).await?;
    polls_end(killed_at).await;
    Ok(Tried::Passed)
}

/// The runner is replaced in the middle of a job, which it finishes first: by another process on its disk, after it was asked to
/// end or was killed, or by an order that names another program. Both have the same version, unless `FREEHOLD_PREVIOUS_RUNNER`
/// names the program of the version before, which is the first then.
async fn upgraded(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let how = point.of(&["ended", "killed", "ordered"]);
    if how == "ordered" {
        return upgraded_by_order(cell).await;
    }
    let newer = cell.runner.how();
    if let Some(program) = std::env::var_os("FREEHOLD_PREVIOUS_RUNNER") {
        cell.runner.kill().await?;
        cell.runner = Runner::start(How { program: program.into(), ..newer.clone() })?;
    }
    let killed = how == "killed";
    cell.effects().hold(true);
    let begun = cell.act("again").await?;
    cell.wrote(&begun, "begin", 0).await?;
    if killed {
        cell.runner.kill().await?;
    } else {
        cell.runner.signal(Signal::TERM)?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        ensure!(cell.runner.is_alive()?, "it ended before its job had");
    }
    cell.effects().hold(false);
    if !killed {
        let code = cell.runner.ends(LIMIT).await?;
        ensure!(code == Some(0), "it ended with {code:?}: {}", cell.runner.log());
        ensure!(cell.effects_of(&begun).len() == 1, "it did not finish its job");
    }
    cell.runner = Runner::start(newer)?;
    cell.succeeds(&begun).await?;
    let next = cell.act(NEXT).await?;
    cell.succeeds(&next).await?;
    Ok(Tried::Passed)
}

/// The vendor orders another program while a job runs. The job ends on the old program, then the new one works.
async fn upgraded_by_order(cell: &mut Cell) -> anyhow::Result<Tried> {
    let name = format!("program-{}", cell.next_try());
    let program = releases::another(&cell.runner.how().program, cell.world.directory(), &name)?;
    let folder = releases::write(&cell.world.directory().join(&name), &program, RELEASE_KEY)?;
    let state = cell.runner.state_directory()?;
    let file_has =
        |text: &str| std::fs::read_to_string(state.join("programs.json")).is_ok_and(|file| file.contains(text));
    cell.effects().hold(true);
    let begun = cell.act("again").await?;
    cell.wrote(&begun, "begin", 0).await?;
    let words = ["install", "upgrade-runner", INSTALL, "--release", &folder, "--arch", ARCHITECTURE, "--no-wait"];
    let started = cell.world.vendor(&words).await?;
    until("the program waits for the job", LIMIT, || async { Ok(file_has("\"ready\"").then_some(())) }).await?;
    ensure!(cell.effects_of(&begun).is_empty(), "the job did not wait: {:?}", cell.effects_of(&begun));
    cell.effects().hold(false);
    cell.succeeds(&begun).await?;
    ensure!(cell.effects_of(&begun).len() == 1, "the old program did not finish its job once");
    let workflow = started["workflow"].as_str().context("the upgrade has no workflow")?;
    let upgraded = cell.world.vendor(&["workflow", "watch", workflow]).await?;
    ensure!(upgraded["state"] == "succeeded", "{upgraded}\n{}", cell.runner.log());
    ensure!(
        file_has(Digest::of(&program).as_str()) && !file_has("\"candidate\""),
        "the new program is not the current one"
    );
    let next = cell.act(NEXT).await?;
    cell.succeeds(&next).await?;
    // The other tries stop and kill the process that works, which is the machine's own program for them.
    cell.runner.kill().await?;
    let killed_at = Instant::now();
    std::fs::remove_file(state.join("programs.json"))?;
    cell.runner.start_again()?;
    polls_end(killed_at).await;
    Ok(Tried::Passed)
}
