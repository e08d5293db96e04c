//! Approvals of plans. After a job has evaluated the policies, and before it applies its plan, this decides who has to
//! approve the plan. A plan that waits is stored in the customer's bucket under its digest. Only an order that names
//! this digest applies it.

mod changes;
pub mod decision;
pub mod plan_store;

use std::collections::BTreeSet;

use freehold_protocol::approval::{
    ApprovalRule, ApproveChanges, OrderApproval, PlanRecord, PlanSummary, PlannedChange, ProposedPlan, Side,
    approval_object, record_object, use_object,
};
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::digest::hex;
use freehold_protocol::limits::APPROVAL_SECS;
use freehold_protocol::order::ApprovalSubject;
use freehold_protocol::policy::PolicyResult;
use freehold_protocol::{Digest, canonical};
use serde_json::Value;

use crate::job::bucket::JobBucket;
use crate::job::failure::{Failure, until_stopped};
use crate::job::{Job, sdk_config};
pub use changes::of_plan;
pub(crate) use changes::{kind as kind_of_change, of_cluster, of_hooks};
pub use decision::Facts;
use decision::{Found, NotApplied, Present, Use};

/// The approvals that the order and the customer's stack require. They are known before the plan is made.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    vendor: Option<ApprovalRule>,
    customer: ApproveChanges,
}

/// A plan as its kind made it.
#[derive(Debug)]
pub struct Made {
    pub changes: Vec<PlannedChange>,
    /// The digest of its bytes, and the object of the install's bucket that holds them.
    pub bytes: Digest,
    pub object: String,
    pub facts: Facts,
}

/// The facts that are known about the plan that the order names.
#[derive(Debug)]
pub enum Recalled {
    /// The order names no plan.
    Nothing,
    /// This plan was approved, and nothing that it was made from has changed since.
    Plan(Box<PlanRecord>),
    /// A plan was approved, but may not be applied any more, for this reason.
    Outdated(String),
}

impl Asked {
    /// Returns whether a side may have to approve the plan. If so, a plan that changes nothing is not applied.
    pub fn is_any(self) -> bool {
        self.vendor.is_some() || self.customer != ApproveChanges::None
    }

    /// Returns which sides have to approve a plan with this summary and these results of the policies.
    pub fn needed(self, summary: &PlanSummary, policies: &[PolicyResult]) -> BTreeSet<Side> {
        let passes = policies.iter().all(|one| !one.stops() && one.warn.is_empty());
        let vendor = match self.vendor {
            None => false,
            Some(ApprovalRule::Prompt) => true,
            Some(ApprovalRule::PromptUnlessPoliciesPass) => !passes,
        };
        let customer = match self.customer {
            ApproveChanges::None => false,
            ApproveChanges::Destructive => summary.is_destructive(),
            ApproveChanges::All => true,
        };
        [(vendor, Side::Vendor), (customer, Side::Customer)]
            .into_iter()
            .filter_map(|(asks, side)| asks.then_some(side))
            .collect()
    }
}

/// Returns the approvals that the order and the customer's stack require.
///
/// # Errors
/// A failure when the customer's stack cannot be read.
pub async fn asked(job: &Job) -> Result<Asked, Failure> {
    let customer =
        until_stopped(job, async { job.plans.customer_asks(&job.order).await.map_err(Failure::new) }).await?;
    Ok(Asked { vendor: job.order.approval, customer })
}

/// Returns the plan that the order names, if the runner may apply it as far as everything except its bytes shows. The
/// bytes are compared later.
///
/// # Errors
/// [`Failure::NotApproved`] when the approval does not count for this order.
pub async fn recall(job: &Job, facts: &Facts) -> Result<Recalled, Failure> {
    let Some(named) = &job.order.approved else { return Ok(Recalled::Nothing) };
    let (record, used) = until_stopped(job, async {
        Ok((get(job, &record_object(&named.plan)).await?, get(job, &use_object(&named.plan)).await?))
    })
    .await?;
    let found = Found { record: record.as_deref(), used: used.as_deref(), now: job.plans.now() };
    match decision::recalled(&job.order, named, facts, found) {
        Ok(record) => Ok(Recalled::Plan(Box::new(record))),
        Err(NotApplied::Outdated(why)) => {
            job.log.line(&format!("{why}; the job makes a new plan, which needs its own approval"));
            Ok(Recalled::Outdated(why))
        }
        Err(NotApplied::Refused(reason)) => Err(Failure::NotApproved { reason }),
    }
}

