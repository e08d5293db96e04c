//! `freehold customer asked`: who asked for each job, as the signed orders say.

use clap::Args;
use freehold_protocol::JobId;

use super::super::question::Question;
use super::answer;
use super::evidence::Records;
use super::history::{Run, runs};
use crate::context::Context;
use crate::error::Result;
use crate::output::{Output, Table, clean, time};

/// List who asked for each job, as the customer.
#[derive(Debug, Args)]
#[command(after_help = Question::Asked.help("\
Examples:
  freehold customer asked globex --tenant acme
  freehold customer asked --copy globex-bucket --root-key 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="))]
pub(crate) struct Asked {
    #[command(flatten)]
    records: Records,
    /// Only the attempts at this job.
    #[arg(long, value_name = "JOB")]
    job: Option<JobId>,
}

impl Asked {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let evidence = self.records.read(context).await?;
        let mut runs = runs(&evidence.copy, evidence.root.as_ref());
        runs.retain(|run| self.job.as_ref().is_none_or(|job| *job == run.job));
        let doubts = doubts(&runs);
        answer::give(Question::Asked, &evidence, (&runs, &doubts), context, |out| render(&runs, out))
    }
}

/// Returns what is not proven about the attempts.
pub(super) fn doubts(runs: &[Run]) -> Vec<String> {
    let doubted = runs.iter().filter_map(|run| Some((run, run.doubt.as_ref()?)));
    doubted.map(|(run, why)| format!("record {}, job {}: {why}", run.record, run.job)).collect()
}

fn render(runs: &[Run], out: Output) -> String {
    let mut table = Table::new(&["AT", "JOB", "WORK", "ROLE", "ASKED BY"]);
    for run in runs {
        let by = run.asked_by.as_ref().map_or_else(|| "the order does not say".to_owned(), ToString::to_string);
        table.row([time(run.at), run.job.to_string(), clean(&run.work), run.role_name(), by]);
    }
    if runs.is_empty() { "no job has started".to_owned() } else { out.table(&table) }
}
