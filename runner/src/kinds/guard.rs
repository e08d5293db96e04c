//! Evaluates the policies that guard a job on its plan, and stops the job if one of them denies it.

use freehold_policy::input::{self, Operation};
use freehold_protocol::Digest;
use freehold_protocol::policy::{PolicyOrigin, PolicyResult};
use serde_json::{Value, json};

use crate::approvals;
use crate::job::bucket::JobBucket;
use crate::job::failure::{Failure, until_stopped};
use crate::job::{Job, sdk_config};
use crate::kubernetes::{Change, Id, Object, Plan};
use crate::policies;

/// The maximum number of warnings in the log of a job.
const LINES: usize = 50;

/// Evaluates the policies on a plan in the JSON form of Terraform's plans.
pub(super) async fn plan(job: &Job, plan: Value) -> Result<(), Failure> {
    Box::pin(ask(job, vec![input::plan(plan, &policies::about(job))], &[])).await
}

/// Evaluates the policies on changes of resources, each with its address, type, actions and attributes, as a plan has
/// them.
pub(super) async fn changes(job: &Job, changes: Vec<Value>) -> Result<(), Failure> {
    plan(job, json!({ "resource_changes": changes })).await
}

/// Returns one change of a resource in the form of a plan.
pub(super) fn change(address: &str, kind: &str, actions: &[&str], before: &Value, after: &Value) -> Value {
    let change = json!({ "actions": actions, "before": before, "after": after, "after_unknown": {} });
    json!({ "address": address, "type": kind, "change": change })
}

/// Evaluates the policies on the objects that a plan for a cluster creates, updates, keeps and deletes. `more` are
/// objects that are made outside of the plan, such as hooks of a chart. `known` are results of policies that the
/// cluster evaluates.
pub(super) async fn objects(
    job: &Job,
    plan: &Plan,
    objects: &[Object],
    (more, known): (&[Value], &[PolicyResult]),
) -> Result<(), Failure> {
    let about = policies::about(job);
    let mut documents = Vec::new();
    for (change, id) in &plan.changes {
        let object = objects.iter().find(|object| object.id.is_same_object(id)).map(|object| &object.value);
        let review = match (change, object) {
            (Change::Create, object) => input::review(Operation::Create, object, None, &about),
            (Change::Update | Change::Keep, Some(object)) => {
                input::review(Operation::Update, Some(object), None, &about)
            }
            (Change::Delete, _) => input::review(Operation::Delete, None, Some(&named(id)), &about),
            (Change::Update | Change::Keep, None) | (Change::Stay, _) => continue,
        };
        documents.push(review);
    }
    documents.extend(more.iter().map(|object| input::review(Operation::Create, Some(object), None, &about)));
    Box::pin(ask(job, documents, known)).await
}

/// Logs the plan of a removal from a cluster. Evaluates the policies, and requires an approval from those who have to
/// approve the plan. A plan that deletes objects with data fails, unless `destroy_data` permits it.
pub(super) async fn removal(job: &Job, plan: &Plan, destroy_data: bool) -> Result<(), Failure> {
    job.log.line(&format!("plan: {plan}"));
    plan.lines().for_each(|line| job.log.line(&line));
    let held = plan.deleted_data();
    if !destroy_data && !held.is_empty() {
        return Err(Failure::destroys_data(&held));
    }
    objects(job, plan, &[], (&[], &[])).await?;
    let (asked, changes) = (approvals::asked(job).await?, approvals::of_cluster(plan));
    Box::pin(approvals::require_document_approval(job, asked, changes.clone(), (&json!(changes), Value::Null))).await
}

fn named(id: &Id) -> Value {
    json!({ "apiVersion": id.api_version, "kind": id.kind,
        "metadata": { "name": id.name, "namespace": id.namespace } })
}

/// Evaluates the policies for an image. `metadata` contains the facts of the tenant's signed statement about the image.
pub(super) async fn image(job: &Job, name: &str, digest: &Digest, metadata: Value) -> Result<(), Failure> {
    let (name, tag) = match name.split_once('@').map_or(name, |(name, _)| name).rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        Some(_) | None => (name, ""),
    };
    Box::pin(ask(job, vec![input::image(name, tag, digest.as_str(), metadata, &policies::about(job))], &[])).await
}

