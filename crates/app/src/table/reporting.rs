//! The rows of the reports queues and of their senders: shards, known senders, and budgets.

use freehold_domain::reports::budget::ReportBudget;
use freehold_domain::reports::shards::{ReportShard, ReportShards};
use freehold_protocol::InstallId;
use serde::{Deserialize, Serialize};

use super::install::install_pk;
use super::record::{Record, WriterId, key};
use crate::ports::Key;

impl Record for ReportShards {
    fn key(&self) -> Key {
        report_shards_key()
    }
}

impl Record for ReportShard {
    fn key(&self) -> Key {
        report_shard_key(self.number)
    }
}

/// Returns the key of the row that lists the existing shards.
pub fn report_shards_key() -> Key {
    key("reports", "shards")
}

/// Returns the key of the row of one shard.
pub fn report_shard_key(number: u32) -> Key {
    key("reports", format!("shard#{number:06}"))
}

/// A role that has sent a hello which proves the role of its install's runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownSender {
    /// The unique id of the role.
    pub sender: String,
    pub install: InstallId,
}

/// Returns the key of the row of a known sender.
pub fn known_sender_key(sender: &str) -> Key {
    key(format!("sender#{sender}"), "install")
}

impl Record for KnownSender {
    fn key(&self) -> Key {
        known_sender_key(&self.sender)
    }
}

/// The entry of a known sender in the partition of its install. The removal of an install finds the install's senders
/// by these entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallSender(pub KnownSender);

/// The beginning of the sort keys of an install's senders.
pub const INSTALL_SENDERS_PREFIX: &str = "sender#";

impl Record for InstallSender {
    fn key(&self) -> Key {
        key(install_pk(&self.0.install), format!("{INSTALL_SENDERS_PREFIX}{}", self.0.sender))
    }
}

/// The owner of a budget.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budgeted {
    Install(InstallId),
    /// A role that is not known; the text is its unique id.
    Role(String),
    /// All roles that are not known, together.
    UnknownRoles,
}

impl std::fmt::Display for Budgeted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Install(install) => write!(f, "install `{install}`"),
            Self::Role(role) => write!(f, "unknown role `{role}`"),
            Self::UnknownRoles => write!(f, "unknown roles"),
        }
    }
}

/// A budget and its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetRecord {
    pub of: Budgeted,
    #[serde(flatten)]
    pub budget: ReportBudget,
    /// The copy of the function that last changed the budget.
    #[serde(default, skip_serializing_if = "WriterId::is_absent")]
    pub by: WriterId,
}

/// Returns the key of the row of a budget.
pub fn budget_key(of: &Budgeted) -> Key {
    match of {
        Budgeted::Install(install) => key(install_pk(install), "budget"),
        Budgeted::Role(role) => key(format!("sender#{role}"), "budget"),
        Budgeted::UnknownRoles => key("reports", "budget"),
    }
}

impl Record for BudgetRecord {
    fn key(&self) -> Key {
        budget_key(&self.of)
    }
}
