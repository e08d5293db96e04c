//! The drift of a release: what an upgrade with the same chart and values would change in the cluster, according to dry
//! runs. Hooks are left out, because they are not objects of the release.

use freehold_protocol::approval::ChangeKind;
use freehold_protocol::order::InstallChart;
use freehold_protocol::order::drift::DriftedResource;

use super::plan::{self, ReleasePlan};
use super::program::Helm;
use super::release::Release;
use super::{prepare, releases};
use crate::job::Job;
use crate::job::failure::{Failure, until_stopped};
use crate::kinds::result::{cluster_access, job_aws};
use crate::kinds::templates::Templates;
use crate::kubernetes::{Api, Change, Id, attributes_of_drift};

/// Returns the objects that differ from the release.
pub(in crate::kinds) async fn check(job: &Job, work: &InstallChart) -> Result<Vec<DriftedResource>, Failure> {
    let templates = Templates::of(job);
    let release = Release::of(work, &templates)?;
    let access = cluster_access(job, &work.cluster).await?;
    let api = access.api()?;
    let aws = job_aws(job).await?;
    let helm = Helm::find(job, release, &access, &aws)?;
    let found = compare_with_release(job, work, &helm, &api, &templates).await;
    aws.finish().await;
    found
}

async fn compare_with_release(
    job: &Job,
    work: &InstallChart,
    helm: &Helm<'_>,
    api: &Api,
    templates: &Templates,
) -> Result<Vec<DriftedResource>, Failure> {
    helm.check_version().await?;
    let (values, registry) = until_stopped(job, prepare(job, work, templates)).await?;
    let revisions = until_stopped(job, releases::read(api, helm.release())).await?;
    if let Some(last) = revisions.last().filter(|last| last.status != "deployed") {
        let name = &helm.release().name;
        return Err(Failure::new(format!(
            "release `{name}` is `{}` at revision {}, so there is no complete release to compare with; deploy `{}` \
             again",
            last.status, last.number, work.component
        )));
    }
    let plan = plan::make(job, work, helm, api, (&values, &registry), &revisions).await?;
    let mut found = Vec::new();
    for (change, id) in &plan.changes.changes {
        let (change, attributes) = match change {
            Change::Create => (ChangeKind::Create, Vec::new()),
            Change::Update => (ChangeKind::Update, until_stopped(job, attributes(api, &plan, id)).await?),
            Change::Delete => (ChangeKind::Delete, Vec::new()),
            Change::Keep | Change::Stay => continue,
        };
        found.push(DriftedResource {
            address: id.to_string(),
            kind: id.kind.clone(),
            change,
            attributes,
            more_attributes: 0,
        });
    }
    Ok(found)
}

/// Returns the names of the attributes in which an object differs; none if no dry run is possible.
async fn attributes(api: &Api, plan: &ReleasePlan, id: &Id) -> Result<Vec<String>, Failure> {
    let object = plan.objects.iter().find(|object| object.id.is_same_object(id));
    let (Some(object), Some(live)) = (object, api.get(id).await?) else { return Ok(Vec::new()) };
    // Webhooks with side effects refuse every dry run. The difference was then found without a dry run.
    let Ok(Some(merged)) = api.dry_run_merge(object).await else { return Ok(Vec::new()) };
    Ok(attributes_of_drift(&live, &merged))
}
