//! `job`: runs a program to its end, as a Kubernetes Job.
//!
//! A redelivered order does not run the program again. The name of the Kubernetes Job contains the job and the dispatch
//! number, and the attempt writes this name into the component's inventory (the list of its objects, in the runner's
//! bucket) before it creates the Kubernetes Job. So a redelivery finds the Kubernetes Job of an earlier attempt and
//! waits for its end. A new dispatch runs the program again if the program failed in the dispatch before. The last
//! Kubernetes Job of a component stays until the next one, so that people can look at it.

mod image;
mod object;
mod run;

use std::time::{Duration, Instant};

use freehold_protocol::order::{RemovePart, RunKubernetesJob};
use serde_json::Value;

use crate::job::bucket::JobBucket;
use crate::job::failure::{Failure, until_stopped};
use crate::job::{Job, StopReason, sdk_config};
use crate::kinds::cluster_images;
use crate::kinds::cluster_policies::{self, ClusterPolicies, Place};
use crate::kinds::guard;
use crate::kinds::inventory::Inventory;
use crate::kinds::result::{Done, cluster_access};
use crate::kinds::templates::Templates;
use crate::kubernetes::{ClusterAccess, Object, Plan};
use run::Run;

/// The time limit for ending the program of an attempt that is stopped.
const STOP: Duration = Duration::from_secs(20);

/// Runs the program, or waits for the end of the program that an earlier attempt has started. Ends the program if no
/// attempt will wait for its end.
pub(super) async fn run(job: &Job, work: &RunKubernetesJob) -> Result<Done, Failure> {
    let ended = run_to_end(job, work).await;
    if let Err(Failure::Stopped {
        reason: StopReason::Cancelled | StopReason::TimedOut | StopReason::SwitchedOff,
        ..
    }) = &ended
    {
        let why = match tokio::time::timeout(STOP, stop(job, work)).await {
            Ok(Ok(())) => return ended,
            Ok(Err(Failure::Failed { reason, .. })) => reason,
            Ok(Err(Failure::Stopped { .. } | Failure::Waits(_) | Failure::NotApproved { .. })) | Err(_) => {
                "the cluster did not answer in time".to_owned()
            }
        };
        job.log.line(&format!("could not end the program, so it runs until its own time limit: {why}"));
    }
    ended
}

/// Deletes the Kubernetes Jobs that the attempts at this job have started. This attempt may have been stopped before it
/// looked for those of earlier attempts.
async fn stop(job: &Job, work: &RunKubernetesJob) -> Result<(), Failure> {
    let bucket = JobBucket::of(job, &sdk_config(job).await)?;
    let access = ClusterAccess::of(job, &work.cluster).await?;
    let api = access.api()?;
    let before = Inventory::read(&bucket, &work.component, access.arn()).await?;
    Run { job, work, api: &api, started: Instant::now() }.stop(&before).await
}

async fn run_to_end(job: &Job, work: &RunKubernetesJob) -> Result<Done, Failure> {
    let started = Instant::now();
    let bucket = JobBucket::of(job, &sdk_config(job).await)?;
    let templates = Templates::of(job);
    let access = cluster_access(job, &work.cluster).await?;
    let image = until_stopped(job, image::find(job, work, &templates)).await?;
    let wanted = object::make(job, work, &templates, &image)?;
    let api = access.api()?;
    let run = Run { job, work, api: &api, started };
    let before = until_stopped(job, Inventory::read(&bucket, &work.component, access.arn())).await?;

    let earlier = until_stopped(job, run.earlier(&before, &wanted.id)).await?;
    let current = earlier.clone().unwrap_or_else(|| wanted.id.clone());
    let gone = before.without(std::slice::from_ref(&current));
    let plan = until_stopped(job, run.plan(earlier.is_none().then_some(&wanted), &gone)).await?;
    if earlier.is_some() {
        // The attempt that has started it has also put the policies into the cluster.
        show(job, &plan);
    } else {
        let place = Place { job, api: &api, bucket: &bucket, arn: access.arn() };
        let policies = until_stopped(job, ClusterPolicies::compare(place)).await?;
        let whole = policies.plan_with(&plan);
        show(job, &whole);
        keep_plan(job, &bucket, &wanted).await?;
        let objects = policies.objects_with(std::slice::from_ref(&wanted));
        guard::objects(job, &whole, &objects, (&[], policies.failed())).await?;
        until_stopped(job, cluster_images::admit(job, &api, None)).await?;
        until_stopped(job, policies.apply(place)).await?;
    }
    // The inventory is written before the first change. So it also names the Kubernetes Job of an attempt that is
    // killed.
    until_stopped(job, before.with(std::slice::from_ref(&current)).write(&bucket, &work.component)).await?;
    let changed = async {
        run.delete(&gone).await?;
        match earlier {
            Some(id) => job.log.line(&format!("{id} was started by an earlier attempt: waiting for its end")),
            None => run.create(&wanted).await?,
        }
        Inventory::new(access.arn(), vec![current.clone()]).write(&bucket, &work.component).await?;
        run.wait(&current).await
    };
    let message = until_stopped(job, changed).await.map_err(Failure::after_change)?;
    let outputs = [
        ("namespace", Value::from(job.order.install.as_str())),
        ("job", Value::from(current.name)),
        ("image", Value::from(image)),
    ];
    let outputs = outputs.into_iter().chain(message.map(|message| ("message", message)));
    Ok(Done { outputs: outputs.map(|(name, value)| (name.to_owned(), value)).collect(), ..Done::default() })
}

fn show(job: &Job, plan: &Plan) {
    job.log.line(&format!("plan: {plan}"));
    plan.lines().for_each(|line| job.log.line(&line));
}

/// Stores the planned Kubernetes Job in the bucket, beside the plans of other kinds of jobs.
async fn keep_plan(job: &Job, bucket: &JobBucket, wanted: &Object) -> Result<(), Failure> {
    let key = format!("plans/{}/{}.yaml", job.order.job, job.fence);
    until_stopped(job, bucket.put(&key, wanted.value.to_string())).await
}

/// Deletes the Kubernetes Jobs of the component with their pods. The namespace stays.
pub(super) async fn remove(job: &Job, work: &RunKubernetesJob, how: &RemovePart) -> Result<Done, Failure> {
    let started = Instant::now();
    let bucket = JobBucket::of(job, &sdk_config(job).await)?;
    let access = cluster_access(job, &work.cluster).await?;
    let api = access.api()?;
    let run = Run { job, work, api: &api, started };
    let all = until_stopped(job, Inventory::read(&bucket, &work.component, access.arn())).await?.without(&[]);
    let plan = until_stopped(job, run.plan(None, &all)).await?;
    let place = Place { job, api: &api, bucket: &bucket, arn: access.arn() };
    // Kubernetes Jobs and their pods keep no data.
    guard::removal(job, &plan, true).await?;
    let removed = async {
        run.delete(&all).await?;
        cluster_policies::end_removal(place, &work.component, how).await
    };
    until_stopped(job, removed).await.map_err(Failure::after_change)?;
    Ok(Done::default())
}
