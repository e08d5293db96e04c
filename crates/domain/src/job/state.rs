//! The states of a job. [`super::Job::on`] implements their transitions.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::approval::ProposedPlan;
use freehold_protocol::order::{Artifact, AskedBy};
use freehold_protocol::report::{Block, Fence};
use freehold_protocol::time::rfc3339;
use freehold_protocol::{CheckName, Digest, KeyId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::required_checks::named;

/// The state of a job. Each variant has the values that exist in that state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum JobState {
    /// The job's order is on its way, or waits until the runner takes it.
    Queued {
        dispatch: u32,
    },
    /// An attempt has started and has not ended.
    Running {
        fence: Fence,
        runner: KeyId,
        started_at: Timestamp,
        last_seq: u64,
        last_contact: Timestamp,
    },
    /// The job's order has expired, no report of its end has come, and no attempt is running. The job resumes when a
    /// runner gives the order back, and ends when the report of its end comes.
    WaitingForRunner {
        dispatch: u32,
        /// The time since which no runner has the job: the time of its last report, or of its order.
        since: Timestamp,
        /// The attempt with the highest fence that has reported; absent when no attempt has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<LastAttempt>,
    },
    /// The customer lets no change start now. No order of this dispatch is in the queue, and no attempt works.
    WaitingForWindow {
        dispatch: u32,
        since: Timestamp,
        /// The time from which changes may start; absent while it is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// Why no change may start, as a sentence.
        reason: String,
    },
    /// The runner made a plan that people have to approve. No order is in the queue, and no attempt works.
    WaitingForApproval {
        /// The attempt that made the plan, and its runner.
        fence: Fence,
        runner: KeyId,
        since: Timestamp,
        plan: Box<ProposedPlan>,
        /// Who approved the plan at the vendor, and when.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vendor: Option<(AskedBy, Timestamp)>,
        /// Who approved the plan at the customer, as the runner announced, and when.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        customer: Option<(String, Timestamp)>,
    },
    /// The runner found the component healthy, and required checks have no result yet. No order is in the queue, and no attempt
    /// works.
    WaitingForChecks {
        /// The attempt that found the component healthy, and its runner.
        fence: Fence,
        runner: KeyId,
        since: Timestamp,
        /// The time until which a result counts.
        until: Timestamp,
        /// The checks that had no result when the results were last evaluated.
        missing: BTreeSet<CheckName>,
        /// The outputs that the runner reported.
        #[serde(default)]
        outputs: BTreeMap<String, Value>,
    },
    Succeeded {
        fence: Fence,
        ended_at: Timestamp,
        #[serde(default)]
        outputs: BTreeMap<String, Value>,
        /// A keyed digest of each sensitive output, whose value stays in the customer's account.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        sensitive: BTreeMap<String, Digest>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artifact: Option<Artifact>,
    },
    /// The attempt failed, or no attempt could start. `partial` is true when an attempt may have changed something
    /// before.
    Failed {
        fence: Fence,
        ended_at: Timestamp,
        reason: String,
        partial: bool,
    },
    Blocked {
        fence: Fence,
        ended_at: Timestamp,
        block: Block,
        reason: String,
    },
    Interrupted {
        fence: Fence,
        ended_at: Timestamp,
        reason: String,
    },
    /// No report of the job's end has come in time. All orders of the job have expired, so no attempt can still run.
    Lost {
        dispatch: u32,
        ended_at: Timestamp,
        /// The attempt with the highest fence that has reported; absent when no attempt has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<LastAttempt>,
    },
    Cancelled {
        dispatch: u32,
        ended_at: Timestamp,
        /// Whether the control plane ended the job itself, and no attempt had reported.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unclaimed: bool,
    },
}

/// The last attempt of a lost job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastAttempt {
    pub fence: Fence,
    pub runner: KeyId,
}

