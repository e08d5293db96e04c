//! `freehold customer ran`: what exactly ran, by digest, with the job's log; and what did not start.

use std::collections::BTreeMap;

use clap::Args;
use freehold_protocol::order::{Order, Work};
use freehold_protocol::{ComponentName, Digest, JobId, canonical};
use serde::Serialize;

use super::super::answer::Answer;
use super::super::question::Question;
use super::answer::of_log_with_texts;
use super::asked;
use super::evidence::{Evidence, Records};
use super::history::{Run, runs};
use super::not_started::{self, NotStarted, not_started};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{Part, Table, clean, time};

/// For customers: list what ran, by digest.
#[derive(Debug, Args)]
#[command(after_help = Question::Ran.help("\
Examples:
  freehold customer ran globex --tenant acme
  freehold customer ran globex --tenant acme --job job_0123456789abcdef0123
  freehold customer ran --copy globex-bucket --root-key 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=

With `--job`, the output contains the steps of an action and the job's full log, which is compared with the log's digest
in the record."))]
pub(crate) struct Ran {
    #[command(flatten)]
    records: Records,
    /// Show only the attempts at this job, with their steps and logs.
    #[arg(long, value_name = "JOB")]
    job: Option<JobId>,
}

/// A job that ran, or did not start.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Row {
    Ran(Box<Shown>),
    NotStarted(Box<NotStarted>),
}

impl Row {
    const fn record(&self) -> u64 {
        match self {
            Self::Ran(shown) => shown.run.record,
            Self::NotStarted(one) => one.record,
        }
    }
}

/// One attempt, with the artifacts and steps of its signed order.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    run: Run,
    /// The artifacts that the job used, by component; the image that its programs ran in is `tool image`.
    artifacts: BTreeMap<String, Digest>,
    /// The digest of each step of an action, or of each command that checked health, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<Step>,
    /// The job's full log, if the user requested the log and it has the digest in its record.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_text: Option<String>,
}

#[derive(Debug, Serialize)]
struct Step {
    name: String,
    digest: Digest,
    /// The step as the signed order contains it.
    step: serde_json::Value,
}

impl Ran {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        answer(&self.records.read(context).await?, self.job.as_ref()).await?.print(context.out)
    }
}

/// Returns what ran, or only the attempts at `job` with their steps and logs.
pub(in crate::customer) async fn answer(evidence: &Evidence, job: Option<&JobId>) -> Result<Answer> {
    let mut runs = runs(&evidence.copy, evidence.roots.as_ref());
    let mut refused = not_started(&evidence.copy, evidence.roots.as_ref());
    if let Some(job) = job {
        runs.retain(|run| run.job == *job);
        refused.retain(|one| one.job == *job);
        if runs.is_empty() && refused.is_empty() {
            return Err(Error::not_found(format!("no record of a start or an end names job `{job}`"))
                .or("`freehold customer ran` without `--job` lists all jobs"));
        }
    }
    let mut doubts = asked::doubts(&runs);
    doubts.extend(not_started::doubts(&refused));
    let mut shown: Vec<Row> = refused.into_iter().map(|one| Row::NotStarted(Box::new(one))).collect();
    for run in runs {
        let log_text = match job {
            Some(_) => log_of(&run, evidence, &mut doubts).await?,
            None => None,
        };
        let artifacts = run.signed.as_ref().map(artifacts).unwrap_or_default();
        let steps = run.signed.as_ref().map(steps).transpose()?.unwrap_or_default();
        shown.push(Row::Ran(Box::new(Shown { run, artifacts, steps, log_text })));
    }
    shown.sort_by_key(Row::record);
    of_log_with_texts(Question::Ran, evidence, (&shown, &doubts), (part(&shown), texts(&shown)))
}

/// Returns the newest attempt at each component that may have changed it.
pub(in crate::customer) fn newest_of_components(evidence: &Evidence) -> Part {
    let runs = runs(&evidence.copy, evidence.roots.as_ref());
    let mut newest: BTreeMap<&ComponentName, (&Run, &Order)> = BTreeMap::new();
    for (run, order) in runs.iter().filter_map(|run| Some((run, run.signed.as_ref()?))) {
        // A check and a build change no component.
        let is_change = !matches!(order.work, Work::DetectDrift(_) | Work::Health(_) | Work::Build(_));
        if let Some(component) = order.work.component().filter(|_| is_change) {
            newest.insert(component, (run, order));
        }
    }
    if newest.is_empty() {
        return Part::Text("no component was deployed".to_owned());
    }
    let mut table = Table::new(&["COMPONENT", "AT", "JOB", "WORK", "RESULT", "ARTIFACT"]);
    for (component, (run, order)) in newest {
        let result = run.end.as_ref().map_or_else(|| "no record of an end".to_owned(), |end| clean(&end.result));
        let artifact = order.work.artifact().map(|artifact| artifact.digest.to_string()).unwrap_or_default();
        let (at, job) = (time(run.at), run.job.to_string());
        table.row([component.to_string(), at, job, clean(&run.work_name()), result, artifact]);
    }
    Part::Table(table)
}

