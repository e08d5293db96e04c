//! Records a job's use of IAM: each change for the audit, and the number of calls of each action.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

/// One stage of a change that a job requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The IAM action, such as `CreateRole`.
    pub action: String,
    /// The name of the role, policy, profile, provider or service that the action changes.
    pub resource: String,
    pub stage: Stage,
}

/// The stage of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// The change will be sent to IAM next.
    Announced,
    /// IAM made the change.
    Made,
    /// IAM returned the error `code`, or did not respond.
    Failed { code: String },
    /// The job got the response that the change was made, but IAM did not get the change. The text describes what
    /// happened instead.
    Held { instead: String },
    /// A rule forbids the action.
    Refused { reason: String },
}

/// The receiver of a job's records.
#[async_trait]
pub trait Recorder: std::fmt::Debug + Send + Sync {
    /// Records a stage of a change. A change whose [`Stage::Announced`] cannot be recorded is not sent to IAM.
    ///
    /// # Errors
    /// A sentence with the reason why the record was not made.
    async fn record(&self, change: Change) -> Result<(), String>;

    /// Records the actions that the job used. It is called once, at the end of the job.
    ///
    /// # Errors
    /// A sentence with the reason why the record was not made.
    async fn record_used(&self, used: BTreeMap<String, Used>) -> Result<(), String>;
}

/// The number of calls of one action by a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// The number of calls that succeeded, in IAM or in the runner instead of IAM.
    pub answered: u64,
    /// The number of calls that a rule refused or that failed.
    pub refused: u64,
}

/// The number of calls of each action that a job used.
#[derive(Debug, Default)]
pub(crate) struct Usage(Mutex<BTreeMap<String, Used>>);

impl Usage {
    /// The maximum number of action names that are counted, because a job can invent any number of names.
    const MOST: usize = 128;

    pub(crate) fn count(&self, action: &str, answered: bool) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= Self::MOST && !all.contains_key(action) {
            return;
        }
        let used = all.entry(action.to_owned()).or_default();
        if answered { used.answered += 1 } else { used.refused += 1 }
    }

    pub(crate) fn all(&self) -> BTreeMap<String, Used> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
