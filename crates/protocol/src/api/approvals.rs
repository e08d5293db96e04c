//! Requests of the API about approvals, and its view of a plan that waits for an approval.

use serde::{Deserialize, Serialize};

use crate::approval::{ProposedPlan, Side};
use crate::{Digest, Timestamp};

/// Whether plans of an install wait until somebody at the vendor approves them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalOption {
    /// No plan waits.
    #[default]
    ApproveAll,
    /// Each plan that changes something waits. If the config of its component has `auto_approve_on_policies_passing`, it waits only
    /// when a policy warns about it.
    Prompt,
}

impl ApprovalOption {
    /// Returns whether no plan waits for an approval.
    pub const fn approves_all(&self) -> bool {
        matches!(self, Self::ApproveAll)
    }

    /// Returns the word in configs and commands.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApproveAll => "approve-all",
            Self::Prompt => "prompt",
        }
    }
}

/// `POST /v1/jobs/{job}/approve`: approves the plan that a job waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApproveJobRequest {
    /// The plan's digest, as the job shows it. The request is refused if the job waits for the approval of another plan.
    pub plan: Digest,
}

/// `POST /v1/jobs/{job}/reject`: rejects the plan that a job waits for, and ends the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RejectJobRequest {
    /// The plan, as the job shows it.
    pub plan: Digest,
    /// The reason, in one line of 1 to 500 characters.
    #[cfg_attr(feature = "schema", schemars(schema_with = "reason_schema"))]
    pub reason: String,
}

#[cfg(feature = "schema")]
fn reason_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    super::REASON.schema()
}

/// `POST /v1/installs/{install}/approvals`: sets whether plans of the install wait for the vendor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetApprovalsRequest {
    pub approval_option: ApprovalOption,
}

/// A plan that waits for its approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanView {
    pub proposed: ProposedPlan,
    /// Who still has to approve the plan.
    pub waits_for: Vec<Side>,
    /// Who approved the plan at the vendor; absent while nobody has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by_vendor: Option<String>,
    /// Who approved the plan at the customer; absent while nobody has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by_customer: Option<String>,
    /// The time at which the plan began to wait.
    pub since: Timestamp,
}
