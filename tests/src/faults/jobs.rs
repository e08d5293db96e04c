//! Faults that a job meets or makes: Terraform that dies, sizes, floods, a full disk, too little memory, short sessions.

use std::fs;

use anyhow::{Context as _, ensure};
use freehold_domain::job::JobState;
use rustix::process::{Pid, Signal, kill_process};

use super::cell::{Begun, Cell, LIMIT, states};
use super::class::{Point, Tried, declare};
use crate::harness::wait::until;

declare! {
    21 "Terraform dies in the middle of an apply" dead_terraform ["terraform|tofu"];
    25 "credentials expire in the middle of a job" short_sessions ["curl"];
    26 "a payload is too large" large_outputs [];
    27 "a job floods its log" flooded_log [];
    28 "a job fills the disk or takes all memory" no_room [];
}

/// Terraform is killed (-9) while it makes its k-th resource; the job ends as partly done, and the next one does the rest.
async fn dead_terraform(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    const STEPS: [&str; 5] = ["one", "two", "three", "four", "five"];
    let (step, round) = (point.of(&STEPS), format!("round:={}", cell.next_try() + 1));
    let begun = cell.deploy_steps(&round).await?;
    cell.wrote(&begun, &format!("begin {step} "), 0).await?;
    let killed = kill_terraform(&cell.proxies.runners.url())?;
    let workflow = cell.ended(&begun).await?;
    if killed == 0 {
        cell.end_steps().await?;
        return Ok(Tried::Missed);
    }
    let jobs = cell.jobs(&workflow).await?;
    let (_, job) = jobs.iter().find(|(node, _)| node == "steps").context("no job `steps`")?;
    let partly = matches!(&job.state, JobState::Failed { partial: true, .. });
    ensure!(partly, "the job of a killed Terraform is {:?}", job.state);
    // Another step may have begun before Terraform was killed.
    let started = cell.begun_of(&begun);
    let again = cell.deploy_steps(&round).await?;
    let workflow = cell.ended(&again).await?;
    cell.end_steps().await?;
    ensure!(workflow.state.as_str() == "succeeded", "the next deploy: {:?}", states(&workflow));
    let known = STEPS.iter().rposition(|one| started.contains(&(*one).to_owned())).unwrap_or_default();
    for (at, one) in STEPS.into_iter().enumerate() {
        let times = cell.effects_of(&begun).iter().filter(|effect| *effect == one).count();
        // Terraform keeps its state every 20 s: what it made since then, up to its end, is made again.
        let most = if at <= known { 2 } else { 1 };
        ensure!((1..=most).contains(&times), "`{one}` was made {times} times, killed at `{step}`");
    }
    Ok(Tried::Passed)
}

/// Kills each Terraform whose endpoint is this cell's; returns how many there were.
fn kill_terraform(endpoint: &str) -> anyhow::Result<u32> {
    let mut killed = 0;
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let command = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let wanted = format!("AWS_ENDPOINT_URL={endpoint}");
        let ours = environment.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes());
        if ours
            && ["terraform", "tofu"].contains(&command.trim())
            && let Some(pid) = Pid::from_raw(pid)
        {
            kill_process(pid, Signal::KILL)?;
            killed += 1;
        }
    }
    Ok(killed)
}

/// Sessions end after a minute or less: the job asks twice, and gets new keys without being started again.
async fn short_sessions(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let secs = point.of(&[60, 30, 10, 1]);
    cell.on_runner(&format!("sts.AssumeRole 1 short-session:{secs}"))?;
    let begun = cell.act("keys").await?;
    let ended = cell.succeeds(&begun).await;
    let hit = cell.proxies.runners.counts().injected("sts.AssumeRole") > 1;
    cell.calm();
    ended?;
    Ok(Tried::when(hit))
}

