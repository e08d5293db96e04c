//! `freehold customer approve` and `freehold customer reject`: writes the customer's decision about a plan into the
//! install's bucket, with the customer's own credentials. The runner reads the decision there. No role of the install
//! can write a decision.

use std::collections::BTreeMap;

use clap::Args;
use freehold_protocol::approval::{
    PLANS, PlanRecord, Side, WrittenDecision, approval_object, record_object, use_object,
};
use freehold_protocol::{Digest, InstallId};
use serde_json::json;

use super::answer::Answer;
use super::own_install::OwnInstall;
use super::question::Question;
use crate::clock;
use crate::context::Context;
use crate::error::{Error, Kind, Result, ResultExt};
use crate::job::plan::changes;
use crate::output::{Part, time};

/// For customers: approve a plan of the vendor.
#[derive(Debug, Args)]
#[command(after_help = Question::Approved.help("\
Example:
  freehold customer approvals globex --tenant acme
  freehold customer approve globex --plan sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef --tenant acme

The stack's parameter `ApproveChanges` (`none`, `destructive` or `all`) decides which plans wait for you. This command writes an
object into your bucket, below `approvals/`, under your own identity. Your runner sees it within a minute, and applies exactly this
plan or nothing. Exit code 4 when the plan expired or does not need your approval, when its job has made a newer plan, and
when an order has begun to apply it."))]
pub(crate) struct Approve {
    /// Name of the install.
    install: InstallId,
    /// The digest of the plan, as `freehold customer approvals` prints it.
    #[arg(long, value_name = "DIGEST")]
    plan: Digest,
}

/// For customers: reject a plan of the vendor; its job ends.
#[derive(Debug, Args)]
#[command(override_usage = "freehold customer reject [OPTIONS] --plan <DIGEST>\n                                --reason <REASON> <INSTALL>", after_help = Question::Approved.help("\
Example:
  freehold customer reject globex --plan sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef --reason \"not before the audit\" --tenant acme

The job ends as blocked, without having changed anything."))]
pub(crate) struct Reject {
    /// Name of the install.
    install: InstallId,
    /// The digest of the plan, as `freehold customer approvals` prints it.
    #[arg(long, value_name = "DIGEST")]
    plan: Digest,
    /// The reason; the vendor sees it.
    #[arg(long, value_name = "REASON")]
    reason: String,
}

impl Approve {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        approve(&OwnInstall::find(context, &self.install).await?, &self.plan).await?.print(context.out)
    }
}

impl Reject {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        reject(&OwnInstall::find(context, &self.install).await?, &self.plan, &self.reason).await?.print(context.out)
    }
}

/// Approves a plan that waits for the customer.
pub(super) async fn approve(own: &OwnInstall, plan: &Digest) -> Result<Answer> {
    decide(own, plan, true, "").await
}

/// Rejects a plan that waits for the customer.
pub(super) async fn reject(own: &OwnInstall, plan: &Digest, reason: &str) -> Result<Answer> {
    decide(own, plan, false, reason).await
}

async fn decide(own: &OwnInstall, plan: &Digest, approved: bool, reason: &str) -> Result<Answer> {
    let record = record(own, plan).await?;
    let now = clock::now()?;
    if now > record.until {
        return Err(Error::conflict(format!(
            "plan {plan} expired at {} and can no longer be approved",
            time(record.until)
        ))
        .or("ask the vendor to start the job again, which makes a new plan"));
    }
    if !record.asks.contains(&Side::Customer) {
        return Err(Error::conflict(format!("plan {plan} does not need the customer's approval"))
            .or("to approve such plans in future, set parameter `ApproveChanges` of the stack"));
    }
    if approved {
        check_newest(own, (plan, &record)).await?;
    }
    let by = crate::aws::caller(&own.config).await?.arn;
    let decision = WrittenDecision {
        tenant: own.tenant.clone(),
        install: own.install.clone(),
        plan: plan.clone(),
        approved,
        by,
        at: now,
        reason: reason.to_owned(),
    };
    let (bucket, object) = (own.bucket(), approval_object(plan));
    let body = serde_json::to_vec(&decision).map_err(|error| Error::internal(error.to_string()))?;
    let put = own.s3().put_object().bucket(&bucket).key(&object).body(body.into()).send().await;
    put.doing(format!("write `{object}` into bucket `{bucket}`"))?;
    let (job, did) = (record.job.to_string(), if approved { "approved" } else { "rejected" });
    let does =
        if approved { "the runner applies it within some minutes".to_owned() } else { end(own, (plan, &record)).await };
    let shown = json!({ "plan": plan, "job": job, "decision": did, "by": decision.by, "object": object });
    let mut lines = vec![format!("plan {plan} of {job} ({}) is {did}; {does}", record.changes)];
    lines.extend(changes(&record.summary));
    lines.push(format!("the whole plan: object `{}` of bucket `{bucket}`", record.object));
    Answer::new(&shown, vec![Part::Text(lines.join("\n"))])
}

