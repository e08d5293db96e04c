//! `kubernetes_manifest`: applies the objects of a manifest (server-side apply) and prunes the component's other
//! objects.
//!
//! A redelivery starts again from the beginning: an apply is idempotent, and the inventory names each object that an
//! earlier attempt may have made.

pub(super) mod drift;
mod kustomize;
mod manifest;
mod rollout;

use std::time::Instant;

use freehold_protocol::Digest;
use freehold_protocol::order::{ApplyManifest, RemovePart};
use serde_json::{Value, json};

use crate::approvals;
use crate::job::bucket::JobBucket;
use crate::job::failure::{Failure, until_stopped};
use crate::job::{Job, sdk_config};
use crate::kinds::cluster_images;
use crate::kinds::cluster_policies::{self, ClusterPolicies, Place};
use crate::kinds::guard;
use crate::kinds::inventory::Inventory;
use crate::kinds::result::{Done, cluster_access, skipped};
use crate::kinds::templates::Templates;
use crate::kubernetes::{Id, Object};
use rollout::Rollout;

/// Applies the manifest.
pub(super) async fn run(job: &Job, work: &ApplyManifest) -> Result<Done, Failure> {
    let started = Instant::now();
    let bucket = JobBucket::of(job, &sdk_config(job).await)?;
    let templates = Templates::of(job);
    let namespace = templates.text("`namespace`", &work.namespace)?;
    let access = cluster_access(job, &work.cluster).await?;
    let (text, registry) = manifest::text(job, work, &templates).await?;
    let api = access.api()?;
    let rollout = Rollout { job, work, api: &api, namespace: &namespace, started };
    let objects = until_stopped(job, rollout.objects(&text)).await?;
    let values = objects.iter().map(|object| &object.value);
    cluster_images::look(job, work.component.as_str(), &registry, values)?;
    until_stopped(job, async {
        cluster_images::withdraw_unwanted(job, &api).await;
        Ok(())
    })
    .await?;
    let before = until_stopped(job, Inventory::read(&bucket, &work.component, access.arn())).await?;
    let ids: Vec<Id> = objects.iter().map(|object| object.id.clone()).collect();
    let gone = before.without(&ids);

    let plan = until_stopped(job, rollout.plan(&objects, &gone)).await?;
    let place = Place { job, api: &api, bucket: &bucket, arn: access.arn() };
    let policies = until_stopped(job, ClusterPolicies::compare(place)).await?;
    let whole = policies.plan_with(&plan);
    job.log.line(&format!("plan {}: {whole}", Digest::of(text.as_bytes())));
    whole.lines().for_each(|line| job.log.line(&line));
    let key = format!("plans/{}/{}.yaml", job.order.job, job.fence);
    until_stopped(job, bucket.put(&key, text.clone())).await?;
    let held = plan.deleted_data();
    if !held.is_empty() {
        return Err(Failure::deletes_data(&work.component, &held));
    }

    let asked = approvals::asked(job).await?;
    let is_noop = whole.is_noop() && policies.failed().is_empty();
    let is_skipped = is_noop && (job.order.skip_noops || asked.is_any());
    if is_skipped {
        job.log.line(skipped(job));
    }
    if !is_skipped {
        guard::objects(job, &whole, &policies.objects_with(&objects), (&[], policies.failed())).await?;
        let changes = approvals::of_cluster(&whole);
        let document = json!({ "manifest": text, "namespace": namespace, "changes": changes });
        let document = policies.add_to(document);
        Box::pin(approvals::require_document_approval(job, asked, changes, (&document, Value::Null))).await?;
    }
    until_stopped(job, cluster_images::admit(job, &api, Some(&registry))).await?;
    until_stopped(job, policies.apply(place)).await?;
    // The inventory is written before the first change. So it also names the objects of an attempt that is killed.
    until_stopped(job, before.with(&ids).write(&bucket, &work.component)).await?;
    let changed = async {
        if !is_skipped {
            rollout.apply(&objects).await?;
            rollout.prune(&plan).await?;
        }
        Inventory::new(access.arn(), ids.clone()).write(&bucket, &work.component).await?;
        rollout.wait(&objects).await
    };
    until_stopped(job, changed).await.map_err(Failure::after_change)?;
    Ok(Done { outputs: outputs(&namespace, &objects), ..Done::default() })
}

/// Deletes all objects that the component has applied, without those that are marked to stay. Its namespace stays,
/// unless it is an object of the manifest.
pub(super) async fn remove(job: &Job, work: &ApplyManifest, how: &RemovePart) -> Result<Done, Failure> {
    let started = Instant::now();
    let bucket = JobBucket::of(job, &sdk_config(job).await)?;
    let access = cluster_access(job, &work.cluster).await?;
    let api = access.api()?;
    let rollout = Rollout { job, work, api: &api, namespace: "", started };
    let all = until_stopped(job, Inventory::read(&bucket, &work.component, access.arn())).await?.without(&[]);
    let plan = until_stopped(job, rollout.plan(&[], &all)).await?;
    let place = Place { job, api: &api, bucket: &bucket, arn: access.arn() };
    guard::removal(job, &plan, how.destroy_data).await?;
    let removed = async {
        rollout.prune(&plan).await?;
        rollout.wait_until_gone(&all).await?;
        cluster_policies::end_removal(place, &work.component, how).await
    };
    until_stopped(job, removed).await.map_err(Failure::after_change)?;
    Ok(Done::default())
}

fn outputs(namespace: &str, objects: &[Object]) -> std::collections::BTreeMap<String, Value> {
    let names: Vec<Value> = objects.iter().map(|object| Value::from(object.id.to_string())).collect();
    [("namespace".to_owned(), Value::from(namespace)), ("objects".to_owned(), Value::Array(names))].into()
}