/// Returns the attempt's log if it has the digest that the record of the end names.
async fn log_of(run: &Run, evidence: &Evidence, doubts: &mut Vec<String>) -> Result<Option<String>> {
    let Some(named) = run.end.as_ref().and_then(|end| end.log.as_ref()) else { return Ok(None) };
    match evidence.log(&run.job, run.fence).await? {
        Some(bytes) if Digest::of(&bytes) == *named => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Some(_) => {
            doubts.push(format!("the log of job {} {} was changed: its record names {named}", run.job, run.fence));
            Ok(None)
        }
        None => {
            let (job, fence) = (&run.job, run.fence);
            doubts.push(if evidence.has_logs() {
                format!("the log of job {job} {fence} is missing: the bucket stores logs for 90 days")
            } else {
                format!(
                    "the log of job {job} {fence} was not checked: the copy has no `logs/`; copy the whole bucket, not \
                     only `audit/`"
                )
            });
            Ok(None)
        }
    }
}

/// Returns the digests of all artifacts that an order names.
pub(super) fn artifacts(order: &Order) -> BTreeMap<String, Digest> {
    let mut all = BTreeMap::new();
    let work = order.work.made_by();
    if let (Some(component), Some(artifact)) = (work.component(), work.artifact()) {
        all.insert(component.to_string(), artifact.digest.clone());
    }
    if let Work::Action(action) = work {
        let directories = action.directories.iter();
        all.extend(directories.map(|one| (one.component.to_string(), one.artifact.digest.clone())));
    }
    if let Some(image) = &order.tool_image {
        all.insert("tool image".to_owned(), image.artifact.digest.clone());
    }
    all
}

fn steps(order: &Order) -> Result<Vec<Step>> {
    let steps: Result<Vec<Step>, serde_json::Error> = if let Work::Action(action) = order.work.made_by() {
        action.steps.iter().map(|step| Step::of(&step.name, step)).collect()
    } else if let Work::Health(work) = &order.work {
        let commands = work.probes.iter().filter(|probe| probe.command().is_some());
        commands.map(|probe| Step::of(&probe.name, probe)).collect()
    } else {
        Ok(Vec::new())
    };
    steps.map_err(|error| Error::internal(format!("cannot write JSON: {error}")))
}

impl Step {
    fn of<T: Serialize>(name: &str, step: &T) -> Result<Self, serde_json::Error> {
        let step = serde_json::to_value(step)?;
        Ok(Self { name: name.to_owned(), digest: canonical::digest(&step)?, step })
    }
}

fn part(all: &[Row]) -> Part {
    if all.is_empty() {
        return Part::Text("no job has started".to_owned());
    }
    let mut table = Table::new(&["AT", "JOB", "ATTEMPT", "WORK", "ROLE", "RESULT", "RAN"]);
    for row in all {
        let Shown { run, artifacts, steps, .. } = match row {
            Row::Ran(shown) => &**shown,
            Row::NotStarted(one) => {
                let [at, job, work, role] = one.columns();
                let result = format!("{}, did not start", clean(&one.result));
                table.row([at, job, one.fence.to_string(), work, role, result, "nothing".to_owned()]);
                continue;
            }
        };
        let result = run.end.as_ref().map_or_else(|| "no record of an end".to_owned(), |end| clean(&end.result));
        let artifacts = artifacts.iter().map(|(of, digest)| format!("{of} {}", digest.short()));
        let steps = steps.iter().map(|step| format!("step {} {}", clean(&step.name), step.digest.short()));
        let ran = artifacts.chain(steps).collect::<Vec<_>>().join(", ");
        let (at, job, attempt) = (time(run.at), run.job.to_string(), run.fence.to_string());
        table.row([at, job, attempt, clean(&run.work_name()), run.role_name(), result, ran]);
    }
    Part::Table(table)
}

/// Returns the logs of the attempts, and the reasons of those that did not start.
fn texts(all: &[Row]) -> Vec<String> {
    let texts = all.iter().filter_map(|row| match row {
        Row::Ran(shown) => {
            let text = shown.log_text.as_ref()?;
            Some(format!("log of {} {}:\n{}", shown.run.job, shown.run.fence, text.trim_end()))
        }
        Row::NotStarted(one) => {
            Some(format!("why {} {} did not start: {}", one.job, one.fence, clean(one.reason.as_ref()?)))
        }
    });
    texts.collect()
}