/// Refuses an approval without an effect: the job has made a newer plan, or an order has begun to apply this one.
///
/// A rejection does not need this check. It has an effect even after the order has begun: a runner that was killed
/// before the apply reads the decision again. With the check, whoever can write plans could stop the customer from
/// rejecting.
async fn check_newest(own: &OwnInstall, (plan, record): (&Digest, &PlanRecord)) -> Result<()> {
    let (job, objects) = (&record.job, plan_objects(own).await?);
    if objects.contains_key(&use_object(plan)) {
        return Err(Error::conflict(format!("an order of {job} has begun to apply plan {plan}"))
            .or("`freehold customer approvals` lists the plans that wait"));
    }
    let Some(newer) = newer_plan(own, &objects, (plan, record)).await? else { return Ok(()) };
    Err(Error::conflict(format!("plan {plan} of {job} was replaced by plan {newer}"))
        .or("look at the newer plan with `freehold customer approvals`, and decide about that one"))
}

/// Returns the effect of a rejection, as text. The rejection is already in the bucket, so an error of the list of plans
/// is ignored.
async fn end(own: &OwnInstall, of: (&Digest, &PlanRecord)) -> String {
    let newer = match plan_objects(own).await {
        Ok(objects) => newer_plan(own, &objects, of).await,
        Err(error) => Err(error),
    };
    match newer {
        Ok(Some(newer)) => format!("its job has made plan {newer} since, which is not rejected"),
        Ok(None) | Err(_) => "its job ends".to_owned(),
    }
}

/// Returns a plan that the job has made after this one. `objects` are the objects of plans in the bucket.
async fn newer_plan(
    own: &OwnInstall,
    objects: &BTreeMap<String, Option<i64>>,
    (plan, record): (&Digest, &PlanRecord),
) -> Result<Option<Digest>> {
    let since = objects.get(&record_object(plan)).copied().flatten();
    for (object, _) in objects.iter().filter(|(object, at)| object.ends_with(".json") && **at >= since) {
        let Some(bytes) = read(own, object).await? else { continue };
        if let Some(newer) = replacement(record, object, &bytes) {
            return Ok(Some(newer));
        }
    }
    Ok(None)
}

/// Returns the plan whose record is in this object, if its job has made it after the plan of `record`. An object whose
/// name is not the digest of its content is not the record of a plan.
fn replacement(record: &PlanRecord, object: &str, bytes: &[u8]) -> Option<Digest> {
    let plan = Digest::of(bytes);
    if object != record_object(&plan) {
        return None;
    }
    let other: PlanRecord = serde_json::from_slice(bytes).ok()?;
    (other.job == record.job && other.planned_at > record.planned_at).then_some(plan)
}

/// Returns the objects of plans in the bucket, each with the time in seconds at which it was written.
async fn plan_objects(own: &OwnInstall) -> Result<BTreeMap<String, Option<i64>>> {
    let (client, bucket) = (own.s3(), own.bucket());
    let mut pages = client.list_objects_v2().bucket(&bucket).prefix(PLANS).into_paginator().send();
    let mut objects = BTreeMap::new();
    while let Some(page) = pages.next().await {
        let page = page.doing(format!("list the plans in bucket `{bucket}`"))?;
        let written = page.contents().iter().filter_map(|object| {
            let at = object.last_modified().map(|at| at.secs());
            Some((object.key()?.to_owned(), at))
        });
        objects.extend(written);
    }
    Ok(objects)
}

