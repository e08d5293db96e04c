//! Bounds the texts and outputs of a report, so that every outcome fits into the rows of the table. A DynamoDB item has
//! at most 400 KB. A runner limits its reports too, so only a modified runner sends a report over these limits.

use freehold_protocol::approval::ProposedPlan;
use freehold_protocol::limits::{MAX_LOG_BYTES_PER_REPORT, MAX_OUTPUTS_BYTES, MAX_ROLES_TRUSTING_STRANGERS};
use freehold_protocol::policy::PolicyResult;
use freehold_protocol::report::{AttemptEvent, AttemptReport, Outcome};
use freehold_protocol::{Envelope, canonical};

use crate::text_limit::{CUT, cut};

/// The maximum size of a stored reason or detail, in bytes.
pub(super) const MAX_REASON_BYTES: usize = 8 * 1024;
/// The maximum size of a report's envelope that is stored as the proof of a deploy or a build, in bytes.
const MAX_PROOF_BYTES: usize = 256 * 1024;
/// The maximum number of policies of a job, and the maximum sizes in bytes of a name, of a message, and of all messages.
const MAX_POLICIES: usize = 100;
const MAX_NAME_BYTES: usize = 200;
const MAX_MESSAGE_BYTES: usize = 1024;
const MAX_POLICIES_BYTES: usize = 32 * 1024;

/// Returns the report with its texts cut to their limits. The success of a job whose results are too large to be stored
/// becomes a failure with that reason.
pub(super) fn bounded(report: AttemptReport, envelope: &Envelope) -> AttemptReport {
    let event = match report.event {
        AttemptEvent::Progress { log } => AttemptEvent::Progress { log: cut(&log, MAX_LOG_BYTES_PER_REPORT) },
        AttemptEvent::Finished { outcome, log, policies, roles_trusting_strangers } => AttemptEvent::Finished {
            outcome: bounded_outcome(outcome, envelope.payload.len()),
            log: cut(&log, MAX_LOG_BYTES_PER_REPORT),
            policies: bounded_policies(policies),
            roles_trusting_strangers: roles_trusting_strangers
                .map(|roles| roles.into_iter().take(MAX_ROLES_TRUSTING_STRANGERS).collect()),
        },
        other @ (AttemptEvent::Started | AttemptEvent::GrantRequest { .. } | AttemptEvent::AttestRequest { .. }) => {
            other
        }
    };
    AttemptReport { event, ..report }
}

fn bounded_outcome(outcome: Outcome, message_bytes: usize) -> Outcome {
    match outcome {
        Outcome::Succeeded { outputs, sensitive, artifact } => {
            let names = sensitive.iter().map(|(name, digest)| name.len() + digest.as_str().len()).sum::<usize>();
            let bytes = serde_json::to_string(&outputs).map_or(usize::MAX, |text| text.len() + names);
            if bytes > MAX_OUTPUTS_BYTES {
                let reason =
                    format!("the job reported {bytes} bytes of outputs, more than the limit of {MAX_OUTPUTS_BYTES}");
                return Outcome::Failed { reason, partial: true };
            }
            if message_bytes > MAX_PROOF_BYTES {
                let reason = format!(
                    "the report of the job's success has {message_bytes} bytes, more than the limit of \
                     {MAX_PROOF_BYTES}"
                );
                return Outcome::Failed { reason, partial: true };
            }
            // Integers that JSON readers would round become texts, because orders and digests cannot contain them.
            let exact = |(name, value)| (name, canonical::with_long_integers_as_text(value));
            Outcome::Succeeded { outputs: outputs.into_iter().map(exact).collect(), sensitive, artifact }
        }
        Outcome::Failed { reason, partial } => Outcome::Failed { reason: cut(&reason, MAX_REASON_BYTES), partial },
        Outcome::Blocked { block, reason } => Outcome::Blocked { block, reason: cut(&reason, MAX_REASON_BYTES) },
        Outcome::Interrupted { reason } => Outcome::Interrupted { reason: cut(&reason, MAX_REASON_BYTES) },
        Outcome::Cancelled => Outcome::Cancelled,
        Outcome::NeedsApproval { plan } => Outcome::NeedsApproval { plan: Box::new(bounded_plan(*plan)) },
    }
}

fn bounded_plan(plan: ProposedPlan) -> ProposedPlan {
    let instead = plan.instead.map(|why| cut(&why, MAX_REASON_BYTES));
    ProposedPlan { summary: plan.summary.bounded(), instead, ..plan }
}

/// Returns the results of policies, cut to the limits. The first message of each policy is kept, so that the number of
/// policies that stopped the job stays correct.
fn bounded_policies(policies: Vec<PolicyResult>) -> Vec<PolicyResult> {
    let mut left = MAX_POLICIES_BYTES;
    let mut shortened = |texts: Vec<String>, least: usize| {
        let mut kept = Vec::new();
        for text in texts {
            let text = cut(&text, MAX_MESSAGE_BYTES);
            if kept.len() >= least && left < text.len() {
                kept.push(CUT.trim().to_owned());
                break;
            }
            left = left.saturating_sub(text.len());
            kept.push(text);
        }
        kept
    };
    let bounded = policies.into_iter().take(MAX_POLICIES).map(|one| PolicyResult {
        name: cut(&one.name, MAX_NAME_BYTES),
        deny: shortened(one.deny, 1),
        warn: shortened(one.warn, 0),
        failed: one.failed.map(|why| cut(&why, MAX_MESSAGE_BYTES)),
        ..one
    });
    bounded.collect()
}
