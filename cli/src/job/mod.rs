//! `freehold job`: shows, cancels and retries a job, approves and rejects its plan, and prints its log.

pub(crate) mod plan;

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use freehold_client::calls;
use freehold_protocol::JobId;
use freehold_protocol::api::{CancelJobRequest, JobView, LogPage};
use freehold_protocol::preflight::{FINDINGS, Finding};
use freehold_protocol::report::Fence;
use serde_json::Value;

use crate::api::{Api, POLL_INTERVAL};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{Output, Table, note, print_json, print_log, time};
use crate::progress::or_stopped;
use crate::workflow::{Retry, cancelled};

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Show a job: state, reason, outputs, history.
    #[command(after_help = "Example:\n  freehold job show job_0123456789abcdef0123")]
    Show {
        /// Id of the job, as `freehold workflow show` shows it.
        job: JobId,
    },
    Logs(Logs),
    Approve(plan::Approve),
    Reject(plan::Reject),
    /// Ask a job to stop; exit code 4 when the job has already ended and was not cancelled.
    #[command(after_help = "Example:\n  freehold job cancel job_0123456789abcdef0123 --reason wrong-version")]
    Cancel {
        /// Id of the job.
        job: JobId,
        /// The reason, in one line; the customer's audit log shows it.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    Retry(Retry),
}

/// Print the log of a job.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  freehold job logs job_0123456789abcdef0123 -f

The runner redacts secrets before it sends anything. With --json: one JSON object per line.")]
pub(crate) struct Logs {
    /// Id of the job.
    job: JobId,
    /// Follow the log until the job has ended.
    #[arg(short, long)]
    follow: bool,
}

impl JobCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let api = context.api().await?;
        match self {
            Self::Show { job } => {
                let view: JobView = api.send(calls::show_job(&job)).await?;
                context.out.show(&view, |view| show(view, context.out))
            }
            Self::Logs(args) => {
                let stopped = format!(
                    "stopped reading the log, and the job keeps running; cancel it with `freehold job cancel {}`",
                    args.job
                );
                or_stopped(args.print(&api, context.out), stopped).await
            }
            Self::Approve(args) => args.run(context).await,
            Self::Reject(args) => args.run(context).await,
            Self::Retry(retry) => retry.run(context).await,
            Self::Cancel { job, reason } => {
                let view: JobView = api.send(calls::cancel_job(&job, &CancelJobRequest { reason })).await?;
                let open = (&[view.node.as_str()][..], view.ends_by);
                let result = cancelled(job.as_str(), &view.state, open, "job show")?;
                context.out.show(&view, |_| result)
            }
        }
    }
}

impl Logs {
    async fn print(&self, api: &Api, out: Output) -> Result<()> {
        let mut log = Printed { out, parts: BTreeSet::new(), attempt: None };
        let mut cursor = String::new();
        loop {
            let page = self.page(api, &cursor).await?;
            log.print(&page)?;
            let moved = page.cursor != cursor && !page.chunks.is_empty();
            cursor = page.cursor;
            match (moved, page.ended, self.follow) {
                // The log may have more chunks.
                (true, _, _) => {}
                (false, false, true) => tokio::time::sleep(POLL_INTERVAL).await,
                (false, true, true) => {
                    self.print_late(api, &mut log).await?;
                    break;
                }
                (false, true, false) | (false, false, false) => break,
            }
        }
        if log.parts.is_empty() {
            let view: JobView = api.send(calls::show_job(&self.job)).await?;
            note(&without_log(&view));
        }
        Ok(())
    }

    /// Prints the parts that the tenant received after later parts. The cursor had already passed their positions.
    async fn print_late(&self, api: &Api, log: &mut Printed) -> Result<()> {
        let mut cursor = String::new();
        loop {
            let mut page = self.page(api, &cursor).await?;
            let moved = page.cursor != cursor && !page.chunks.is_empty();
            page.chunks.retain(|chunk| !log.parts.contains(&(chunk.fence, chunk.seq)));
            if !page.chunks.is_empty() {
                note("--- earlier parts, which the tenant received later ---");
            }
            log.print(&page)?;
            cursor = page.cursor;
            if !moved {
                return Ok(());
            }
        }
    }

    async fn page(&self, api: &Api, cursor: &str) -> Result<LogPage> {
        api.send(calls::list_logs(&self.job).after(cursor)).await
    }
}

/// The printed parts of a log.
struct Printed {
    out: Output,
    parts: BTreeSet<(Fence, u64)>,
    /// The attempt that wrote the last printed part.
    attempt: Option<Fence>,
}

impl Printed {
    fn print(&mut self, page: &LogPage) -> Result<()> {
        for chunk in &page.chunks {
            self.parts.insert((chunk.fence, chunk.seq));
            if self.out.is_json() {
                print_json(&serde_json::to_string(chunk).map_err(|e| Error::internal(e.to_string()))?);
                continue;
            }
            if self.attempt.replace(chunk.fence).is_some_and(|before| before != chunk.fence) {
                note("--- another attempt ---");
            }
            print_log(&chunk.text);
        }
        Ok(())
    }
}

