//! Drift: the resources that checks found to differ from a deploy, since when, and who acknowledged them. It has names
//! and no values.

mod rules;

use freehold_protocol::order::AskedBy;
use freehold_protocol::order::drift::{DriftFound, DriftedResource};
use freehold_protocol::{Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

pub use rules::{DriftRule, RuleError};

/// The maximum number of events that are stored for a part: the newest ones.
pub const MAX_EVENTS: usize = 20;

/// The drift of a part, as checks found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// The workflow of the last check, and its serial. The result of an older check is ignored.
    pub workflow: WorkflowId,
    pub serial: u64,
    /// The time at which the last check ended.
    pub checked_at: Timestamp,
    /// The reason why the last check could not determine whether the part differs; absent when it could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// The resources that differed at the last conclusive check, sorted by address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<Found>,
    /// The number of further resources that differed and are not in `found`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// The changes of the drift, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<DriftEvent>,
}

/// One resource that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    #[serde(flatten)]
    pub resource: DriftedResource,
    /// The end of the first check that found a difference after the resource was last in sync.
    pub since: Timestamp,
    /// The acknowledgement by a person; absent without one. It ends when the resource is in sync again, and when the
    /// difference changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Acknowledged>,
}

/// The acknowledgement of a difference by a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledged {
    pub by: AskedBy,
    pub reason: String,
    pub at: Timestamp,
}

/// One change of the drift of a part, with its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftEvent {
    pub at: Timestamp,
    #[serde(flatten)]
    pub what: DriftChange,
    /// The number of resources.
    pub resources: u64,
}

/// A change of the drift of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum DriftChange {
    /// A check found differences in resources that had been in sync.
    Found { workflow: WorkflowId },
    /// A check found resources in sync again.
    Cleared { workflow: WorkflowId },
    /// A deploy made the part again.
    Deployed { workflow: WorkflowId },
    /// A person acknowledged a difference.
    Acknowledged { by: AskedBy, reason: String },
}

/// The check whose result is recorded.
#[derive(Debug, Clone, Copy)]
pub struct Check<'a> {
    pub workflow: &'a WorkflowId,
    pub serial: u64,
    pub at: Timestamp,
}

/// The drift of a part as people see it: whether the part differs from what its last deploy made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriftState {
    /// No check has ended since the last deploy.
    Unchecked,
    /// Nothing differs, except differences that a rule ignores.
    InSync,
    /// All resources that differ are acknowledged.
    Acknowledged,
    Drifted,
    /// The last check could not determine whether the part differs.
    Unknown,
}

impl DriftState {
    /// Returns the state's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unchecked => "unchecked",
            Self::InSync => "in_sync",
            Self::Acknowledged => "acknowledged",
            Self::Drifted => "drifted",
            Self::Unknown => "unknown",
        }
    }
}

impl Drift {
    /// Returns the drift after a check with this result; `None` when a later check or deploy has already ended. An
    /// inconclusive check keeps the resources that were found before.
    pub fn checked(before: Option<&Self>, check: Check<'_>, result: Result<DriftFound, String>) -> Option<Self> {
        if before.is_some_and(|before| before.serial > check.serial) {
            return None;
        }
        let known = before.map(|before| before.found.as_slice()).unwrap_or_default();
        let earlier = before.map(|before| before.events.clone()).unwrap_or_default();
        let mut next = Self {
            workflow: check.workflow.clone(),
            serial: check.serial,
            checked_at: check.at,
            unknown: None,
            found: known.to_vec(),
            more: before.map_or(0, |before| before.more),
            events: earlier,
        };
        let found = match result {
            Ok(found) => found,
            Err(reason) => {
                next.unknown = Some(reason);
                return Some(next);
            }
        };
        next.found = found.resources.into_iter().map(|resource| Found::of(known, resource, check.at)).collect();
        next.more = found.more;
        let is_there = |all: &[Found], one: &Found| all.iter().any(|it| it.resource.address == one.resource.address);
        let (new, gone) = (
            next.found.iter().filter(|one| !is_there(known, one)).count() as u64,
            known.iter().filter(|one| !is_there(&next.found, one)).count() as u64,
        );
        next.note(check.at, DriftChange::Cleared { workflow: check.workflow.clone() }, gone);
        next.note(check.at, DriftChange::Found { workflow: check.workflow.clone() }, new);
        Some(next)
    }

    /// Returns the drift after a deploy of the part: nothing differs until a check finds something. `None` if the part
    /// was never checked.
    pub fn deployed(before: Option<&Self>, workflow: &WorkflowId, serial: u64, at: Timestamp) -> Option<Self> {
        let mut next = before?.clone();
        let repaired = next.found.len() as u64 + next.more;
        // The result of a check that was ordered before the deploy does not apply any more.
        next.serial = next.serial.max(serial);
        (next.unknown, next.found, next.more) = (None, Vec::new(), 0);
        next.note(at, DriftChange::Deployed { workflow: workflow.clone() }, repaired);
        Some(next)
    }

    /// Returns the drift after a person acknowledged the difference of the resource `address`; `None` if there is none. A
    /// repeated request changes nothing.
    pub fn acknowledge(&self, address: &str, acknowledged: &Acknowledged) -> Option<Self> {
        let mut next = self.clone();
        let one = next.found.iter_mut().find(|one| one.resource.address == address)?;
        let is_same = |known: &Acknowledged| (&known.by, &known.reason) == (&acknowledged.by, &acknowledged.reason);
        if one.acknowledged.as_ref().is_some_and(is_same) {
            return Some(next);
        }
        one.acknowledged = Some(acknowledged.clone());
        let change = DriftChange::Acknowledged { by: acknowledged.by.clone(), reason: acknowledged.reason.clone() };
        next.note(acknowledged.at, change, 1);
        Some(next)
    }

    /// Returns the state of a part that was deployed at `deployed_at`. `is_ignored` returns whether the rules of its
    /// install ignore a resource.
    pub fn state(&self, deployed_at: Timestamp, is_ignored: impl Fn(&DriftedResource) -> bool) -> DriftState {
        if self.checked_at < deployed_at {
            return DriftState::Unchecked;
        }
        if self.unknown.is_some() {
            return DriftState::Unknown;
        }
        let mut seen = self.found.iter().filter(|one| !is_ignored(&one.resource)).peekable();
        if seen.peek().is_none() && self.more == 0 {
            return DriftState::InSync;
        }
        let is_known = self.more == 0 && seen.all(|one| one.acknowledged.is_some());
        if is_known { DriftState::Acknowledged } else { DriftState::Drifted }
    }

    fn note(&mut self, at: Timestamp, what: DriftChange, resources: u64) {
        if resources > 0 {
            self.events.insert(0, DriftEvent { at, what, resources });
            self.events.truncate(MAX_EVENTS);
        }
    }
}

impl Found {
    /// Returns a resource that a check found, with the start and the acknowledgement of its difference from `known`.
    fn of(known: &[Self], resource: DriftedResource, at: Timestamp) -> Self {
        let before = known.iter().find(|one| one.resource.address == resource.address);
        // Attributes that are only counted may differ from those counted before.
        let is_same = |one: &&Self| one.resource == resource && resource.more_attributes == 0;
        let acknowledged = before.filter(is_same).and_then(|one| one.acknowledged.clone());
        Self { since: before.map_or(at, |one| one.since), acknowledged, resource }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests;
