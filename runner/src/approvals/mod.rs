//! Approvals of plans. Between the policies and the apply of a job, this decides who has to approve the plan; a plan that waits
//! is kept in the customer's bucket under its digest, and only a later order that names this digest applies it.

mod changes;
pub mod decision;
pub mod plan_store;

use std::collections::BTreeSet;

use freehold_protocol::approval::{
    ApprovalRule, ApproveChanges, ChangeKind, OrderApproval, PlanRecord, PlanSummary, PlannedChange, ProposedPlan,
    Side, approval_object, record_object, use_object,
};
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::digest::hex;
use freehold_protocol::limits::APPROVAL_SECS;
use freehold_protocol::order::Work;
use freehold_protocol::policy::PolicyResult;
use freehold_protocol::{Digest, canonical};
use serde_json::Value;

use crate::kinds::bucket::JobBucket;
use crate::kinds::failure::Failure;
use crate::kinds::result::{sdk_config, until_stopped};
use crate::work::job::Job;
pub use changes::of_plan;
pub(crate) use changes::{of_cluster, of_hooks};
pub use decision::Facts;
use decision::{Found, NotApplied, Present, Use};

/// Who may have to approve the plan of a job, before the plan is known.
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

/// What is known of the plan that the order names.
#[derive(Debug)]
pub enum Recalled {
    /// The order names no plan.
    Nothing,
    /// This plan was approved, and what it was made from is as it was.
    Plan(Box<PlanRecord>),
    /// Another plan was approved, and something has moved on.
    MovedOn(String),
}

impl Asked {
    /// Returns whether anybody may have to approve the plan. A plan that changes nothing is not applied then.
    pub fn is_any(self) -> bool {
        self.vendor.is_some() || self.customer != ApproveChanges::None
    }

    /// Returns who has to approve a plan with this summary, about which the policies said this.
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

/// Returns who may have to approve the plan of the job.
///
/// # Errors
/// A failure when the customer's stack cannot be read.
pub async fn asked(job: &Job) -> Result<Asked, Failure> {
    let customer =
        until_stopped(job, async { job.plans.customer_asks(&job.order).await.map_err(Failure::new) }).await?;
    Ok(Asked { vendor: job.order.approval, customer })
}

/// Returns the plan that the order names, if it may be applied as far as can be seen without its bytes.
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
        Err(NotApplied::MovedOn(why)) => {
            job.log.line(&format!("{why}: this is a new plan, which needs an approval of its own"));
            Ok(Recalled::MovedOn(why))
        }
        Err(NotApplied::Refused(reason)) => Err(Failure::NotApproved { reason }),
    }
}

/// Decides about a plan that each order makes anew: an approval counts while `document`, which is everything that is applied, stays
/// the same.
///
/// # Errors
/// As [`settle`].
pub(crate) async fn settle_again(
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
    let text =
        canonical::to_vec(document).map_err(|error| Failure::because("the plan has no canonical form", &error))?;
    let (bytes, object) = (Digest::of(&text), format!("plans/{}/{}.plan.json", job.order.job, job.fence));
    let bucket = JobBucket::of(job, &sdk_config(job).await)?;
    until_stopped(job, bucket.put(&object, text)).await?;
    Box::pin(settle(job, asked, Made { changes, bytes, object, facts }, recalled)).await
}

/// Decides about work without a plan of its own: it is approved as a whole, by the digest of everything that it executes.
///
/// # Errors
/// As [`settle`].
pub(crate) async fn settle_whole(job: &Job) -> Result<(), Failure> {
    let (address, change) = match &job.order.work {
        Work::Action(work) => (format!("action {}", work.action), ChangeKind::Run),
        Work::KubernetesJob(work) => (format!("program of {}", work.component), ChangeKind::Run),
        Work::CopySecrets(_) => ("copies of secrets".to_owned(), ChangeKind::Run),
        Work::ContainerImage(work) => {
            (format!("image {} of {}", work.artifact.digest, work.component), ChangeKind::Create)
        }
        Work::Upgrade(work) => (format!("the runner, by version {}", work.version), ChangeKind::Run),
        // These have a plan, or change nothing.
        Work::TerraformModule(_)
        | Work::Sandbox(_)
        | Work::Pulumi(_)
        | Work::PulumiSandbox(_)
        | Work::CloudformationStack(_)
        | Work::HelmChart(_)
        | Work::KubernetesManifest(_)
        | Work::Remove(_)
        | Work::Build(_)
        | Work::Preflight(_)
        | Work::Leftovers(_)
        | Work::Health(_) => return Ok(()),
    };
    let asked = asked(job).await?;
    let changes = vec![PlannedChange { address, kind: String::new(), change }];
    let work = serde_json::to_value(&job.order.work)
        .map_err(|error| Failure::because("the work has no canonical form", &error))?;
    // The templates of the work are rendered from these.
    let inputs = serde_json::to_value(&job.order.context)
        .map_err(|error| Failure::because("the values have no canonical form", &error))?;
    settle_again(job, asked, changes, (&work, inputs)).await
}

/// Decides whether the plan may be applied now. Policies were asked about it before.
///
/// # Errors
/// [`Failure::Waits`] when somebody has to approve the plan, [`Failure::NotApproved`] when somebody rejected it, and other
/// failures.
pub async fn settle(job: &Job, asked: Asked, made: Made, recalled: Recalled) -> Result<(), Failure> {
    let results = job.policies.results();
    let policies = digest(&results)?;
    let summary = PlanSummary::of(redacted(job, made.changes));
    let asks = asked.needed(&summary, &results);
    let instead = match (recalled, &job.order.approved) {
        (Recalled::Plan(record), Some(named)) => {
            let word = until_stopped(job, get(job, &approval_object(&named.plan))).await?;
            let now = Present { bytes: &made.bytes, policies: &policies, asks: &asks };
            match decision::agreed(&record, named, &now, word.as_deref()) {
                Ok(customer) => return apply(job, &record, named, (asks, customer)).await,
                Err(NotApplied::Refused(reason)) => return Err(Failure::NotApproved { reason }),
                Err(NotApplied::MovedOn(why)) => Some(why),
            }
        }
        (Recalled::MovedOn(why), _) => Some(why),
        (Recalled::Plan(_) | Recalled::Nothing, _) => None,
    };
    if asks.is_empty() {
        return Ok(());
    }
    let made = Made { changes: Vec::new(), ..made };
    propose(job, (made, summary), (asks, policies), instead).await
}

/// Notes that this order applies the approved plan, before it does.
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

/// Keeps the plan, and ends the attempt: the plan waits for its approval.
async fn propose(
    job: &Job,
    (made, summary): (Made, PlanSummary),
    (asks, policies): (BTreeSet<Side>, Digest),
    instead: Option<String>,
) -> Result<(), Failure> {
    let order = &job.order;
    let unkept = |error| Failure::because("cannot keep the plan for its approval", &error);
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
            "the system gave no random bytes, so the plan cannot be kept for its approval; start the job again",
        )
    })?;
    Ok(hex(&random))
}

/// Returns the changes without secrets. What is cut later would not be recognized any more.
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
        .map_err(|error| Failure::because("what the policies said has no canonical form", &error))
}

async fn get(job: &Job, object: &str) -> Result<Option<Vec<u8>>, Failure> {
    job.plans.get(object).await.map_err(Failure::new)
}

async fn put(job: &Job, object: &str, bytes: Vec<u8>) -> Result<(), Failure> {
    job.plans.put(object, bytes).await.map_err(Failure::new)
}

#[cfg(test)]
mod tests {
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
