//! Approvals of plans: each is for exactly one plan. The runner makes the plan, and its bytes stay in the customer's account. The
//! digest of its record ([`PlanRecord`]) names the plan.

mod asked_by;
mod record;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Digest, InstallId, JobId, TenantName, Timestamp};

pub use asked_by::{AskedBy, CallerArn, CallerArnError, Principal};
pub use record::PlanRecord;

/// The prefix of the records of plans in the install's bucket. The roles of modes may neither read nor write them. The
/// objects of components have other prefixes, because no component's name begins with `_`.
pub const PLANS: &str = "locked/_plans/";
/// The prefix of the customer's decisions about plans in the install's bucket. No role of the install may write them.
pub const APPROVALS: &str = "approvals/";
/// The stack parameter by which the customer chooses which plans wait for the customer's approval.
pub const APPROVE_CHANGES: &str = "ApproveChanges";
/// The feature that an order demands if it asks for an approval or names one.
pub const FEATURE: &str = "approvals";
/// The maximum number of changes that a summary lists, and the maximum length of an address in it, in characters.
const MOST_CHANGES: usize = 200;
const LONGEST_ADDRESS: usize = 200;

/// Which plans wait until a person at the vendor approves them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApprovalRule {
    /// Each plan that changes something.
    Prompt,
    /// Each plan that changes something, if a policy warns about it or denies it.
    PromptUnlessPoliciesPass,
}

/// Who has to approve a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Side {
    Vendor,
    Customer,
}

impl Side {
    /// Returns the word that messages use for this value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vendor => "vendor",
            Self::Customer => "customer",
        }
    }
}

/// Which plans wait for the customer's approval, according to the parameter [`APPROVE_CHANGES`] of the launched stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApproveChanges {
    None,
    /// Plans that delete or replace something, or execute something whose effects are not known.
    Destructive,
    All,
}

impl ApproveChanges {
    /// Reads the value of the parameter. A stack of an earlier version does not have it. With an unknown value, all plans wait.
    pub fn of(value: Option<&str>) -> Self {
        match value {
            None | Some("none") => Self::None,
            Some("destructive") => Self::Destructive,
            Some(_) => Self::All,
        }
    }
}

/// The change of one resource by a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Create,
    Update,
    Replace,
    Delete,
    /// Executes something whose effects are not known in advance.
    Run,
}

impl ChangeKind {
    /// Returns the word that messages use for this value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Replace => "replace",
            Self::Delete => "delete",
            Self::Run => "run",
        }
    }
}

/// One change of a plan, without any value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedChange {
    pub address: String,
    /// The type of the resource, such as `aws_vpc`; empty when the address contains it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    pub change: ChangeKind,
}

/// The changes of a plan: counts, and the changes by address. It has no values, so the vendor may see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanSummary {
    pub create: u32,
    pub update: u32,
    pub replace: u32,
    pub delete: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub run: u32,
    /// The first changes. The counts cover all changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<PlannedChange>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl PlanSummary {
    /// Counts the changes, and stores the first of them: changes that delete, replace or execute something come first.
    pub fn of(mut all: Vec<PlannedChange>) -> Self {
        all.sort_by_key(|one| matches!(one.change, ChangeKind::Create | ChangeKind::Update));
        let count = |wanted: ChangeKind| {
            u32::try_from(all.iter().filter(|one| one.change == wanted).count()).unwrap_or(u32::MAX)
        };
        let [create, update, replace, delete, run] =
            [ChangeKind::Create, ChangeKind::Update, ChangeKind::Replace, ChangeKind::Delete, ChangeKind::Run]
                .map(count);
        let changes = all.into_iter().take(MOST_CHANGES).map(PlannedChange::shortened).collect();
        Self { create, update, replace, delete, run, changes }
    }

    /// Returns the summary within the limits of [`Self::of`] for the number of changes and the length of addresses.
    #[must_use]
    pub fn bounded(self) -> Self {
        let changes = self.changes.into_iter().take(MOST_CHANGES).map(PlannedChange::shortened).collect();
        Self { changes, ..self }
    }

    /// Returns the number of changes.
    pub const fn count(&self) -> u32 {
        let counted = self.create.saturating_add(self.update).saturating_add(self.replace);
        counted.saturating_add(self.delete).saturating_add(self.run)
    }

    /// Returns whether the plan deletes or replaces something, or executes something whose effects are not known.
    pub const fn is_destructive(&self) -> bool {
        self.replace > 0 || self.delete > 0 || self.run > 0
    }
}

