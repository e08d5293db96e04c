//! `freehold customer asked`: who requested each job, including each job that did not start, according to the signed
//! orders.

use clap::Args;
use freehold_protocol::JobId;
use serde::Serialize;

use super::super::answer::Answer;
use super::super::question::Question;
use super::answer::of_log;
use super::evidence::{Evidence, Records};
use super::history::{Run, runs};
use super::not_started::{self, NotStarted, not_started};
use crate::context::Context;
use crate::error::Result;
use crate::output::{Part, Table, clean, time};

/// For customers: list who requested each job.
#[derive(Debug, Args)]
#[command(after_help = Question::Asked.help("\
Examples:
  freehold customer asked globex --tenant acme
  freehold customer asked --copy globex-bucket --root-key 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="))]
pub(crate) struct Asked {
    #[command(flatten)]
    records: Records,
    /// Show only the attempts at this job.
    #[arg(long, value_name = "JOB")]
    job: Option<JobId>,
}

impl Asked {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        answer(&self.records.read(context).await?, self.job.as_ref())?.print(context.out)
    }
}

/// Returns who requested each job, or only the attempts at `job`.
pub(in crate::customer) fn answer(evidence: &Evidence, job: Option<&JobId>) -> Result<Answer> {
    let mut runs = runs(&evidence.copy, evidence.roots.as_ref());
    runs.retain(|run| job.is_none_or(|job| *job == run.job));
    let mut refused = not_started(&evidence.copy, evidence.roots.as_ref());
    refused.retain(|one| job.is_none_or(|job| *job == one.job));
    let doubts: Vec<String> = doubts(&runs).into_iter().chain(not_started::doubts(&refused)).collect();
    let started = runs.into_iter().map(|run| AskedFor::Started(Box::new(run)));
    let others = refused.into_iter().map(|one| AskedFor::NotStarted(Box::new(one)));
    let mut all: Vec<AskedFor> = started.chain(others).collect();
    all.sort_by_key(AskedFor::record);
    of_log(Question::Asked, evidence, (&all, &doubts), part(&all))
}

/// A job that was requested.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum AskedFor {
    Started(Box<Run>),
    NotStarted(Box<NotStarted>),
}

impl AskedFor {
    const fn record(&self) -> u64 {
        match self {
            Self::Started(run) => run.record,
            Self::NotStarted(one) => one.record,
        }
    }
}

/// Returns the reasons why attempts are not proven.
pub(super) fn doubts(runs: &[Run]) -> Vec<String> {
    let doubted = runs.iter().filter_map(|run| Some((run, run.doubt.as_ref()?)));
    doubted.map(|(run, why)| format!("record {}, job {}: {why}", run.record, run.job)).collect()
}

fn part(all: &[AskedFor]) -> Part {
    let mut table = Table::new(&["AT", "JOB", "WORK", "ROLE", "STARTED", "ASKED BY"]);
    for one in all {
        match one {
            AskedFor::Started(run) => {
                let by = run.asked_by.as_ref().map_or_else(|| "not in the order".to_owned(), ToString::to_string);
                let by = if run.now { format!("{by}, with --now") } else { by };
                let by = run.asked_why.as_ref().map_or_else(|| by.clone(), |why| format!("{by}, {}", clean(why)));
                let started = "yes".to_owned();
                table.row([time(run.at), run.job.to_string(), clean(&run.work_name()), run.role_name(), started, by]);
            }
            AskedFor::NotStarted(one) => {
                let [at, job, work, role] = one.columns();
                table.row([at, job, work, role, format!("no: {}", clean(&one.result)), one.asked_by()]);
            }
        }
    }
    if all.is_empty() { Part::Text("no job was requested".to_owned()) } else { Part::Table(table) }
}