/// Requires an approval of a plan that each order makes again. `document` contains everything that is applied. An
/// approval counts while the document stays the same.
///
/// # Errors
/// As [`require_plan_approval`].
pub(crate) async fn require_document_approval(
    job: &Job,
    asked: Asked,
    changes: Vec<PlannedChange>,
    (document, inputs): (&Value, Value),
) -> Result<(), Failure> {
    if !asked.is_any() && job.order.approved.is_none() {
        return Ok(());
    }
    let facts = Facts { inputs, state: String::new() };
    let recalled = Box::pin(recall(job, &facts)).await?;
    let text = canonical::to_vec(&canonical::with_long_integers_as_text(document.clone()))
        .map_err(|error| Failure::because("could not write the plan as canonical JSON", &error))?;
    let (bytes, object) = (Digest::of(&text), format!("plans/{}/{}.plan.json", job.order.job, job.fence));
    let bucket = JobBucket::of(job, &sdk_config(job).await)?;
    until_stopped(job, bucket.put(&object, text)).await?;
    Box::pin(require_plan_approval(job, asked, Made { changes, bytes, object, facts }, recalled)).await
}

/// Requires an approval of work that has no plan. Such work is approved as a whole, by the digest of everything that it
/// executes.
///
/// # Errors
/// As [`require_plan_approval`].
pub(crate) async fn require_work_approval(job: &Job) -> Result<(), Failure> {
    let (address, change) = match job.order.work.approval_subject() {
        ApprovalSubject::Whole { address, change } => (address, change),
        ApprovalSubject::Plan | ApprovalSubject::Nothing => return Ok(()),
    };
    let asked = asked(job).await?;
    let changes = vec![PlannedChange { address, kind: String::new(), change }];
    let work = serde_json::to_value(&job.order.work)
        .map_err(|error| Failure::because("could not write the work as canonical JSON", &error))?;
    // The templates of the work are rendered from these values.
    let inputs = serde_json::to_value(&job.order.context)
        .map_err(|error| Failure::because("could not write the values as canonical JSON", &error))?;
    require_document_approval(job, asked, changes, (&work, inputs)).await
}

/// Requires an approval of the plan, if its order or the customer's stack requires an approval. The policies were
/// evaluated before.
///
/// # Errors
/// [`Failure::Waits`] when somebody has to approve the plan, [`Failure::NotApproved`] when somebody rejected it, and other
/// failures.
pub async fn require_plan_approval(job: &Job, asked: Asked, made: Made, recalled: Recalled) -> Result<(), Failure> {
    let results = job.policies.results();
    let policies = digest(&results)?;
    let summary = PlanSummary::of(redacted(job, made.changes));
    let asks = asked.needed(&summary, &results);
    let instead = match (recalled, &job.order.approved) {
        (Recalled::Plan(record), Some(named)) => {
            let decision = until_stopped(job, get(job, &approval_object(&named.plan))).await?;
            let now = Present { bytes: &made.bytes, policies: &policies, asks: &asks };
            match decision::agreed(&record, named, &now, decision.as_deref()) {
                Ok(customer) => return apply(job, &record, named, (asks, customer)).await,
                Err(NotApplied::Refused(reason)) => return Err(Failure::NotApproved { reason }),
                Err(NotApplied::Outdated(why)) => Some(why),
            }
        }
        (Recalled::Outdated(why), _) => Some(why),
        (Recalled::Plan(_) | Recalled::Nothing, _) => None,
    };
    if asks.is_empty() {
        return Ok(());
    }
    let made = Made { changes: Vec::new(), ..made };
    propose(job, (made, summary), (asks, policies), instead).await
}

/// Records that this order applies the approved plan. Must run before the plan is applied.
async fn apply(
    job: &Job,
    record: &PlanRecord,
    named: &OrderApproval,
    (asks, customer): (BTreeSet<Side>, Option<String>),
) -> Result<(), Failure> {
    let this = Use { job: job.order.job.to_string(), dispatch: job.order.dispatch };
    let text = serde_json::to_vec(&this).map_err(|error| Failure::because("cannot note the use of a plan", &error))?;
    let event = AuditEvent::Approval {
        job: job.order.job.clone(),
        fence: job.fence,
        component: job.order.work.component().cloned(),
        plan: named.plan.clone(),
        bytes: record.bytes.clone(),
        until: record.until,
        stage: "applied".to_owned(),
        asks,
        summary: record.summary.clone(),
        vendor: named.by.clone(),
        customer: customer.clone(),
    };
    until_stopped(job, async {
        put(job, &use_object(&named.plan), text).await?;
        job.plans.record(event).await.map_err(Failure::new)
    })
    .await?;
    let by = [named.by.as_ref().map(ToString::to_string), customer].into_iter().flatten().collect::<Vec<_>>();
    job.log.line(&format!("plan `{}` is approved by {}", named.plan, by.join(" and ")));
    Ok(())
}

