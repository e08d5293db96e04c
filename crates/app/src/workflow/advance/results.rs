//! The rows that are written beside the job and its workflow when a job ends: the record of a deployed component, a
//! build's artifact with its proof, the result of a check of drift or health, the list of leftovers, or the record of
//! copied secrets.

use std::collections::BTreeMap;

use freehold_domain::build::{Build, BuildState};
use freehold_domain::job::{Job, JobState};
use freehold_domain::plan::{Deployed, PartialBy};
use freehold_domain::sensitive_outputs::SensitiveOutputs;
use freehold_domain::workflow::{Deploys, Node, NodeState, Request, Target, Workflow, WorkflowKind};
use freehold_protocol::order::leftovers::{self, Leftovers};
use freehold_protocol::{AppName, ComponentName, Digest, JobId, Timestamp, WorkflowId};
use serde_json::Value;

use crate::AppError;
use crate::drift::result::{after_deploy, checked_writes};
use crate::health::record::record_health;
use crate::part::{attempted_part, late_result};
use crate::ports::{Expect, Store, Write};
use crate::table::evidence::{MadeBy, ProofRecord};
use crate::table::{self, CopiedSecrets, DeployedRecord, LeftoversRecord, Stored, load, put};

/// Returns the further writes at the end of a job, such as the record of a deployed component, or a build's artifact
/// with its proof.
pub(super) async fn result_writes(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    proof: Option<ProofRecord>,
    now: Timestamp,
) -> Result<Vec<Write>, AppError> {
    let Some(node) = workflow.nodes.iter().find(|node| node.name == job.node) else { return Ok(Vec::new()) };
    match (&node.target, &job.state) {
        (Target::Component { .. } | Target::Sandbox { .. }, JobState::Succeeded { fence, outputs, sensitive, .. }) => {
            let sensitive = SensitiveOutputs::of(*fence, sensitive);
            deployed_writes(store, job, workflow, &node.target, (outputs, sensitive), now).await
        }
        (Target::Build { build, .. }, _) => {
            let Some(app) = build_app(workflow) else { return Ok(Vec::new()) };
            let Some(stored) = load::<Build>(store, &table::build_key(app, build)).await? else {
                return Ok(Vec::new());
            };
            build_writes(stored, job, workflow, proof, now)
        }
        (Target::Secrets { fingerprint, keeps_others }, _) => {
            secrets_writes(store, job, workflow, (fingerprint, *keeps_others)).await
        }
        (Target::Teardown { part, .. }, JobState::Succeeded { .. }) => {
            Ok(late_result::removal_write(store, job, workflow, part).await?.into_iter().collect())
        }
        (Target::Component { .. } | Target::Sandbox { .. } | Target::Teardown { .. }, _) => {
            failed_writes(store, job, workflow, &node.target, now).await
        }
        (Target::DetectDrift { part, of, .. }, _) => checked_writes(store, job, workflow, (part, of), now).await,
        (Target::Leftovers, _) => leftovers_writes(store, job, workflow, now).await,
        (Target::Health { component, checks, .. }, _) => {
            record_health(store, job, workflow, (component, &checks.names), now).await
        }
        (Target::Action { .. } | Target::Preflight | Target::Upgrade, _) => Ok(Vec::new()),
    }
}

/// Returns the write of the list of resources that still exist after a teardown, or of the reason why there is no list.
/// Returns no write for a list that cannot be read, or that is reported late when a later workflow exists.
async fn leftovers_writes(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    now: Timestamp,
) -> Result<Vec<Write>, AppError> {
    let found = match &job.state {
        JobState::Succeeded { outputs, .. } => {
            let reported = outputs.get(leftovers::OUTPUT).cloned().map(serde_json::from_value::<Leftovers>);
            let Some(Ok(found)) = reported else { return Ok(Vec::new()) };
            found
        }
        ended => {
            let reason = job.reason().unwrap_or_default();
            let unknown = format!("the job that lists the leftovers is {}: {reason}", ended.as_str());
            Leftovers { unknown: Some(unknown), ..Leftovers::default() }
        }
    };
    if !late_result::is_latest(store, job, workflow).await? {
        return Ok(Vec::new());
    }
    let record = LeftoversRecord { install: job.install.clone(), job: job.id.clone(), at: now, found };
    Ok(vec![put(&record, Expect::Any)?])
}