/// Returns the record of a plan. The digest of the record is the digest of the plan.
async fn record(own: &OwnInstall, plan: &Digest) -> Result<PlanRecord> {
    let (bucket, object) = (own.bucket(), record_object(plan));
    let bytes = read(own, &object).await?.ok_or_else(|| {
        Error::not_found(format!("bucket `{bucket}` has no plan {plan}"))
            .or("`freehold customer approvals` lists the plans that wait")
    })?;
    if Digest::of(&bytes) != *plan {
        return Err(Error::failed(format!("object `{object}` of bucket `{bucket}` is not the record of plan {plan}"))
            .or("somebody changed the record: approve nothing, and ask the vendor"));
    }
    serde_json::from_slice(&bytes).map_err(|error| {
        Error::quoting(Kind::Failed, format!("object `{object}`, the record of plan {plan}, cannot be read: {error}"))
            .or("use `freehold` of the release that the runner has")
    })
}

/// Reads an object of the install's bucket; returns `None` if it does not exist.
async fn read(own: &OwnInstall, object: &str) -> Result<Option<Vec<u8>>> {
    let bucket = own.bucket();
    let answer = own.s3().get_object().bucket(&bucket).key(object).send().await;
    if answer.as_ref().is_err_and(|error| error.as_service_error().is_some_and(|error| error.is_no_such_key())) {
        return Ok(None);
    }
    let answer = answer.doing(format!("read `{object}` of bucket `{bucket}`"))?;
    let bytes = answer.body.collect().await;
    let bytes = bytes.map_err(|error| Error::transient(format!("cannot read `{object}`: {error}; try again")))?;
    Ok(Some(bytes.to_vec()))
}

#[cfg(test)]
mod tests {
    use freehold_protocol::approval::PlanSummary;
    use freehold_protocol::{JobId, Timestamp, WorkflowId};

    use super::*;

    fn record(node: &str, planned_at: u64) -> PlanRecord {
        let empty = Digest::of(b"");
        PlanRecord {
            tenant: "acme".parse().unwrap(),
            install: "globex".parse().unwrap(),
            job: JobId::derive(&WorkflowId::derive("globex", "deploy"), node),
            changes: format!("component:{node}"),
            removal: false,
            work: empty.clone(),
            inputs: empty.clone(),
            state: String::new(),
            bytes: empty.clone(),
            object: "plans/x.bin".into(),
            salt: "salt".into(),
            planned_at: Timestamp::from_millis(planned_at),
            until: Timestamp::from_millis(9),
            asks: [Side::Customer].into(),
            summary: PlanSummary::default(),
            policies: empty,
        }
    }

    #[test]
    fn a_later_plan_of_the_same_job_replaces_a_plan() {
        let older = record("net", 5);
        let replaces = |other: &PlanRecord| {
            let (bytes, plan) = other.to_bytes().unwrap();
            replacement(&older, &record_object(&plan), &bytes) == Some(plan)
        };

        let found = [record("net", 6), record("net", 5), record("net", 4), record("web", 6)].map(|one| replaces(&one));

        assert_eq!(found, [true, false, false, false]);
    }

    #[test]
    fn an_object_that_is_not_named_by_its_digest_replaces_nothing() {
        let (older, forged) = (record("net", 5), record("net", 6));
        let (bytes, plan) = forged.to_bytes().unwrap();

        assert_eq!(replacement(&older, &record_object(&Digest::of(b"other")), &bytes), None);
        assert_eq!(replacement(&older, &record_object(&plan), &[&bytes[..], &b" "[..]].concat()), None);
        assert_eq!(replacement(&older, &record_object(&Digest::of(b"{}")), b"{}"), None);
    }
}
