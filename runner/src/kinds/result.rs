//! How the code of a kind ends, and the outcome that is reported of it.

use std::collections::BTreeMap;

use aws_types::SdkConfig;
use freehold_protocol::order::Artifact;
use freehold_protocol::report::Outcome;
use serde_json::Value;

use crate::kinds::failure::Failure;
use crate::work::job::Job;

/// What a job made.
#[derive(Debug, Default)]
pub struct Done {
    pub outputs: BTreeMap<String, Value>,
    pub artifact: Option<Artifact>,
}

/// Returns the outcome of a job that ended so.
///
/// A job stopped for [`crate::work::job::StopReason::LeaseLost`] or `Draining` ends as failed here; the caller knows better
/// what becomes of it, since another attempt may be on its way.
pub fn outcome(job: &Job, ended: Result<Done, Failure>) -> Outcome {
    match ended {
        Ok(Done { outputs, artifact }) => Outcome::Succeeded { outputs, artifact },
        Err(failure) => failure.into_outcome(job),
    }
}

/// Returns what AWS clients of the job's mode are made from.
pub async fn sdk_config(job: &Job) -> SdkConfig {
    crate::aws::sdk_config(&job.config.region, Some(job.credentials.clone())).await
}

/// Returns what `work` returns, unless the attempt must stop before.
///
/// # Errors
/// The failure of `work`, or that the attempt was stopped.
pub async fn until_stopped<T>(job: &Job, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::select! {
        biased;
        reason = job.stop.stopped() => Err(Failure::stopped(reason)),
        ended = work => ended,
    }
}