impl PlannedChange {
    fn shortened(self) -> Self {
        let short = |text: String| {
            // The vendor chooses the names, and a line break in a name could look like another line of the list.
            let text: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            match text.char_indices().nth(LONGEST_ADDRESS) {
                Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
                None => text,
            }
        };
        Self { address: short(self.address), kind: short(self.kind), ..self }
    }
}

impl fmt::Display for PlanSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { create, update, replace, delete, run, .. } = self;
        write!(f, "{create} to create, {update} to update, {replace} to replace, {delete} to delete")?;
        if *run > 0 { write!(f, ", {run} to run") } else { Ok(()) }
    }
}

/// A plan that waits for its approval, as the runner reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProposedPlan {
    /// The digest of the plan's record.
    pub plan: Digest,
    /// The time until which it may be approved and applied.
    pub until: Timestamp,
    /// Who has to approve it.
    pub asks: BTreeSet<Side>,
    pub summary: PlanSummary,
    /// The digest of the policies' results about the plan.
    pub policies: Digest,
    /// Why the runner does not apply the plan that was approved before; absent for a job's first plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

/// The approved plan that an order applies, and who approved it at the vendor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OrderApproval {
    pub plan: Digest,
    /// Who approved the plan at the vendor; absent when only the customer had to approve it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AskedBy>,
    /// The time at which the plan was approved.
    pub at: Timestamp,
    /// The time until which the plan may be applied.
    pub until: Timestamp,
    /// The digest of the policies' results about the plan.
    pub policies: Digest,
}

/// The customer's decision about a plan, as the customer's object in [`APPROVALS`] has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenDecision {
    pub tenant: TenantName,
    pub install: InstallId,
    pub plan: Digest,
    pub approved: bool,
    /// Who decided: the ARN of the identity that wrote the object, as the writing command found it.
    pub by: String,
    pub at: Timestamp,
    /// Why the plan was rejected.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The customer's decision about the plan of a job, as the runner announces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomerDecision {
    pub job: JobId,
    pub plan: Digest,
    pub approved: bool,
    pub by: String,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Returns the object of the record of a plan.
pub fn record_object(plan: &Digest) -> String {
    format!("{PLANS}{}.json", plan.hex())
}

/// Returns the object that names the order which applies a plan.
pub fn use_object(plan: &Digest) -> String {
    format!("{PLANS}{}.used", plan.hex())
}

/// Returns the object in which the customer approves or rejects a plan.
pub fn approval_object(plan: &Digest) -> String {
    format!("{APPROVALS}{}.json", plan.hex())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(address: &str, change: ChangeKind) -> PlannedChange {
        PlannedChange { address: address.into(), kind: "aws_vpc".into(), change }
    }

    #[test]
    fn a_summary_counts_every_change_and_lists_the_first_and_deletions_before_them() {
        let long = "a".repeat(300);
        let mut all = vec![change(&long, ChangeKind::Create)];
        all.extend((0..300).map(|n| change(&format!("c{n}"), ChangeKind::Update)));
        all.push(change("b\n0 to delete", ChangeKind::Delete));

        let summary = PlanSummary::of(all);

        assert_eq!(summary.to_string(), "1 to create, 300 to update, 0 to replace, 1 to delete");
        assert_eq!((summary.changes.len(), summary.count()), (MOST_CHANGES, 302));
        assert_eq!(summary.changes[0].address, "b?0 to delete", "what deletes comes first, on one line");
        assert_eq!(summary.changes[1].address.chars().count(), LONGEST_ADDRESS + 1);
        assert!(summary.is_destructive());
    }

    #[test]
    fn what_deletes_replaces_or_runs_is_destructive() {
        let of = |kind| PlanSummary::of(vec![change("a", kind)]).is_destructive();

        assert_eq!([ChangeKind::Create, ChangeKind::Update].map(of), [false; 2]);
        assert_eq!([ChangeKind::Replace, ChangeKind::Delete, ChangeKind::Run].map(of), [true; 3]);
    }

    #[test]
    fn a_word_that_is_not_known_asks_for_everything_and_an_older_stack_for_nothing() {
        assert_eq!(ApproveChanges::of(None), ApproveChanges::None);
        assert_eq!(ApproveChanges::of(Some("none")), ApproveChanges::None);
        assert_eq!(ApproveChanges::of(Some("destructive")), ApproveChanges::Destructive);
        assert_eq!([Some("all"), Some("")].map(ApproveChanges::of), [ApproveChanges::All; 2]);
    }
}