// Callers box this future, because the futures of clients are large and a job's future contains many of them.
async fn ask(job: &Job, documents: Vec<Value>, known: &[PolicyResult]) -> Result<(), Failure> {
    let asked = until_stopped(job, async { policies::ask(job, documents).await.map_err(Failure::new) });
    let (mut results, full) = asked.await?;
    results.extend_from_slice(known);
    if results.is_empty() {
        return Ok(());
    }
    say(job, &results);
    keep(job, full).await?;
    let recorded = until_stopped(job, async { Ok(job.policies.record(results.clone()).await) });
    recorded.await?.map_err(|why| {
        Failure::new(format!(
            "the results of the policies cannot be written into the audit log: {why}; nothing was changed"
        ))
    })?;
    match results.iter().find(|one| one.stops()) {
        Some(_) => Err(Failure::new(reason(&results))),
        None => Ok(()),
    }
}

fn say(job: &Job, results: &[PolicyResult]) {
    let silent = results.iter().filter(|one| !one.stops() && one.warn.is_empty()).count();
    job.log.line(&format!("policies: {} evaluated, {silent} of them without a message", results.len()));
    let warnings = results.iter().flat_map(|one| one.warn.iter().map(move |message| (one, message)));
    for (one, message) in warnings.take(LINES) {
        job.log.line(&format!("  policy `{}` ({}) warns: {message}", one.name, one.origin.describe()));
    }
}

/// Stores the results of the policies beside the plan, with all values and the policies' texts.
async fn keep(job: &Job, full: Value) -> Result<(), Failure> {
    if job.config.bucket.is_none() {
        return Ok(());
    }
    let bucket = JobBucket::of(job, &sdk_config(job).await)?;
    let key = format!("plans/{}/{}.policies.json", job.order.job, job.fence);
    until_stopped(job, bucket.put(&key, full.to_string())).await
}

/// Returns why the job stops: each policy that stops it, with its reasons, and the way out.
fn reason(results: &[PolicyResult]) -> String {
    let of = |one: &PolicyResult| {
        let (name, origin) = (&one.name, one.origin.describe());
        match &one.failed {
            Some(why) => format!("policy `{name}` ({origin}) cannot be evaluated: {why}"),
            None => format!("policy `{name}` ({origin}) denies this: {}", one.deny.join(", ")),
        }
    };
    let stopping: Vec<&PolicyResult> = results.iter().filter(|one| one.stops()).collect();
    let reasons: Vec<String> = stopping.iter().map(|one| of(one)).collect();
    let mut ways: Vec<&str> = stopping.iter().map(|one| way_out(one.origin)).collect();
    ways.dedup();
    format!("{}; nothing was changed; {}", reasons.join("; "), ways.join(", or "))
}

const fn way_out(origin: PolicyOrigin) -> &'static str {
    match origin {
        PolicyOrigin::Vendor => "change the component or the policy, and deploy the new version",
        PolicyOrigin::Customer => "change the component, or ask the customer to change the policy in their bucket",
        PolicyOrigin::BuiltIn => "change the component, or ask the customer to loosen the policy in the install stack",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(name: &str, origin: PolicyOrigin, deny: &[&str], failed: Option<&str>) -> PolicyResult {
        PolicyResult {
            name: name.into(),
            origin,
            contents: Digest::of(b""),
            deny: deny.iter().map(ToString::to_string).collect(),
            warn: vec!["w".into()],
            failed: failed.map(str::to_owned),
        }
    }

    #[test]
    fn the_reason_names_each_policy_that_stops_the_job() {
        let results = [
            result("a", PolicyOrigin::Vendor, &[], None),
            result("policies/b.rego", PolicyOrigin::Customer, &["x", "y"], None),
            result("no-strangers", PolicyOrigin::BuiltIn, &[], Some("no-strangers:1:2: why")),
        ];

        assert_eq!(
            reason(&results),
            "policy `policies/b.rego` (of the customer) denies this: x, y; policy `no-strangers` (built in) cannot be evaluated: \
             no-strangers:1:2: why; nothing was changed; change the component, or ask the customer to change the policy in \
             their bucket, or change the component, or ask the customer to loosen the policy in the install stack"
        );
    }
}
