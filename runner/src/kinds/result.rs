//! Converts the result of a job's code into the outcome that the runner reports.

use std::collections::BTreeMap;

use freehold_protocol::Digest;
use freehold_protocol::order::{Artifact, ClusterOf};
use freehold_protocol::report::Outcome;
use serde_json::Value;

use crate::identity::job_aws::JobAws;
use crate::job::Job;
use crate::job::failure::{Failure, until_stopped};
use crate::kinds::templates::owner;
use crate::kubernetes::ClusterAccess;
use crate::sandbox::{self, Ended, Program};

/// The log lines of a job that applies nothing, because its plan changes nothing: its order requires this, or somebody
/// would have to approve the plan.
const SKIPPED: &str = "the plan changes nothing, so nothing is applied (`skip_noops`)";
const NOBODY_ASKED: &str = "the plan changes nothing, so nothing is applied, and nobody has to approve it";

/// Returns the log line of a job that applies nothing, because its plan changes nothing.
pub(super) fn skipped(job: &Job) -> &'static str {
    if job.order.skip_noops { SKIPPED } else { NOBODY_ASKED }
}

/// The outputs and the artifact of a successful job.
#[derive(Debug, Default)]
pub struct Done {
    pub outputs: BTreeMap<String, Value>,
    /// The keyed digests of the sensitive outputs, whose values are stored in the customer's account.
    pub sensitive: BTreeMap<String, Digest>,
    pub artifact: Option<Artifact>,
}

/// Returns the outcome to report for the result of a job.
///
/// The outcome is a failure when the job was stopped for [`crate::job::StopReason::LeaseLost`] or `Draining`. The
/// caller decides what to report then, because another attempt may already be running.
pub fn outcome(job: &Job, ended: Result<Done, Failure>) -> Outcome {
    match ended {
        Ok(Done { outputs, sensitive, artifact }) => Outcome::Succeeded { outputs, sensitive, artifact },
        Err(failure) => failure.into_outcome(job),
    }
}

/// Prepares the job's access to AWS.
///
/// # Errors
/// A failure when one of its servers cannot be started.
pub(super) async fn job_aws(job: &Job) -> Result<JobAws, Failure> {
    JobAws::of(job).await.map_err(|error| Failure::because("could not prepare the job's access to AWS", &error))
}

/// Finds the cluster, and returns the job's access to it.
///
/// # Errors
/// A failure when there is no such cluster or EKS cannot describe it, and [`Failure::Stopped`].
pub(super) async fn cluster_access(job: &Job, cluster: &ClusterOf) -> Result<ClusterAccess, Failure> {
    let access = until_stopped(job, async { Ok(ClusterAccess::of(job, cluster).await?) }).await;
    access.map_err(|failure| failure.of(&owner(&job.order.work)))
}

/// Stores sensitive outputs for later jobs, and returns their keyed digests. Succeeds without storing any when the
/// install stack is too old to permit this: only a job that reads such an output then fails.
///
/// # Errors
/// A failure when they cannot be stored for another reason, and [`Failure::Stopped`].
pub(super) async fn keep_sensitive(
    job: &Job,
    outputs: BTreeMap<String, Value>,
) -> Result<BTreeMap<String, Digest>, Failure> {
    let names = outputs.keys().cloned().collect::<Vec<_>>().join("`, `");
    // Boxed, because the futures of the client are large and a job's future contains many of them.
    let kept = Box::pin(job.sensitive_outputs.keep(&job.order, job.fence, outputs));
    let kept = async { Ok(kept.await) };
    match until_stopped(job, kept).await? {
        Ok(digests) if digests.is_empty() => Ok(digests),
        Ok(digests) => {
            job.log.line(&format!("outputs `{names}` are sensitive: they stay in this account and are not reported"));
            Ok(digests)
        }
        Err(error) if error.is_denied() => {
            if names.is_empty() {
                return Ok(BTreeMap::new());
            }
            job.log.line(&format!("outputs `{names}` are sensitive, and no other job can read them: {error}"));
            Ok(BTreeMap::new())
        }
        Err(error) => Err(Failure::new(error.to_string())),
    }
}

/// Runs `program` until it ends. `command` names it in the failure, and `error_in` finds the error in its last output.
///
/// # Errors
/// A failure when it cannot be started or ends with another exit code than 0, and [`Failure::Stopped`].
pub(super) async fn succeed(
    job: &Job,
    program: Program<'_>,
    command: &str,
    error_in: fn(&str) -> String,
) -> Result<(), Failure> {
    succeeded(sandbox::run(job, program).await?, command, error_in)
}

/// Returns the failure of a program that did not end with exit code 0, as [`succeed`] does.
pub(super) fn succeeded(ended: Ended, command: &str, error_in: fn(&str) -> String) -> Result<(), Failure> {
    match ended {
        Ended::Code { code: 0, .. } => Ok(()),
        Ended::Code { code, last_words } => {
            let why = error_in(&last_words);
            Err(Failure::new(format!("`{command}` ended with exit code {code}{why}")))
        }
        Ended::Stopped(reason) => Err(Failure::stopped(reason)),
    }
}