/// Returns the write of the record of the copies of secrets, after a job that copies or removes them.
async fn secrets_writes(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    (fingerprint, keeps_others): (&Digest, bool),
) -> Result<Vec<Write>, AppError> {
    let succeeded = matches!(&job.state, JobState::Succeeded { .. });
    let changed = succeeded || job.may_have_changed();
    if !changed || !late_result::is_latest(store, job, workflow).await? {
        return Ok(Vec::new());
    }
    if succeeded && workflow.kind == WorkflowKind::TeardownInstall {
        return Ok(vec![Write::Delete { key: table::copied_secrets_key(&job.install) }]);
    }
    let install = job.install.clone();
    let copied = if succeeded {
        CopiedSecrets { install, fingerprint: fingerprint.clone(), others: keeps_others }
    } else {
        // No version has this fingerprint: the next deploy copies again, and a teardown knows that there are copies.
        CopiedSecrets { install, fingerprint: Digest::of(b"partly copied"), others: true }
    };
    Ok(vec![put(&copied, Expect::Any)?])
}

/// Returns the write of the record of a deployed component or sandbox. The record has a digest of the sandbox outputs
/// that the component reads. These outputs are the same in the table as in the job's order, because a workflow does not
/// change the sandbox after its components have started.
async fn deployed_writes(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    target: &Target,
    (outputs, sensitive): (&BTreeMap<String, Value>, Option<SensitiveOutputs>),
    now: Timestamp,
) -> Result<Vec<Write>, AppError> {
    let Some(Deploys { part, artifact, fingerprint, reads, .. }) = target.deploys() else { return Ok(Vec::new()) };
    let Some(expect) = late_result::deploy_condition(store, job, workflow, &part).await? else { return Ok(Vec::new()) };
    let sandbox = match reads.filter(|reads| !reads.is_empty()) {
        Some(reads) => reads.digest(&table::sandbox_outputs(store, &job.install).await?)?,
        None => None,
    };
    let drift = after_deploy(store, job, &part, now).await?;
    let deployed = Deployed {
        component: part,
        fingerprint: fingerprint.clone(),
        artifact: artifact.clone(),
        version: attempted_part::version_of(workflow)?,
        job: job.id.clone(),
        at: now,
        serial: job.serial,
        outputs: outputs.clone(),
        sensitive,
        sandbox,
        partial: false,
        partial_by: None,
        attempted: false,
        skipped: None,
        drift,
    };
    Ok(vec![put(&DeployedRecord { install: job.install.clone(), deployed }, expect)?])
}

/// Returns the write of a part's record after a job of the part that did not succeed.
///
/// A deployed part that the job may have changed is marked as partial. The next deploy runs a partial part again, even if it
/// deploys the version that the record names. A part that was never deployed with success also has a record: it names the last
/// job that may have created resources, and is removed when that job turns out to have changed nothing.
async fn failed_writes(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    target: &Target,
    now: Timestamp,
) -> Result<Vec<Write>, AppError> {
    let deploys = target.deploys();
    let Some(part) = part_of(target) else { return Ok(Vec::new()) };
    let key = table::deployed_key(&job.install, &part);
    let known: Option<Stored<DeployedRecord>> = load(store, &key).await?;
    if let (None, Some(deploys)) = (&known, &deploys) {
        // There is no record: an earlier release stored none when it sent the order, or a report of an earlier job
        // removed the record. The order of a cancelled job counts as not sent if no attempt has reported.
        let was_sent = !matches!(&job.state, JobState::Cancelled { unclaimed: true, .. });
        let is_left = was_sent && job.may_have_changed() && !job.is_reported_late();
        let record = is_left.then(|| attempted_part::record(job, workflow, deploys, now)).transpose()?;
        return record.map(|record| put(&record, Expect::Absent)).into_iter().collect();
    }
    let Some(mut known) = known.filter(|known| known.value.deployed.serial <= job.serial) else {
        return Ok(Vec::new());
    };
    let record = &mut known.value.deployed;
    if record.attempted {
        return match deploys {
            Some(_) if record.job == job.id && job.changed_nothing() => {
                Ok(vec![Write::DeleteAt { key, rev: known.rev }])
            }
            Some(deploys) if record.job != job.id && job.may_have_changed() => {
                let again = attempted_part::record(job, workflow, &deploys, now)?;
                Ok(vec![put(&again, Expect::Rev(known.rev))?])
            }
            Some(_) | None => Ok(Vec::new()),
        };
    }
    // An earlier dispatch of the job may have changed the part.
    let is_unclaimed = matches!(&job.state, JobState::Cancelled { unclaimed: true, dispatch: 1, .. });
    let is_marked = record.partial && record.partial_by.as_ref().is_some_and(|by| by.job == job.id);
    if is_marked && (is_unclaimed || !job.may_have_changed()) {
        // The end of the workflow marked the part while this job was open.
        record.partial = false;
        record.partial_by = None;
        return Ok(vec![put(&known.value, Expect::Rev(known.rev))?]);
    }
    if record.partial || !job.may_have_changed() {
        return Ok(Vec::new());
    }
    Ok(vec![put_partial(known, (&job.workflow, &job.id), target, now)?])
}

