//! The kinds of notifications.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The kind of event that a notification is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NotificationKind {
    /// A plan waits for its approval.
    ApprovalAsked,
    /// A change waits for the customer's change window, freeze or hold to end.
    ChangeHeld,
    /// The gate of a component waits for required checks that have no result.
    ChecksAwaited,
    /// A workflow failed.
    WorkflowFailed,
    /// A workflow that a person or a webhook asked for succeeded.
    WorkflowSucceeded,
    /// A verified deploy failed, and the version that ran before it runs again.
    DeployRolledBack,
    /// A run of a runbook stopped at a step that failed.
    RunStopped,
    /// A run of a runbook succeeded.
    RunSucceeded,
    /// A drift check found a difference that was not there before.
    DriftFound,
    /// A component became unhealthy, or healthy again.
    HealthChanged,
    /// A role of the app trusts a principal outside of the customer's account.
    StrangerTrusted,
    /// A runner is silent, paused or cut off.
    RunnerAway,
    /// A runner that was away takes orders again.
    RunnerBack,
    /// Somebody tests whether notifications arrive.
    Test,
}

impl NotificationKind {
    /// All kinds, in the order in which people read them.
    pub const ALL: [Self; 14] = [
        Self::ApprovalAsked,
        Self::ChangeHeld,
        Self::ChecksAwaited,
        Self::WorkflowFailed,
        Self::WorkflowSucceeded,
        Self::DeployRolledBack,
        Self::RunStopped,
        Self::RunSucceeded,
        Self::DriftFound,
        Self::HealthChanged,
        Self::StrangerTrusted,
        Self::RunnerAway,
        Self::RunnerBack,
        Self::Test,
    ];

    /// Returns the word in messages and commands.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApprovalAsked => "approval-asked",
            Self::ChangeHeld => "change-held",
            Self::ChecksAwaited => "checks-awaited",
            Self::WorkflowFailed => "workflow-failed",
            Self::WorkflowSucceeded => "workflow-succeeded",
            Self::DeployRolledBack => "deploy-rolled-back",
            Self::RunStopped => "run-stopped",
            Self::RunSucceeded => "run-succeeded",
            Self::DriftFound => "drift-found",
            Self::HealthChanged => "health-changed",
            Self::StrangerTrusted => "stranger-trusted",
            Self::RunnerAway => "runner-away",
            Self::RunnerBack => "runner-back",
            Self::Test => "test",
        }
    }
}

impl fmt::Display for NotificationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text is not a kind of notification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not a kind of notification; expected one of {}", NotificationKind::ALL.map(NotificationKind::as_str).join(", "))]
pub struct UnknownKind {
    word: String,
}

impl FromStr for NotificationKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| UnknownKind { word: text.chars().take(80).collect() })
    }
}
