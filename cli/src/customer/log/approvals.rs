//! `freehold customer approvals`: which plans wait for an approval, and who approved the plans that were applied.

use std::collections::BTreeSet;

use clap::Args;
use freehold_protocol::approval::{PlanSummary, Side};
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::audit::verify::RecordsCopy;
use freehold_protocol::order::AskedBy;
use freehold_protocol::{ComponentName, Digest, JobId, Timestamp};
use serde::Serialize;

use super::super::answer::Answer;
use super::super::question::Question;
use super::answer::of_log;
use super::asked;
use super::evidence::{Evidence, Records};
use super::history::{records, runs};
use crate::clock;
use crate::context::Context;
use crate::error::Result;
use crate::job::plan::changes;
use crate::output::{Part, plural, time};

/// For customers: show which plans wait for an approval, and who approved the plans that were applied.
#[derive(Debug, Args)]
#[command(after_help = Question::Approved.help("\
Example:
  freehold customer approvals globex --tenant acme

`freehold customer approve INSTALL --plan DIGEST` approves a plan that waits for you."))]
pub(crate) struct Approvals {
    #[command(flatten)]
    records: Records,
}

#[derive(Debug, Default, Serialize)]
struct Approved {
    /// The plans that wait, according to the records.
    waiting: Vec<OnePlan>,
    /// The plans that were applied with an approval.
    applied: Vec<OnePlan>,
    /// The number of attempts that ran without an approval.
    without_approval: usize,
}

/// A plan, as a record describes it.
#[derive(Debug, Clone, Serialize)]
pub(in crate::customer) struct OnePlan {
    record: u64,
    at: Timestamp,
    pub(in crate::customer) job: JobId,
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<ComponentName>,
    pub(in crate::customer) plan: Digest,
    /// The digest of the plan's bytes, which are in the bucket.
    bytes: Digest,
    until: Timestamp,
    asks: BTreeSet<Side>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vendor: Option<AskedBy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    customer: Option<String>,
    pub(in crate::customer) summary: PlanSummary,
}

impl Approvals {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        answer(&self.records.read(context).await?, clock::now()?)?.print(context.out)
    }
}

/// Returns the plans that wait at `now`, and those that were applied with an approval.
pub(in crate::customer) fn answer(evidence: &Evidence, now: Timestamp) -> Result<Answer> {
    let runs = runs(&evidence.copy, evidence.roots.as_ref());
    let mut approved = plans(&evidence.copy, now);
    let attempts: BTreeSet<&JobId> = approved.applied.iter().chain(&approved.waiting).map(|one| &one.job).collect();
    let without_approval = runs.iter().filter(|run| !attempts.contains(&run.job)).count();
    approved.without_approval = without_approval;
    let doubts = asked::doubts(&runs);
    of_log(Question::Approved, evidence, (&approved, &doubts), Part::Text(text(&approved)))
}

/// Returns the plans that wait for the customer's approval at `now`.
pub(in crate::customer) fn waiting(evidence: &Evidence, now: Timestamp) -> Vec<OnePlan> {
    let mut waiting = plans(&evidence.copy, now).waiting;
    waiting.retain(|one| one.asks.contains(&Side::Customer));
    waiting
}

/// Returns the plans that the records name.
fn plans(copy: &RecordsCopy, now: Timestamp) -> Approved {
    let mut all = Approved::default();
    for record in records(copy) {
        match record.event {
            AuditEvent::Approval {
                job, component, plan, bytes, until, stage, asks, vendor, customer, summary, ..
            } => {
                let (seq, at) = (record.seq, record.at);
                let one =
                    OnePlan { record: seq, at, job, component, plan, bytes, until, asks, vendor, customer, summary };
                all.waiting.retain(|other| other.job != one.job);
                if stage == "applied" { all.applied.push(one) } else { all.waiting.push(one) }
            }
            AuditEvent::Started { .. }
            | AuditEvent::Ended { .. }
            | AuditEvent::Joined { .. }
            | AuditEvent::PoliciesAsked { .. }
            | AuditEvent::Strangers { .. }
            | AuditEvent::Sent { .. }
            | AuditEvent::Refused { .. }
            | AuditEvent::ConnectionRefused { .. }
            | AuditEvent::Cancelled { .. }
            | AuditEvent::KeyReplaced { .. }
            | AuditEvent::IamChange { .. }
            | AuditEvent::IamUsed { .. }
            | AuditEvent::Newer(_) => {}
        }
    }
    all.waiting.retain(|one| one.until > now);
    all
}

fn text(approved: &Approved) -> String {
    let mut lines = Vec::new();
    for one in &approved.waiting {
        let whom: Vec<&str> = one.asks.iter().map(|side| side.as_str()).collect();
        lines.push(format!(
            "{} of {} waits for the {} since {}, at most until {}",
            one.plan,
            one.job,
            whom.join(" and the "),
            time(one.at),
            time(one.until)
        ));
        lines.extend(changes(&one.summary));
        lines.push(format!("  freehold customer approve INSTALL --plan {}", one.plan));
    }
    for one in &approved.applied {
        let by = [
            one.vendor.as_ref().map(|by| format!("{by} (vendor)")),
            one.customer.clone().map(|by| format!("{by} (customer)")),
        ];
        let by: Vec<String> = by.into_iter().flatten().collect();
        lines.push(format!(
            "{} of {} was applied at {}, approved by {}",
            one.plan,
            one.job,
            time(one.at),
            by.join(" and ")
        ));
    }
    if lines.is_empty() {
        lines.push("No plan waited for an approval.".to_owned());
    }
    lines.push(format!(
        "{} ran without an approval, under the contract that you accepted: the runner compared each order with it.",
        plural(approved.without_approval, "attempt")
    ));
    lines.join("\n")
}
