//! `helm_chart`: installs or upgrades a release of a chart with the program `helm`, which runs in the job's box.
//!
//! A redelivery starts again from the beginning: it makes a new plan and upgrades. Before that, it recovers a release
//! that a killed attempt left `pending-*` ([`releases`] decides how). It never breaks Helm's own lock.

pub(super) mod drift;
mod labels;
mod plan;
mod program;
mod release;
mod releases;
mod stored_release;
mod values;

use std::time::{Duration, Instant};

use freehold_protocol::Digest;
use freehold_protocol::order::{CHART_LAYER, InstallChart, RemovePart};
use serde_json::{Value, json};

use crate::approvals;
use crate::job::bucket::JobBucket;
use crate::job::failure::{Failure, until_stopped};
use crate::job::{Job, sdk_config};
use crate::kinds::attempt_mark::AttemptMark;
use crate::kinds::cluster_images;
use crate::kinds::cluster_policies::{self, ClusterPolicies, Place};
use crate::kinds::guard;
use crate::kinds::result::{Done, cluster_access, job_aws, skipped};
use crate::kinds::sync_artifact::{fetch_layer, sync_artifact};
use crate::kinds::templates::Templates;
use crate::kubernetes::{Api, Object};
use crate::state_objects;
use program::Helm;
use release::{CHART, Release};
use releases::{Recovery, Revision};
pub(super) use stored_release::newest;

/// The part of the attempt's time limit that is reserved for the work after Helm.
const REST: Duration = Duration::from_secs(30);
/// The minimum timeout for Helm, even when less time is left.
const LEAST: Duration = Duration::from_secs(30);

/// Installs or upgrades the release.
pub(super) async fn run(job: &Job, work: &InstallChart) -> Result<Done, Failure> {
    change(job, work, Goal::Deploy).await
}

/// Uninstalls the release. The namespace stays, and so do the objects that the chart marks with the policy `keep`.
pub(super) async fn remove(job: &Job, work: &InstallChart, how: &RemovePart) -> Result<Done, Failure> {
    change(job, work, Goal::Remove { data: how.destroy_data, policies: how.removes_policies }).await
}

/// The goal of a job for the release.
#[derive(Debug, Clone, Copy)]
enum Goal {
    Deploy,
    Remove {
        /// Whether objects that hold data may be deleted.
        data: bool,
        /// Whether the app's policies are removed from the cluster too.
        policies: bool,
    },
}

async fn change(job: &Job, work: &InstallChart, goal: Goal) -> Result<Done, Failure> {
    let started = Instant::now();
    let bucket = JobBucket::of(job, &sdk_config(job).await)?;
    let templates = Templates::of(job);
    let release = Release::of(work, &templates)?;
    let access = cluster_access(job, &work.cluster).await?;
    let api = access.api()?;
    let aws = job_aws(job).await?;
    let helm = Helm::find(job, release, &access, &aws)?;
    helm.check_version().await?;
    let (values, registry) = match goal {
        Goal::Deploy => until_stopped(job, prepare(job, work, &templates)).await?,
        Goal::Remove { .. } => Default::default(),
    };
    let mark = state_objects::kubernetes_mark(&work.component);
    let mark = until_stopped(job, AttemptMark::take_over(job, &bucket, mark, work.component.as_str(), &[])).await?;
    let place = Place { job, api: &api, bucket: &bucket, arn: access.arn() };
    let attempt = Attempt { job, work, place, api: &api, helm: &helm, bucket: &bucket, started };
    let done = match goal {
        Goal::Deploy => attempt.deploy(&mark, &values, &registry).await,
        Goal::Remove { data, policies } => attempt.remove(&mark, data, policies).await,
    };
    aws.finish().await;
    let ended = attempt.end(&mark, done.is_ok()).await;
    match (done, ended) {
        (Ok(done), Ok(())) => Ok(done),
        (Ok(_), Err(failure)) => Err(failure.after_change()),
        (Err(failure), Ok(())) => Err(failure),
        // When the cluster does not answer any more, Helm's error names neither the cluster nor the way out.
        (Err(failure), Err(of_cluster)) => Err(failure.and(of_cluster)),
    }
}

