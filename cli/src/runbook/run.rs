//! `freehold runbook run`: starts a run of a runbook and follows it.

use clap::Args;
use console::measure_text_width;
use freehold_client::calls;
use freehold_protocol::api::{RunRunbookRequest, RunView, WorkflowView};
use freehold_protocol::{InstallId, RunId, RunbookName};

use super::text::{outcome, step_name};
use crate::api::{Api, POLL_INTERVAL, describe_wait};
use crate::error::Result;
use crate::inputs::{Input, texts_by_name};
use crate::output::Output;
use crate::progress::{Progress, or_stopped};

/// Run a runbook of an install and wait until its last step has ended. The first step that does not succeed ends the
/// run, and such a run can be resumed. The runbook comes from the app version that was last deployed completely, or
/// from the latest version if no version was deployed completely yet.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  freehold runbook run globex restart-and-verify\n  freehold runbook run globex restore --input snapshot=2026-11-27"
)]
pub(crate) struct RunRunbook {
    /// Name of the install.
    install: InstallId,
    /// Name of the runbook, as `freehold runbook list` shows it.
    runbook: RunbookName,
    /// An input of the runbook: `name=text`, or `name=@FILE` for the text of a file. Can be given several times.
    #[arg(long = "input", value_name = "NAME=TEXT")]
    inputs: Vec<Input>,
    /// Also start the steps while the customer's change windows are closed. This works only for callers whom the customer has
    /// named.
    #[arg(long)]
    now: bool,
    /// Start the run and return at once.
    #[arg(long)]
    no_wait: bool,
}

impl RunRunbook {
    pub(super) async fn run(self, api: &Api, out: Output) -> Result<()> {
        let inputs = texts_by_name(&self.inputs)?;
        let request = RunRunbookRequest { inputs, now: self.now };
        let view: RunView = api.send(calls::run_runbook(&self.install, &self.runbook, &request)).await?;
        follow_run(api, out, view, !self.no_wait).await
    }
}

/// Prints the result of a run that was just started or resumed. If `wait` is false, prints only that the run has
/// started.
pub(super) async fn follow_run(api: &Api, out: Output, view: RunView, wait: bool) -> Result<()> {
    let run = view.run.clone();
    if !wait && view.state == "running" {
        return out.show(&view, |view| {
            format!(
                "runbook `{}` of `{}` started ({run}); follow it with `freehold runbook watch {run}`",
                view.runbook, view.install
            )
        });
    }
    let progress = Progress::start();
    let stopped = format!(
        "stopped watching; `{run}` continues: watch it with `freehold runbook watch {run}`, or stop it with `freehold runbook cancel {run}`"
    );
    let ended = or_stopped(until_ended(api, view, &progress), stopped).await?;
    drop(progress);
    let outcome = outcome(&ended);
    if out.is_json() {
        out.show(&ended, |_| String::new())?;
    }
    out.line(&outcome?);
    Ok(())
}

async fn until_ended(api: &Api, mut view: RunView, progress: &Progress) -> Result<RunView> {
    let mut things = progress.things();
    progress.say(&format!("runbook {} in {}: {}", view.runbook, view.install, view.run));
    loop {
        let names: Vec<String> = view.steps.iter().enumerate().map(|(at, step)| step_name(at, step)).collect();
        let width = names.iter().map(|name| measure_text_width(name)).max().unwrap_or_default();
        for (name, step) in names.iter().zip(&view.steps) {
            let workflow = step.workflow.as_ref().map(ToString::to_string).unwrap_or_default();
            let note = if step.state == "failed" { String::new() } else { workflow };
            things.set(name, &step.state, &note, width);
        }
        if view.state != "running" {
            things.finish();
            return Ok(view);
        }
        if let Some(waits) = waits(api, &view).await {
            progress.waiting(&waits, true);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        view = fetch_run(api, &view.run).await?;
    }
}

/// Returns the sentence about what the running step waits for, if it waits. An error is ignored, because the state is
/// requested again soon.
async fn waits(api: &Api, view: &RunView) -> Option<String> {
    let running = view.steps.iter().find(|step| step.state == "running")?;
    let workflow: WorkflowView = api.send(calls::show_workflow(running.workflow.as_ref()?)).await.ok()?;
    describe_wait(api, &workflow).await
}

/// Fetches a run.
pub(super) async fn fetch_run(api: &Api, run: &RunId) -> Result<RunView> {
    api.send(calls::show_run(run)).await
}
