//! The failure of a job, with its reason as a sentence for people.

use std::error::Error;
use std::fmt::Display;

use freehold_aws_errors::chain;
use freehold_oci::RegistryError;
use freehold_protocol::ComponentName;
use freehold_protocol::approval::ProposedPlan;
use freehold_protocol::policy::PolicyResult;
use freehold_protocol::report::{Block, Outcome};

use crate::job::{GrantError, Job, StopReason};
use crate::workspace::WorkspaceError;

/// The maximum length of the reason in a report, in characters.
const MAX_REASON: usize = 2_000;

/// The failure of a job. `partial` is true when the job may have changed something.
#[derive(Debug)]
pub enum Failure {
    /// The job failed, and the runner did not stop it.
    Failed { reason: String, partial: bool },
    /// The runner stopped the job.
    Stopped { reason: StopReason, partial: bool },
    /// Somebody has to approve the plan. Nothing was changed.
    Waits(Box<ProposedPlan>),
    /// The plan is not applied, because its approval does not count or somebody rejected it. Nothing was changed.
    NotApproved { reason: String },
}

impl Failure {
    /// Returns a failure that changed nothing.
    pub fn new(reason: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into(), partial: false }
    }

    /// Returns a failure that may have changed something.
    pub fn partial(reason: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into(), partial: true }
    }

    pub const fn stopped(reason: StopReason) -> Self {
        Self::Stopped { reason, partial: false }
    }

    /// Returns a failure with the reason `what`, followed by `error` and all its causes.
    pub fn because(what: &str, error: &dyn Error) -> Self {
        Self::new(format!("{what}: {}", chain(error)))
    }

    /// Returns the failure of a removal that would destroy the data in the resources `held` although the order does not
    /// allow it.
    pub fn destroys_data(held: &[String]) -> Self {
        Self::new(format!(
            "the removal would destroy data, in `{}`; keep a copy of what is needed, and allow the removal with \
             `freehold teardown ... --destroy-data`",
            held.join("`, `")
        ))
    }

    /// Returns the failure of a component.
    pub fn of_component(component: &ComponentName, why: impl Display) -> Self {
        Self::new(format!("component `{component}`: {why}"))
    }

    /// Returns the same failure with a reason that begins with `owner`, such as ``component `api` ``. A reason that
    /// already begins with it stays as it is.
    pub fn of(self, owner: &str) -> Self {
        match self {
            Self::Failed { reason, partial } if !reason.starts_with(owner) => {
                Self::Failed { reason: format!("{owner}: {reason}"), partial }
            }
            unchanged @ (Self::Failed { .. } | Self::Stopped { .. } | Self::Waits(_) | Self::NotApproved { .. }) => {
                unchanged
            }
        }
    }

    /// Returns the same failure with the reason of `other` behind its own reason, unless its own contains it.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Failed { reason, partial }, Self::Failed { reason: more, .. }) if !reason.contains(&more) => {
                Self::Failed { reason: format!("{reason}; and {more}"), partial }
            }
            (failure, _) => failure,
        }
    }

    /// Returns the failure of a deploy that would delete the objects `held` of a cluster, and the data in them.
    pub fn deletes_data(component: &ComponentName, held: &[String]) -> Self {
        Self::new(format!(
            "component `{component}`: the deploy would delete objects that hold data: `{}`; nothing was changed. Put \
             them back into the component, or mark each that has to stay with `kubectl annotate KIND NAME \
             --namespace NAMESPACE helm.sh/resource-policy=keep`, or delete it with `kubectl delete`; then deploy again",
            held.join("`, `")
        ))
    }

    /// Returns the same failure, marked as one that may have changed something.
    pub fn after_change(self) -> Self {
        match self {
            Self::Failed { reason, .. } => Self::Failed { reason, partial: true },
            Self::Stopped { reason, .. } => Self::Stopped { reason, partial: true },
            unchanged @ (Self::Waits(_) | Self::NotApproved { .. }) => unchanged,
        }
    }

    pub(crate) fn into_outcome(self, job: &Job) -> Outcome {
        let (reason, partial) = match self {
            Self::Failed { reason, partial } => (reason, partial),
            Self::Stopped { reason: StopReason::Cancelled, partial } => {
                if partial {
                    job.log.line(
                        "cancelled while changes were being made; the next deploy starts from the changes that were \
                         made",
                    );
                }
                return Outcome::Cancelled;
            }
            Self::Stopped { reason, partial } => (sentence(reason, job.order.timeout_secs), partial),
            Self::Waits(plan) => return Outcome::NeedsApproval { plan },
            Self::NotApproved { reason } => {
                let reason = job.log.redacted(&reason).chars().take(MAX_REASON).collect();
                return Outcome::Blocked { block: Block::NotApproved, reason };
            }
        };
        let reason = job.log.redacted(&reason).chars().take(MAX_REASON).collect();
        // A job does not continue after a policy has stopped it.
        if !partial && job.policies.results().iter().any(PolicyResult::stops) {
            return Outcome::Blocked { block: Block::Policy, reason };
        }
        Outcome::Failed { reason, partial }
    }
}

/// Returns the result of `work`, unless the attempt must stop first.
///
/// # Errors
/// The failure of `work`, or [`Failure::Stopped`].
pub async fn until_stopped<T>(job: &Job, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::select! {
        biased;
        reason = job.stop.stopped() => Err(Failure::stopped(reason)),
        ended = work => ended,
    }
}

fn sentence(reason: StopReason, timeout_secs: u32) -> String {
    match reason {
        StopReason::Cancelled => "cancelled".to_owned(),
        StopReason::LeaseLost => {
            "stopped because the order's lease could not be renewed; another attempt may start".to_owned()
        }
        StopReason::TimedOut => {
            format!(
                "stopped because its time limit of {timeout_secs} s for one attempt was reached or its order expired"
            )
        }
        StopReason::Draining => "stopped because the runner is shutting down".to_owned(),
        StopReason::SwitchedOff => "stopped because the customer has switched the runner off".to_owned(),
    }
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Self {
        Self::new(chain(&error))
    }
}

impl From<WorkspaceError> for Failure {
    fn from(error: WorkspaceError) -> Self {
        Self::because("could not use the workspace", &error)
    }
}

impl From<GrantError> for Failure {
    fn from(error: GrantError) -> Self {
        Self::new(chain(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(failure: Failure) -> String {
        let Failure::Failed { reason, .. } = failure else { panic!("{failure:?}") };
        reason
    }

    #[test]
    fn a_reason_names_its_owner_once() {
        let of = |text: &str| reason(Failure::new(text).of("component `api`"));

        assert_eq!(of("the cluster is silent"), "component `api`: the cluster is silent");
        assert_eq!(of("component `api`, values file 1: no"), "component `api`, values file 1: no");
        assert_eq!(of("component `api-2` is absent"), "component `api`: component `api-2` is absent");
    }

    #[test]
    fn a_second_reason_follows_the_first_unless_it_repeats_it() {
        let both = |other: &str| reason(Failure::new("helm failed: a").and(Failure::new(other)));

        assert_eq!(both("the cluster is silent"), "helm failed: a; and the cluster is silent");
        assert_eq!(both("failed: a"), "helm failed: a");
    }
}
