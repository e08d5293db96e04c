//! `freehold customer sent`: what left the customer's account, each report by its digest and with its full text.

use std::collections::BTreeSet;

use clap::Args;
use freehold_protocol::audit::verify::RecordsCopy;
use freehold_protocol::audit::{AuditEvent, message_name};
use freehold_protocol::envelope::decode_base64;
use freehold_protocol::report::{AttemptEvent, Report, ReportBody};
use freehold_protocol::{Digest, Envelope, Timestamp};
use serde::Serialize;
use serde_json::Value;

use super::super::answer::Answer;
use super::super::question::Question;
use super::answer::of_log_with_texts;
use super::evidence::{Evidence, Records};
use super::history::records;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{Part, Table, bytes, time};

/// The time in seconds that the runner may take to upload the text of a report to the bucket.
const TEXT_SECS: u64 = 600;

/// For customers: list the reports that left your account, with their full texts.
#[derive(Debug, Args)]
#[command(after_help = Question::Sent.help("\
Examples:
  freehold customer sent globex --tenant acme
  freehold customer sent globex --tenant acme \\
      --report sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f
  freehold customer sent --copy globex-bucket --json

The digest of a report is the digest of the signed message, which is the object `audit/reports/DIGEST` of the bucket.
With `--report`, the text in that message is printed as it was signed, on one line."))]
pub(crate) struct Sent {
    #[command(flatten)]
    records: Records,
    /// Print the full text of this report.
    #[arg(long, value_name = "DIGEST")]
    report: Option<Digest>,
}

/// A report that left the account.
#[derive(Debug, Serialize)]
struct SentReport {
    /// The number of the record that names the report.
    record: u64,
    at: Timestamp,
    report: Digest,
    /// The kind of the report in one word; absent when its text is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    says: Option<&'static str>,
    bytes: usize,
    /// The whole report; absent unless the user requested this report.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Report>,
}

impl Sent {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        answer(&self.records.read(context).await?, self.report.as_ref())?.print(context.out)
    }
}

/// Returns the reports that left the account, or only `report` with its full text.
pub(in crate::customer) fn answer(evidence: &Evidence, report: Option<&Digest>) -> Result<Answer> {
    let (mut sent, doubts) = sent_reports(&evidence.copy, evidence.chain.to);
    if let Some(wanted) = report {
        sent.retain(|one| one.report == *wanted);
        let one = sent.first_mut().ok_or_else(|| {
            Error::not_found(format!("no record names report {wanted}"))
                .or("`freehold customer sent` without `--report` lists all reports")
        })?;
        one.text = text(&evidence.copy, wanted);
    }
    let texts = report.into_iter().filter_map(|report| signed_text(&evidence.copy, report)).collect();
    of_log_with_texts(Question::Sent, evidence, (&sent, &doubts), (part(&sent), texts))
}

fn text(copy: &RecordsCopy, digest: &Digest) -> Option<Report> {
    Envelope::parse(copy.reports.get(&message_name(digest))?).ok()?.peek().ok()
}

/// Returns the text of a report as it was signed.
fn signed_text(copy: &RecordsCopy, digest: &Digest) -> Option<String> {
    let message: Value = serde_json::from_slice(copy.reports.get(&message_name(digest))?).ok()?;
    String::from_utf8(decode_base64(message.get("payload")?.as_str()?).ok()?).ok()
}

/// Returns the reports that the records name, and what is missing. `to` is the time of the last record.
fn sent_reports(copy: &RecordsCopy, to: Option<Timestamp>) -> (Vec<SentReport>, Vec<String>) {
    let (mut sent, mut doubts, mut named) = (Vec::new(), Vec::new(), BTreeSet::new());
    for record in records(copy) {
        let AuditEvent::Sent { reports } = record.event else { continue };
        for report in reports {
            let text = text(copy, &report);
            let is_due = to.is_some_and(|to| to.since(record.at) > TEXT_SECS * 1000);
            if text.is_none() && is_due {
                doubts.push(format!("the text of report {report}, which record {} names, is missing", record.seq));
            }
            let size = copy.reports.get(&message_name(&report)).map_or(0, Vec::len);
            named.insert(message_name(&report));
            let says = text.as_ref().map(|text| describe_body(&text.body));
            sent.push(SentReport { record: record.seq, at: record.at, report, says, bytes: size, text: None });
        }
    }
    for (name, bytes) in copy.reports.iter().filter(|(name, _)| !named.contains(*name)) {
        let at =
            Envelope::parse(bytes).ok().and_then(|envelope| envelope.peek::<Report>().ok()).map(|report| report.at);
        // The record of a report is written before the report is sent; a copy may have been made in between.
        if at.zip(to).is_none_or(|(at, to)| to.since(at) > TEXT_SECS * 1000) {
            doubts.push(format!("report `{name}` was sent, and no record names it"));
        }
    }
    (sent, doubts)
}

/// Returns what a report is about, in a few words.
const fn describe_body(body: &ReportBody) -> &'static str {
    match body {
        ReportBody::Hello(_) => "hello",
        ReportBody::Heartbeat => "heartbeat",
        ReportBody::Refused(_) => "refusal",
        ReportBody::Away(_) => "takes no orders",
        ReportBody::Attempt(attempt) => match &attempt.event {
            AttemptEvent::Started => "start",
            AttemptEvent::Progress { .. } => "log lines",
            AttemptEvent::GrantRequest { .. } => "request for an artifact",
            AttemptEvent::AttestRequest { .. } => "request for a statement",
            AttemptEvent::Finished { .. } => "outcome",
        },
    }
}

fn part(sent: &[SentReport]) -> Part {
    let mut table = Table::new(&["AT", "RECORD", "REPORT", "SAYS", "SIZE"]);
    for one in sent {
        let says = one.says.unwrap_or("its text is not in the bucket").to_owned();
        let size = bytes(u64::try_from(one.bytes).unwrap_or(u64::MAX));
        table.row([time(one.at), one.record.to_string(), one.report.to_string(), says, size]);
    }
    if sent.is_empty() { Part::Text("no report was sent".to_owned()) } else { Part::Table(table) }
}
