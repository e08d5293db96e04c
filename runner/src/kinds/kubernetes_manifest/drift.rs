//! The drift of a manifest: what an apply of its objects would change in the cluster, according to dry runs.

use std::time::Instant;

use freehold_protocol::approval::ChangeKind;
use freehold_protocol::order::ApplyManifest;
use freehold_protocol::order::drift::DriftedResource;

use super::manifest;
use super::rollout::Rollout;
use crate::job::Job;
use crate::job::failure::{Failure, until_stopped};
use crate::kinds::result::cluster_access;
use crate::kinds::templates::Templates;
use crate::kubernetes::{Applied, attributes_of_drift};

/// Returns the objects that differ from the manifest. Fields that another manager took over count as well. If this
/// manager is not a command of `kubectl`, a deploy is refused until the manager gives them up.
pub(in crate::kinds) async fn check(job: &Job, work: &ApplyManifest) -> Result<Vec<DriftedResource>, Failure> {
    let templates = Templates::of(job);
    let namespace = templates.text("`namespace`", &work.namespace)?;
    let access = cluster_access(job, &work.cluster).await?;
    let (text, _) = manifest::text(job, work, &templates).await?;
    let api = access.api()?;
    let rollout = Rollout { job, work, api: &api, namespace: &namespace, started: Instant::now() };
    let objects = until_stopped(job, rollout.objects(&text)).await?;
    let compared = async {
        let mut found = Vec::new();
        for object in &objects {
            let live = api.get(&object.id).await?;
            rollout.check_owner(object, live.as_ref())?;
            let (change, attributes) = match &live {
                None => (ChangeKind::Create, Vec::new()),
                Some(live) => {
                    let planned = api.apply(object, Applied::Compared).await;
                    let planned = planned.map_err(|error| rollout.refused(object, error))?;
                    let attributes = attributes_of_drift(live, &planned);
                    if attributes.is_empty() {
                        continue;
                    }
                    (ChangeKind::Update, attributes)
                }
            };
            let (address, kind) = (object.id.to_string(), object.id.kind.clone());
            found.push(DriftedResource { address, kind, change, attributes, more_attributes: 0 });
        }
        Ok(found)
    };
    until_stopped(job, compared).await
}