/// Stores the plan, which waits for its approval, and ends the attempt.
async fn propose(
    job: &Job,
    (made, summary): (Made, PlanSummary),
    (asks, policies): (BTreeSet<Side>, Digest),
    instead: Option<String>,
) -> Result<(), Failure> {
    let order = &job.order;
    let unkept = |error| Failure::because("cannot store the plan for its approval", &error);
    let salt = salt()?;
    let now = job.plans.now();
    let record = PlanRecord {
        tenant: order.tenant.clone(),
        install: order.install.clone(),
        job: order.job.clone(),
        changes: order.work.changes(),
        removal: decision::is_removal(order),
        work: decision::work_digest(order).map_err(unkept)?,
        inputs: decision::inputs_digest(&made.facts.inputs, &salt).map_err(unkept)?,
        state: made.facts.state,
        bytes: made.bytes,
        object: made.object,
        salt,
        planned_at: now,
        until: now.plus_secs(APPROVAL_SECS),
        asks: asks.clone(),
        summary: summary.clone(),
        policies: policies.clone(),
    };
    let (bytes, plan) = record.to_bytes().map_err(unkept)?;
    let event = AuditEvent::Approval {
        job: order.job.clone(),
        fence: job.fence,
        component: order.work.component().cloned(),
        plan: plan.clone(),
        bytes: record.bytes.clone(),
        until: record.until,
        stage: "asked".to_owned(),
        asks: asks.clone(),
        summary: summary.clone(),
        vendor: None,
        customer: None,
    };
    until_stopped(job, async {
        put(job, &record_object(&plan), bytes).await?;
        job.plans.record(event).await.map_err(Failure::new)
    })
    .await?;
    let whom: Vec<&str> = asks.iter().map(|side| side.as_str()).collect();
    job.log.line(&format!("plan `{plan}` waits for the approval of the {}", whom.join(" and the ")));
    Err(Failure::Waits(Box::new(ProposedPlan { plan, until: record.until, asks, summary, policies, instead })))
}

fn salt() -> Result<String, Failure> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|_| {
        Failure::new(
            "the system gave no random bytes, so the plan cannot be stored for its approval; start the job again",
        )
    })?;
    Ok(hex(&random))
}

/// Returns the changes without secrets. Must run before the texts are shortened: a part of a secret would not be
/// recognized.
fn redacted(job: &Job, changes: Vec<PlannedChange>) -> Vec<PlannedChange> {
    let redacted = |one: PlannedChange| PlannedChange {
        address: job.log.redacted(&one.address),
        kind: job.log.redacted(&one.kind),
        ..one
    };
    changes.into_iter().map(redacted).collect()
}

fn digest(results: &[PolicyResult]) -> Result<Digest, Failure> {
    canonical::digest(&results)
        .map_err(|error| Failure::because("the results of the policies have no canonical form", &error))
}

async fn get(job: &Job, object: &str) -> Result<Option<Vec<u8>>, Failure> {
    job.plans.get(object).await.map_err(Failure::new)
}

async fn put(job: &Job, object: &str, bytes: Vec<u8>) -> Result<(), Failure> {
    job.plans.put(object, bytes).await.map_err(Failure::new)
}

#[cfg(test)]
mod tests {
    use freehold_protocol::approval::ChangeKind;
    use freehold_protocol::policy::PolicyOrigin;

    use super::*;

    fn summary(change: ChangeKind) -> PlanSummary {
        PlanSummary::of(vec![PlannedChange { address: "a".into(), kind: String::new(), change }])
    }

    fn warning() -> PolicyResult {
        PolicyResult {
            name: "a".into(),
            origin: PolicyOrigin::Vendor,
            contents: Digest::of(b""),
            deny: Vec::new(),
            warn: vec!["w".into()],
            failed: None,
        }
    }

    #[test]
    fn both_sides_are_asked_where_both_want_it() {
        let needed = |vendor, customer, change| {
            Asked { vendor, customer }.needed(&summary(change), &[]).into_iter().collect::<Vec<_>>()
        };
        let prompt = Some(ApprovalRule::Prompt);

        assert_eq!(needed(None, ApproveChanges::None, ChangeKind::Delete), []);
        assert_eq!(needed(prompt, ApproveChanges::None, ChangeKind::Create), [Side::Vendor]);
        assert_eq!(needed(prompt, ApproveChanges::All, ChangeKind::Create), [Side::Vendor, Side::Customer]);
        assert_eq!(needed(None, ApproveChanges::Destructive, ChangeKind::Update), []);
        assert_eq!(needed(None, ApproveChanges::Destructive, ChangeKind::Replace), [Side::Customer]);
    }

    #[test]
    fn a_plan_that_passes_every_policy_waits_for_nobody_at_the_vendor() {
        let asked = Asked { vendor: Some(ApprovalRule::PromptUnlessPoliciesPass), customer: ApproveChanges::None };
        let plan = summary(ChangeKind::Create);

        assert!(asked.needed(&plan, &[]).is_empty());
        assert!(asked.needed(&plan, &[PolicyResult { warn: Vec::new(), ..warning() }]).is_empty());
        assert_eq!(asked.needed(&plan, &[warning()]), [Side::Vendor].into());
    }
}
