//! `freehold customer outside`: whether CloudTrail saw the install's roles do anything that no record names.

use std::path::{Path, PathBuf};

use aws_sdk_cloudtrail::Client;
use aws_smithy_types::DateTime;
use clap::Args;
use freehold_protocol::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::super::question::Question;
use super::answer::of_log;
use super::asked;
use super::evidence::Records;
use super::history::{records, runs};
use super::not_started::{self, not_started};
use super::reconcile::{Call, Log, Reconciled, reconcile};
use crate::clock;
use crate::context::Context;
use crate::error::{Error, Kind, Result, ResultExt};
use crate::output::{Part, plural, time};

/// The time for which CloudTrail stores events, in hours.
const MOST_HOURS: u64 = 90 * 24;
/// The advice about a file without events.
const WAY_OUT: &str = "pass the file that `aws cloudtrail lookup-events > FILE` wrote, or a log file of a trail";

/// For customers: compare CloudTrail's events of the install's roles with the records.
#[derive(Debug, Args)]
#[command(after_help = Question::Outside.help("\
Examples:
  freehold customer outside globex --tenant acme
  freehold customer outside globex --tenant acme --hours 720
  aws cloudtrail lookup-events --output json > events.json
  freehold customer outside --copy globex-bucket --events events.json

CloudTrail allows two requests per second, each for 50 events, so in a busy account the command can run for minutes.
Exit code 1 when an event has no record. `freehold-runner doctor` assumes each role once without a job: pass
`--own-doctor` if you ran it yourself."))]
pub(crate) struct Outside {
    #[command(flatten)]
    records: Records,
    /// The number of hours to look back, at most 2160.
    #[arg(long, value_name = "COUNT", default_value_t = 24)]
    hours: u64,
    /// Accept the sessions of `freehold-runner doctor`, because you ran it yourself.
    #[arg(long)]
    own_doctor: bool,
    /// A file with events of CloudTrail. The command compares these events instead of asking CloudTrail.
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Answer {
    from: Timestamp,
    /// The number of events that were read.
    events: usize,
    #[serde(flatten)]
    reconciled: Reconciled,
}

impl Outside {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        if self.hours == 0 || self.hours > MOST_HOURS {
            return Err(Error::invalid(format!("`--hours {}` is out of range", self.hours))
                .or(format!("pass a number from 1 to {MOST_HOURS}: CloudTrail stores events for 90 days")));
        }
        let evidence = self.records.read(context).await?;
        let now = clock::now()?.as_millis();
        let (from, events) = match &self.events {
            Some(path) => (Timestamp::default(), read(path)?),
            None => {
                let from = Timestamp::from_millis(now.saturating_sub(self.hours * 3_600_000));
                (from, look_up(context, from).await?)
            }
        };
        let calls: Vec<Call> = events.iter().filter_map(Call::of).collect();
        let (Some(tenant), Some(install)) = (&evidence.chain.tenant, &evidence.chain.install) else {
            return Err(Error::failed(format!("no record in {} can be read", evidence.whose))
                .or("`freehold customer audit verify` names what is wrong"));
        };
        let runs = runs(&evidence.copy, evidence.roots.as_ref());
        let refused = not_started(&evidence.copy, evidence.roots.as_ref());
        let records = records(&evidence.copy);
        let queues = self.records.queue_account(context).await?;
        let (own_doctor, queues) = (self.own_doctor, queues.as_deref());
        let log = Log { runs: &runs, not_started: &refused, records: &records, own_doctor, queues };
        let reconciled = reconcile((tenant, install), &calls, log, from);
        let mut doubts = asked::doubts(&runs);
        doubts.extend(not_started::doubts(&refused));
        doubts.extend(reconciled.unexplained.iter().map(|one| {
            let call = &one.call;
            format!("{} {}:{} by {} ({}): {}", time(call.at), call.service, call.name, call.caller, call.id, one.why)
        }));
        let answer = Answer { from, events: events.len(), reconciled };
        of_log(Question::Outside, &evidence, (&answer, &doubts), Part::Text(render(&answer)))?.print(context.out)
    }
}

/// Returns all events of the account and region since `from`.
async fn look_up(context: &Context, from: Timestamp) -> Result<Vec<Value>> {
    let client = Client::new(&context.config().await?);
    let since = DateTime::from_millis(i64::try_from(from.as_millis()).unwrap_or(i64::MAX));
    let mut pages = client.lookup_events().start_time(since).into_paginator().send();
    let mut events = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page.doing("look up the events of CloudTrail")?;
        events.extend(page.events().iter().filter_map(|event| serde_json::from_str(event.cloud_trail_event()?).ok()));
    }
    Ok(events)
}

/// Reads events from the output of `aws cloudtrail lookup-events`, or from a log file of a trail.
fn read(path: &Path) -> Result<Vec<Value>> {
    let shown = path.display();
    let wrong = |why: String| Error::quoting(Kind::Invalid, format!("`{shown}` contains no events: {why}")).or(WAY_OUT);
    let whole: Value =
        serde_json::from_slice(&crate::file::read(path, WAY_OUT)?).map_err(|error| wrong(error.to_string()))?;
    if let Some(records) = whole.get("Records").and_then(Value::as_array) {
        return Ok(records.clone());
    }
    let events = whole.get("Events").and_then(Value::as_array);
    let events = events.ok_or_else(|| wrong("there is neither `Events` nor `Records`".to_owned()))?;
    let text = |event: &Value| event.get("CloudTrailEvent").and_then(Value::as_str).map(str::to_owned);
    events
        .iter()
        .map(|event| -> Result<Value> {
            let text = text(event).ok_or_else(|| wrong("an event has no `CloudTrailEvent`".to_owned()))?;
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
        })
        .collect()
}

fn render(answer: &Answer) -> String {
    let Reconciled { explained, of_the_app, unseen, unexplained, not_started, of_own_doctor } = &answer.reconciled;
    let mut parts = vec![format!(
        "{} of CloudTrail since {}: records explain {explained} of the install's roles; {of_the_app} are of roles that \
         the app made, and no runner records the work of these roles",
        plural(answer.events, "event"),
        time(answer.from)
    )];
    if !not_started.is_empty() {
        parts.push(format!(
            "The runner requested sessions of jobs that did not start: the records {} state how these jobs ended, and \
             `freehold customer ran` lists them",
            numbers(not_started)
        ));
    }
    if *of_own_doctor > 0 {
        parts.push(format!("{} as your own `freehold-runner doctor` makes them", plural(*of_own_doctor, "session")));
    }
    if !unseen.is_empty() {
        parts.push(format!(
            "CloudTrail shows no session for the jobs whose start is in the records {}: CloudTrail may show the sessions later, \
             or these events may not contain them",
            numbers(unseen)
        ));
    }
    if unexplained.is_empty() {
        parts.push("nothing happened outside the log".to_owned());
    }
    parts.join("\n\n")
}

fn numbers(records: &[u64]) -> String {
    records.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