/// Outputs of all sizes up to a megabyte: those beyond the limit end their job with the size.
async fn large_outputs(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let bytes = point.of(&[66_000, 1_000_000, 65_600, 128_000, 262_144, 500_000, 65_400, 64_000]);
    cell.next_try();
    let begun = cell.deploy_with(&[&format!("pad:={bytes}")]).await?;
    let workflow = cell.ended(&begun).await?;
    let jobs = cell.jobs(&workflow).await?;
    let (_, job) = jobs.iter().find(|(node, _)| node == "action:record").context("no job `action:record`")?;
    if bytes > 64 * 1024 {
        let reason = job.reason().unwrap_or_default();
        ensure!(job.state.as_str() == "failed" && reason.contains("can be reported"), "{bytes}: {:?}", job.state);
    } else {
        ensure!(workflow.state.as_str() == "succeeded", "{bytes}: {:?}", states(&workflow));
    }
    let next = cell.deploy_with(&["pad:=0"]).await?;
    cell.succeeds(&next).await?;
    Ok(Tried::Passed)
}

/// A job prints 8 MB as noise, as lines, as one line, or as noise on its other output: they are cut, its log says so, and the
/// runner continues.
async fn flooded_log(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let kind = point.of(&["noise", "lines", "line", "errors"]);
    let begun = cell.act_with("flood", &[&format!("kind={kind}")]).await?;
    cell.succeeds(&begun).await?;
    let job = only_job(cell, &begun).await?;
    // Parts of a log may arrive after the report of the end: docs/guarantees.md does not promise them.
    let look = || async {
        let log = cell.world.run(&["job", "logs", &job]).await?.out;
        ensure!(log.len() < 4 << 20, "{} bytes of the log reached the vendor", log.len());
        Ok(log.contains("bytes of log left out here]").then_some(()))
    };
    until("the log shows that it was cut", LIMIT, look).await?;
    let next = cell.act("note").await?;
    cell.succeeds(&next).await?;
    Ok(Tried::Passed)
}

/// A job fills its workspace or takes more memory than it may: it ends because of that, alone, and the runner lives.
async fn no_room(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    // The limit that is met first ends the job: that of the workspace or of a file in it, and that of a program or of the
    // whole job. Each has an exit code and a line in the log.
    let (action, ends) = point.of(&[
        ("fill", [(137, "because the workspace holds"), (153, "File size limit exceeded")]),
        // Without a program that is left, nothing writes a line.
        ("bomb", [(137, ""), (1, "memory exhausted")]),
    ]);
    let begun = cell.act(action).await?;
    let workflow = cell.ended(&begun).await?;
    ensure!(workflow.state.as_str() == "failed", "`{action}` ended {:?}", workflow.state);
    let jobs = cell.jobs(&workflow).await?;
    let (_, job) = jobs.first().context("a run without a job")?;
    let (id, reason) = (job.id.to_string(), job.reason().unwrap_or_default());
    let cause = reason.trim_end_matches(" (partial)");
    let end = ends.into_iter().find(|(code, _)| cause.ends_with(&format!("ended with exit code {code}")));
    let (_, line) = end.with_context(|| format!("`{action}` failed for another reason: {reason}"))?;
    let look = || async {
        let log = cell.world.run(&["job", "logs", &id]).await?.out;
        anyhow::Ok(log.contains(line).then_some(()))
    };
    until(&format!("the log of `{action}` contains `{line}`"), LIMIT, look).await?;
    ensure!(cell.effects_of(&begun).is_empty(), "`{action}` had its effect");
    ensure!(cell.runner.is_alive()?, "the runner died with `{action}`");
    let next = cell.act("note").await?;
    cell.succeeds(&next).await?;
    Ok(Tried::Passed)
}

/// Returns the id of the job of a run.
async fn only_job(cell: &Cell, begun: &Begun) -> anyhow::Result<String> {
    let jobs = cell.jobs(&cell.workflow(&begun.workflow).await?).await?;
    Ok(jobs.first().context("a run without a job")?.1.id.to_string())
}
