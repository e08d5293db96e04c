//! Plans of several parts that wait at once: what people decide about them, and what was applied of them.

use anyhow::ensure;
use freehold_protocol::api::JobView;
use freehold_protocol::approval::{PlanRecord, Side, record_object};
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::{Digest, JobId};
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Install, World};

use super::content::Content;
use super::parts::Part;
use super::{approve, job_ended, object, waiting, waiting_anew};

/// A plan that waits for the vendor, and what its part had before.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) part: Part,
    pub(super) job: JobView,
    pub(super) plan: Digest,
    pub(super) before: Content,
}

/// A plan that was applied, and the digest of its bytes, as the audit log has them.
#[derive(Debug)]
pub(super) struct Applied {
    plan: Digest,
    bytes: Digest,
}

/// Starts a deploy with these options, and returns the plans of the parts that it changes once all of them wait.
pub(super) async fn deploy(
    world: &World,
    install: &Install,
    parts: &[Part],
    options: &[&str],
) -> anyhow::Result<Vec<Waiting>> {
    let mut before = Vec::new();
    for part in parts {
        before.push(part.content(world, install).await?);
    }
    world.vendor(&[&["deploy", "globex", "--no-wait"][..], options].concat()).await?;
    all_wait(world, install, parts, before).await
}

/// Returns the plans of these parts once all of them wait for the vendor. The parts still have what they had `before`.
pub(super) async fn all_wait(
    world: &World,
    install: &Install,
    parts: &[Part],
    before: Vec<Content>,
) -> anyhow::Result<Vec<Waiting>> {
    let mut plans = Vec::new();
    for (part, before) in parts.iter().zip(before) {
        let (job, view) = waiting(world, part.node()).await?;
        ensure!(view.waits_for == [Side::Vendor] && job.state == "waiting_for_approval", "{job:?}");
        plans.push(Waiting { part: *part, job, plan: view.proposed.plan, before });
    }
    for one in &plans {
        one.changed_nothing(world, install).await?;
    }
    Ok(plans)
}

/// Returns the plans that were applied with an approval, oldest first.
pub(super) async fn applied(world: &World, install: &Install) -> anyhow::Result<Vec<Applied>> {
    // While a record is written, nobody can read it.
    until("the audit log can be read", SOON, || async {
        let applied = read_applied(world, install).await;
        Ok(applied.inspect_err(|error| println!("the audit log cannot be read: {error:#}")).ok())
    })
    .await
}

async fn read_applied(world: &World, install: &Install) -> anyhow::Result<Vec<Applied>> {
    let applied = world.audit_records(install).await?.into_iter().filter_map(|record| match record.event {
        AuditEvent::Approval { plan, bytes, stage, .. } if stage == "applied" => Some(Applied { plan, bytes }),
        _ => None,
    });
    Ok(applied.collect())
}

impl Waiting {
    /// Returns the id of the job that waits.
    pub(super) fn job(&self) -> &JobId {
        &self.job.job
    }

    /// Checks that the part has what it had before the plan.
    pub(super) async fn changed_nothing(&self, world: &World, install: &Install) -> anyhow::Result<()> {
        let now = self.part.content(world, install).await?;
        ensure!(now == self.before, "`{}` has {now:?}, and had {:?}", self.part.node(), self.before);
        Ok(())
    }

    pub(super) async fn approve(&self, world: &World) -> anyhow::Result<()> {
        approve(world, &self.job, &self.plan).await
    }

    /// Approves another plan instead, which is refused with both plans.
    pub(super) async fn refuses(&self, world: &World, other: &Digest) -> anyhow::Result<()> {
        let words = ["job", "approve", self.job().as_str(), "--plan", other.as_str()];
        let refused = world.run(&words).await?.ended_with(4)?;
        let reason = format!("waits for the approval of plan `{}`, not of `{other}`", self.plan);
        ensure!(refused.contains(&reason), "{refused}");
        Ok(())
    }

    /// Rejects the plan, which ends the job: it says who did so and why, and has changed nothing.
    pub(super) async fn reject(&self, world: &World, install: &Install) -> anyhow::Result<()> {
        let words = ["job", "reject", self.job().as_str(), "--plan", self.plan.as_str(), "--reason", "not today"];
        world.vendor(&words).await?;
        let job = job_ended(world, self.job()).await?;
        let says = job.reason.contains("(vendor) rejected the plan: not today; nothing was changed");
        ensure!(job.state == "blocked" && says, "{job:?}");
        self.changed_nothing(world, install).await
    }

    /// Returns the plan that the job makes instead of this one, once it waits.
    pub(super) async fn planned_anew(&self, world: &World, install: &Install) -> anyhow::Result<Self> {
        let (job, view) = waiting_anew(world, self.part.node(), &self.plan).await?;
        let why = view.proposed.instead.unwrap_or_default();
        ensure!(why.contains(self.part.why_anew()), "`{}`: {why}", self.part.node());
        let before = self.part.content(world, install).await?;
        Ok(Self { part: self.part, job, plan: view.proposed.plan, before })
    }

    /// Waits until the job has succeeded, and checks that its part was changed once, to `value`.
    pub(super) async fn succeeds_once(&self, world: &World, install: &Install, value: &str) -> anyhow::Result<JobView> {
        let job = job_ended(world, self.job()).await?;
        ensure!(job.state == "succeeded", "{job:?}");
        let ends = job.history.iter().filter(|record| record.to == "succeeded").count();
        let now = self.part.content(world, install).await?;
        let wanted = Content { value: Some(value.to_owned()), changes: self.before.changes + 1 };
        ensure!(ends == 1 && now == wanted, "`{}` has {now:?}, not {wanted:?}: {job:?}", self.part.node());
        Ok(job)
    }

    /// Checks that an order has applied the plan, and that it has the bytes which were approved.
    pub(super) async fn was_applied_once(
        &self,
        world: &World,
        install: &Install,
        applied: &[Applied],
    ) -> anyhow::Result<()> {
        let record = object(world, install, &record_object(&self.plan)).await?;
        ensure!(Digest::of(&record) == self.plan, "the record of plan {} has changed", self.plan);
        let record: PlanRecord = serde_json::from_slice(&record)?;
        let bytes = Digest::of(&object(world, install, &record.object).await?);
        let of_plan: Vec<&Digest> = applied.iter().filter(|one| one.plan == self.plan).map(|one| &one.bytes).collect();
        ensure!(record.bytes == bytes && of_plan == [&bytes], "{}: {record:?}, {of_plan:?}", self.part.node());
        Ok(())
    }

    /// Checks that no order has applied the plan.
    pub(super) fn was_not_applied(&self, applied: &[Applied]) -> anyhow::Result<()> {
        ensure!(applied.iter().all(|one| one.plan != self.plan), "plan {} was applied: {applied:?}", self.plan);
        Ok(())
    }
}