/// Writes the chart and its values into the workspace. Returns Helm's options for the files with values, in order, and
/// the address of the install registry.
async fn prepare(job: &Job, work: &InstallChart, templates: &Templates) -> Result<(Vec<String>, String), Failure> {
    let repository = sync_artifact(job, &work.artifact).await?;
    fetch_layer(&repository, &work.artifact, CHART_LAYER, &job.workspace.join(CHART)).await?;
    Ok((values::write(job, work, templates).await?, repository.address()))
}

/// One attempt to change a release, with everything that it needs.
struct Attempt<'a> {
    job: &'a Job,
    work: &'a InstallChart,
    place: Place<'a>,
    api: &'a Api,
    helm: &'a Helm<'a>,
    bucket: &'a JobBucket,
    started: Instant,
}

impl Attempt<'_> {
    async fn deploy(&self, mark: &AttemptMark, values: &[String], registry: &str) -> Result<Done, Failure> {
        let (job, work) = (self.job, self.work);
        until_stopped(job, async {
            cluster_images::withdraw_unwanted(job, self.api).await;
            Ok(())
        })
        .await?;
        let revisions = until_stopped(job, self.revisions()).await?;
        self.recover(releases::recovery(&revisions, mark.inherits())).await?;
        let revisions = until_stopped(job, self.revisions()).await?;
        let plan = plan::make(job, work, self.helm, self.api, (values, registry), &revisions).await?;
        let policies = until_stopped(job, ClusterPolicies::compare(self.place)).await?;
        let whole = policies.plan_with(&plan.changes);
        job.log.line(&format!("plan {}: {whole}", Digest::of(plan.rendered.as_bytes())));
        whole.lines().for_each(|line| job.log.line(&line));
        let key = format!("plans/{}/{}.yaml", job.order.job, job.fence);
        until_stopped(job, self.bucket.put(&key, plan.rendered.clone())).await?;
        let held = plan.changes.deleted_data();
        if !held.is_empty() {
            return Err(Failure::deletes_data(&work.component, &held));
        }

        let is_deployed = revisions.last().is_some_and(Revision::is_deployed);
        let asked = approvals::asked(job).await?;
        // Hooks run in every upgrade, so a chart with hooks is skipped only where the config permits it.
        let is_skippable = job.order.skip_noops || (asked.is_any() && plan.hooks.is_empty());
        let is_noop = whole.is_noop() && policies.failed().is_empty();
        if is_noop && is_deployed && is_skippable {
            job.log.line(skipped(job));
            return Ok(Done { outputs: self.helm.outputs().await?, ..Done::default() });
        }
        let objects = policies.objects_with(&plan.objects);
        guard::objects(job, &whole, &objects, (&plan.hooks, policies.failed())).await?;
        let changes = [approvals::of_cluster(&whole), approvals::of_hooks(&plan.hooks)].concat();
        let document = json!({ "chart": work.artifact.digest, "rendered": plan.rendered, "changes": changes });
        let document = policies.add_to(document);
        Box::pin(approvals::require_document_approval(job, asked, changes, (&document, Value::Null))).await?;
        until_stopped(job, cluster_images::admit(job, self.api, Some(registry))).await?;
        until_stopped(job, policies.apply(self.place)).await?;
        // From here on, every failure may leave objects partly changed.
        self.upgrade(values, &plan.objects).await.map_err(Failure::after_change)
    }

    /// Upgrades the release, and sets the labels of the install on its objects.
    async fn upgrade(&self, values: &[String], objects: &[Object]) -> Result<Done, Failure> {
        self.helm.upgrade(self.work, values, self.time_left()).await?;
        until_stopped(self.job, async {
            labels::set(self.job, self.api, self.helm.release(), objects).await;
            Ok(())
        })
        .await?;
        Ok(Done { outputs: self.helm.outputs().await?, ..Done::default() })
    }

    /// Uninstalls the release, also when a killed attempt left it pending. Refuses a release that somebody else is
    /// changing.
    async fn remove(&self, mark: &AttemptMark, destroy_data: bool, removes_policies: bool) -> Result<Done, Failure> {
        let job = self.job;
        let revisions = until_stopped(job, self.revisions()).await?;
        if let refused @ Recovery::Refuse { .. } = releases::recovery(&revisions, mark.inherits()) {
            self.recover(refused).await?;
        }
        if revisions.is_empty() {
            job.log.line(&format!("release `{}` does not exist", self.helm.release().name));
            self.withdraw_policies(removes_policies).await?;
            return Ok(Done::default());
        }
        let plan = plan::removal(job, self.work, self.helm, self.api).await?;
        guard::removal(job, &plan, destroy_data).await?;
        // Removes the rule about images, which would also refuse the hooks of the uninstall. The next deploy applies
        // the rule again.
        cluster_images::withdraw(job, self.api).await;
        self.helm.uninstall(self.time_left()).await.map_err(Failure::after_change)?;
        self.withdraw_policies(removes_policies).await?;
        Ok(Done::default())
    }

    async fn withdraw_policies(&self, removes: bool) -> Result<(), Failure> {
        if removes {
            until_stopped(self.job, cluster_policies::withdraw(self.place)).await.map_err(Failure::after_change)?;
        }
        Ok(())
    }

    async fn revisions(&self) -> Result<Vec<Revision>, Failure> {
        releases::read(self.api, self.helm.release()).await
    }

    async fn recover(&self, recovery: Recovery) -> Result<(), Failure> {
        let Release { name, namespace, .. } = self.helm.release();
        match recovery {
            Recovery::Nothing => Ok(()),
            Recovery::RollBack { from, to } => {
                self.job.log.line(&format!(
                    "release `{name}` was left `{}` at revision {} by a killed attempt; rolling back to revision {}",
                    from.status, from.number, to.number
                ));
                self.helm.roll_back(&to, self.time_left()).await.map_err(|failure| {
                    let later = format!("release `{name}` was not upgraded; deploy again to upgrade it");
                    failure.and(Failure::new(later)).after_change()
                })
            }
            Recovery::Uninstall { from } => {
                self.job.log.line(&format!(
                    "release `{name}` was left `{}` at revision {} by a killed attempt; uninstalling the release",
                    from.status, from.number
                ));
                self.helm.uninstall(self.time_left()).await.map_err(Failure::after_change)
            }
            Recovery::Refuse { by } => Err(Failure::new(format!(
                "release `{name}` in namespace `{namespace}` is `{}` at revision {}, and no job of this install left \
                 it in this state: somebody else is changing it; wait until that change has ended, or end it with \
                 `helm rollback {name} --namespace {namespace}`",
                by.status, by.number
            ))),
        }
    }

    /// Writes into the mark that the attempt ended cleanly, unless it left the release pending.
    async fn end(&self, mark: &AttemptMark, done: bool) -> Result<(), Failure> {
        // After a stop there is little time left. The mark still records that the attempt did not end cleanly, so the
        // next attempt checks the release.
        if self.job.stop.reason().is_some() {
            return Ok(());
        }
        let revisions = self.revisions().await?;
        match releases::recovery(&revisions, true) {
            Recovery::Nothing => mark.end(self.bucket).await,
            // Somebody else left the release pending before this attempt, and this attempt did not change it.
            Recovery::Refuse { .. } | Recovery::RollBack { .. } | Recovery::Uninstall { .. }
                if !done && !mark.inherits() && !self.helm.has_changed() =>
            {
                mark.end(self.bucket).await
            }
            Recovery::Refuse { .. } | Recovery::RollBack { .. } | Recovery::Uninstall { .. } => Ok(()),
        }
    }

    fn time_left(&self) -> Duration {
        self.job.deadline(self.started, REST).saturating_duration_since(Instant::now()).max(LEAST)
    }
}
