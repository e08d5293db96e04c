//! The records of parts that an unfinished deploy may have created, so that a teardown removes them.
//!
//! The record is written together with the first order for a part, before the order is sent. It does not depend on any
//! report: a runner that is lost, or whose reports do not arrive, may have created something too.

use std::collections::BTreeMap;

use freehold_domain::job::Job;
use freehold_domain::plan::Deployed;
use freehold_domain::workflow::{Deploys, Target, Workflow};
use freehold_protocol::{Digest, Timestamp};

use crate::AppError;
use crate::ports::{Expect, Store, Write};
use crate::table::{self, DeployedRecord, put};

/// Returns the write of the record of a part whose order is about to be sent; `None` if the part has a record, or if the
/// order deploys nothing.
pub(crate) async fn record_write(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    target: &Target,
    now: Timestamp,
) -> Result<Option<Write>, AppError> {
    let Some(deploys) = target.deploys() else { return Ok(None) };
    if store.get(&table::deployed_key(&job.install, &deploys.part)).await?.is_some() {
        return Ok(None);
    }
    Ok(Some(put(&record(job, workflow, &deploys, now)?, Expect::Absent)?))
}

/// Returns the record of a part for which `job` may create resources.
pub(crate) fn record(
    job: &Job,
    workflow: &Workflow,
    deploys: &Deploys<'_>,
    now: Timestamp,
) -> Result<DeployedRecord, AppError> {
    let attempted = Deployed {
        component: deploys.part.clone(),
        fingerprint: deploys.fingerprint.clone(),
        artifact: deploys.artifact.clone(),
        version: version_of(workflow)?,
        job: job.id.clone(),
        at: now,
        serial: job.serial,
        outputs: BTreeMap::new(),
        sensitive: None,
        sandbox: None,
        partial: true,
        partial_by: None,
        attempted: true,
        skipped: None,
        drift: None,
    };
    Ok(DeployedRecord { install: job.install.clone(), deployed: attempted })
}

/// Returns the version from which the workflow deploys.
pub(crate) fn version_of(workflow: &Workflow) -> Result<Digest, AppError> {
    workflow.version.clone().ok_or_else(|| {
        // INVARIANT: a workflow that deploys a component or the sandbox was planned from a version.
        AppError::internal(format!("workflow `{}` has no version", workflow.id))
    })
}
