//! Records what a job did with IAM: each change for the audit, and how often each action was used.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

/// One change that a job asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Such as `CreateRole`.
    pub action: String,
    /// The role, policy, profile, provider or service that it is about.
    pub resource: String,
    pub stage: Stage,
}

/// How far a change is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// It is about to be sent to IAM.
    Announced,
    /// IAM made it.
    Made,
    /// IAM answered with this error, or did not answer.
    Failed { code: String },
    /// It was answered as if done, and IAM was not asked for it; the text says what happened instead.
    Held { instead: String },
    /// A rule forbids the action.
    Refused { reason: String },
}

/// Takes the changes of a job.
#[async_trait]
pub trait Recorder: std::fmt::Debug + Send + Sync {
    /// Records a change. A change whose announcement is not recorded is not made.
    ///
    /// # Errors
    /// A sentence for people.
    async fn record(&self, change: Change) -> Result<(), String>;

    /// Records which actions the job used; called once, at its end.
    ///
    /// # Errors
    /// A sentence for people.
    async fn used(&self, used: BTreeMap<String, Used>) -> Result<(), String>;
}

/// How often a job used an action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// Answered by IAM, or as if by it.
    pub answered: u64,
    /// Refused by a rule, or by IAM with an error.
    pub refused: u64,
}

/// Every action that a job used.
#[derive(Debug, Default)]
pub(crate) struct Usage(Mutex<BTreeMap<String, Used>>);

impl Usage {
    /// Names of actions that are kept; a job can make up any number of them.
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