/// Returns the reason why the log of a job is empty, and what to do next.
fn without_log(view: &JobView) -> String {
    let JobView { job, install, state, .. } = view;
    match state.as_str() {
        "waiting_for_approval" => {
            format!(
                "job `{job}` has no log yet: its plan waits for an approval; `freehold job show {job}` shows the \
                     plan"
            )
        }
        "waiting_for_checks" => format!(
            "job `{job}` has no log: its component waits for required checks; `freehold job show {job}` shows which \
             checks"
        ),
        "waiting_for_window" => format!(
            "job `{job}` has no log yet, because it waits for the customer's change window; `freehold job show {job}` shows until when"
        ),
        "queued" | "waiting_for_runner" => format!(
            "job `{job}` has no log yet, because no runner has started it; `freehold install show {install}` shows when \
             the runner last reported"
        ),
        "running" => format!("job `{job}` has no log yet; `freehold job logs {job} -f` waits for it"),
        ended => format!(
            "job `{job}` ({ended}) has no log: it wrote none, or it ended more than 30 days ago; `freehold job show {job}` \
             shows its reason and its history"
        ),
    }
}

fn show(view: &JobView, out: Output) -> String {
    let mut parts = vec![format!("{}  {}  {}", view.job, view.node, out.state(&view.state))];
    let role = view.role.as_ref().map(|role| format!(", role {role}")).unwrap_or_default();
    parts.push(format!("install {}, {}, mode {}{role}", view.install, view.workflow, view.mode.as_str()));
    parts.extend(waiting(view));
    parts.extend(view.approval.as_ref().map(plan::approved));
    if !view.reason.is_empty() && view.plan.is_none() {
        parts.push(view.reason.clone());
    }
    let tables = [
        results(view, out),
        (!view.policies.is_empty()).then(|| policies(view)),
        (!view.history.is_empty()).then(|| history(view)),
    ];
    parts.extend(tables.iter().flatten().map(|table| format!("\n{}", out.table(table))));
    parts.join("\n")
}

/// Returns what the job waits for.
fn waiting(view: &JobView) -> Option<String> {
    let install = &view.install;
    if view.state == "waiting_for_window" {
        let until = view.opens_at.map(|at| format!(" until {}", time(at))).unwrap_or_default();
        return Some(format!("waits for the customer's change window{until}"));
    }
    if let Some(waiting) = &view.plan {
        return Some(plan::waiting(waiting, &view.job, install));
    }
    if view.state == "waiting_for_checks" {
        return Some(format!(
            "report a check with `freehold check report {install} COMPONENT NAME passed`; `freehold install show {install}` \
             shows the results"
        ));
    }
    let since = time(view.waits_since?);
    let until = view.waits_until.map(|until| format!(", at most until {}", time(until))).unwrap_or_default();
    Some(format!(
        "no runner has taken the job since {since}; it waits{until}; `freehold install show {install}` shows the \
         connection"
    ))
}

/// Returns the findings of a preflight, or else the outputs of the job.
fn results(view: &JobView, out: Output) -> Option<Table> {
    if let Some(findings) = findings(view) {
        let mut table = Table::new(&["CHECK", "STATE", "FOUND", "FIX"]);
        for Finding { check, state, detail, fix } in findings {
            table.row([check, out.state(state.as_str()), detail, fix]);
        }
        return Some(table);
    }
    let mut table = Table::new(&["OUTPUT", "VALUE"]);
    for (name, value) in &view.outputs {
        table.row([name.clone(), plain(value)]);
    }
    (!view.outputs.is_empty()).then_some(table)
}

/// Returns the steps of the job, without reasons that repeat the one of the job.
fn history(view: &JobView) -> Table {
    let mut table = Table::new(&["AT", "WHAT", "FROM", "TO", "REASON"]);
    for one in &view.history {
        let reason = if one.reason == view.reason { String::new() } else { one.reason.clone() };
        table.row([time(one.at), one.what.clone(), one.from.clone(), one.to.clone(), reason]);
    }
    table
}

/// Returns the result of each policy that the runner evaluated.
fn policies(view: &JobView) -> Table {
    let mut table = Table::new(&["POLICY", "OF", "SAYS", "MESSAGE"]);
    for one in &view.policies {
        let denials = one.deny.iter().map(|message| ("deny", message));
        let failed = one.failed.iter().map(|why| ("cannot be evaluated", why));
        let messages: Vec<_> = denials.chain(failed).chain(one.warn.iter().map(|message| ("warn", message))).collect();
        let mut row = |says: &str, message: &str| {
            let of = one.origin.describe().trim_start_matches("of the ");
            table.row([one.name.clone(), of.to_owned(), says.to_owned(), message.to_owned()]);
        };
        if messages.is_empty() {
            row("nothing", "");
        }
        messages.into_iter().for_each(|(says, message)| row(says, message));
    }
    table
}

/// Returns the findings of a job if it is a preflight: only a preflight has findings as its only output.
fn findings(view: &JobView) -> Option<Vec<Finding>> {
    let value = view.outputs.get(FINDINGS).filter(|_| view.outputs.len() == 1)?;
    serde_json::from_value(value.clone()).ok()
}

/// Returns a value on one line: a text without its line breaks, any other value as JSON.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.replace('\n', " "),
        other => other.to_string(),
    }
}