/// Returns the part that a target deploys or removes, if it does either.
fn part_of(target: &Target) -> Option<ComponentName> {
    if let Target::Teardown { part, .. } = target {
        return Some(part.clone());
    }
    target.deploys().map(|deploys| deploys.part.clone())
}

/// Returns the write of a part's record that marks it as partial because of a job.
fn put_partial(
    mut known: Stored<DeployedRecord>,
    (workflow, job): (&WorkflowId, &JobId),
    target: &Target,
    now: Timestamp,
) -> Result<Write, AppError> {
    let removes = matches!(target, Target::Teardown { .. });
    known.value.deployed.partial = true;
    known.value.deployed.partial_by =
        Some(PartialBy { workflow: workflow.clone(), job: job.clone(), at: now, removes });
    put(&known.value, Expect::Rev(known.rev))
}

/// Returns the write that marks the part of a node as partial while a job is open that may change it; `None` for a part
/// without a record of a whole deploy. Without the mark, a plan that is made before the job has ended would rely on the
/// record.
pub(in crate::workflow) async fn open_part_write(
    store: &dyn Store,
    workflow: &Workflow,
    node: &Node,
    now: Timestamp,
) -> Result<Option<Write>, AppError> {
    let NodeState::Active { job } = &node.state else { return Ok(None) };
    let Some(part) = part_of(&node.target) else { return Ok(None) };
    let known: Option<Stored<DeployedRecord>> = load(store, &table::deployed_key(&workflow.install, &part)).await?;
    let whole = known.filter(|known| !known.value.deployed.partial && known.value.deployed.serial <= workflow.serial);
    whole.map(|known| put_partial(known, (&workflow.id, job), &node.target, now)).transpose()
}

/// Returns the writes for a build at the end of its job.
fn build_writes(
    stored: Stored<Build>,
    job: &Job,
    workflow: &Workflow,
    proof: Option<ProofRecord>,
    now: Timestamp,
) -> Result<Vec<Write>, AppError> {
    let mut record = stored.value;
    let built = matches!(&job.state, JobState::Succeeded { artifact: Some(_), .. });
    let ours = matches!(&record.state, BuildState::Building { workflow: by } if *by == workflow.id);
    if matches!(record.state, BuildState::Built { .. }) || !(built || ours) {
        // A build that has an artifact does not change, because deploys refer to that artifact by its digest. A failure
        // changes only a build that belongs to this workflow, and not the build of a later workflow.
        return Ok(Vec::new());
    }
    let mut writes = Vec::new();
    record.state = match &job.state {
        JobState::Succeeded { artifact: Some(artifact), .. } => {
            if let Some(proof) = proof {
                let (app, component, build) = (record.app.clone(), record.component.clone(), record.id.clone());
                let made = MadeBy { artifact: artifact.digest.clone(), app, component, build, proof };
                writes.push(put(&made, Expect::Any)?);
            }
            BuildState::Built { job: job.id.clone(), artifact: artifact.clone(), built_at: now }
        }
        other => BuildState::Failed {
            job: job.id.clone(),
            reason: other.reason().unwrap_or_else(|| "the build reported no artifact".into()),
        },
    };
    writes.push(put(&record, Expect::Rev(stored.rev))?);
    Ok(writes)
}

/// Returns the app whose components a build workflow builds; `None` for other workflows.
pub const fn build_app(workflow: &Workflow) -> Option<&AppName> {
    match &workflow.request {
        Request::Build { app, .. } => Some(app),
        Request::Deploy { .. }
        | Request::Action { .. }
        | Request::Teardown { .. }
        | Request::Upgrade { .. }
        | Request::DetectDrift { .. }
        | Request::CheckHealth { .. } => None,
    }
}