impl JobState {
    /// Returns the state's name, as messages, tables and audit records write it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Queued { .. } => "queued",
            Self::Running { .. } => "running",
            Self::WaitingForRunner { .. } => "waiting_for_runner",
            Self::WaitingForWindow { .. } => "waiting_for_window",
            Self::WaitingForApproval { .. } => "waiting_for_approval",
            Self::WaitingForChecks { .. } => "waiting_for_checks",
            Self::Succeeded { .. } => "succeeded",
            Self::Failed { .. } => "failed",
            Self::Blocked { .. } => "blocked",
            Self::Interrupted { .. } => "interrupted",
            Self::Lost { .. } => "lost",
            Self::Cancelled { .. } => "cancelled",
        }
    }

    /// Returns whether the job has ended.
    pub const fn is_terminal(&self) -> bool {
        match self {
            Self::Queued { .. }
            | Self::Running { .. }
            | Self::WaitingForRunner { .. }
            | Self::WaitingForWindow { .. }
            | Self::WaitingForApproval { .. }
            | Self::WaitingForChecks { .. } => false,
            Self::Succeeded { .. }
            | Self::Failed { .. }
            | Self::Blocked { .. }
            | Self::Interrupted { .. }
            | Self::Lost { .. }
            | Self::Cancelled { .. } => true,
        }
    }

    /// Returns the number of the job's last dispatch.
    pub const fn dispatch(&self) -> u32 {
        match self {
            Self::Queued { dispatch }
            | Self::WaitingForRunner { dispatch, .. }
            | Self::WaitingForWindow { dispatch, .. }
            | Self::Lost { dispatch, .. }
            | Self::Cancelled { dispatch, .. } => *dispatch,
            Self::Running { fence, .. }
            | Self::WaitingForApproval { fence, .. }
            | Self::WaitingForChecks { fence, .. }
            | Self::Succeeded { fence, .. }
            | Self::Failed { fence, .. }
            | Self::Blocked { fence, .. }
            | Self::Interrupted { fence, .. } => fence.dispatch,
        }
    }

    /// Returns the highest fence that was reported in the current dispatch, if an attempt has reported.
    pub const fn fence(&self) -> Option<Fence> {
        match self {
            Self::WaitingForRunner { attempt: Some(LastAttempt { fence, .. }), .. } => Some(*fence),
            Self::Queued { .. }
            | Self::WaitingForRunner { attempt: None, .. }
            | Self::WaitingForWindow { .. }
            | Self::Lost { .. }
            | Self::Cancelled { .. } => None,
            Self::Running { fence, .. }
            | Self::WaitingForApproval { fence, .. }
            | Self::WaitingForChecks { fence, .. }
            | Self::Succeeded { fence, .. }
            | Self::Failed { fence, .. }
            | Self::Blocked { fence, .. }
            | Self::Interrupted { fence, .. } => Some(*fence),
        }
    }

    /// Returns the time at which the report of the job's end came; `None` for a job that has not ended by a report.
    pub(super) const fn reported_at(&self) -> Option<Timestamp> {
        match self {
            Self::Queued { .. }
            | Self::Running { .. }
            | Self::WaitingForRunner { .. }
            | Self::WaitingForWindow { .. }
            | Self::WaitingForApproval { .. }
            | Self::WaitingForChecks { .. }
            | Self::Lost { .. }
            | Self::Cancelled { unclaimed: true, .. } => None,
            Self::Succeeded { ended_at, .. }
            | Self::Failed { ended_at, .. }
            | Self::Blocked { ended_at, .. }
            | Self::Interrupted { ended_at, .. }
            | Self::Cancelled { ended_at, unclaimed: false, .. } => Some(*ended_at),
        }
    }

    /// Returns why the job did not succeed, or waits for the customer's window, an approval or checks, as a sentence;
    /// `None` for every other job.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Queued { .. } | Self::Running { .. } | Self::WaitingForRunner { .. } | Self::Succeeded { .. } => None,
            Self::WaitingForWindow { reason, .. } => Some(reason.clone()),
            Self::WaitingForApproval { plan, .. } => {
                let instead = plan.instead.as_ref().map(|why| format!("; another plan was approved: {why}"));
                Some(format!("the plan needs an approval: {}{}", plan.summary, instead.unwrap_or_default()))
            }
            Self::WaitingForChecks { until, missing, .. } => {
                let until = rfc3339::text(*until).unwrap_or_default();
                Some(format!("the component is healthy, and waits for {} to pass until {until}", named(missing)))
            }
            Self::Failed { reason, partial: true, .. } => Some(format!("{reason} (partial)")),
            Self::Failed { reason, partial: false, .. }
            | Self::Blocked { reason, .. }
            | Self::Interrupted { reason, .. } => Some(reason.clone()),
            Self::Lost { .. } => Some("no report of the job's end came before its order expired".into()),
            Self::Cancelled { .. } => Some("cancelled on request".into()),
        }
    }
}
