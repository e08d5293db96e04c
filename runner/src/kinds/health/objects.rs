//! Asks a cluster for the health of a component's objects: those that a manifest made, or those of a Helm release.

use freehold_protocol::ComponentName;
use freehold_protocol::order::ClusterOf;
use freehold_protocol::order::health::{Health as Found, HealthState};

use crate::job::bucket::JobBucket;
use crate::job::failure::Failure;
use crate::job::{Job, sdk_config};
use crate::kinds::helm_chart;
use crate::kinds::inventory::Inventory;
use crate::kinds::templates::Templates;
use crate::kubernetes::{Api, ClusterAccess, Health, Id, health};

/// The maximum number of objects that a reason names.
const NAMED: usize = 5;

/// Returns the health of the objects that the manifest of `component` made.
pub(super) async fn of_manifest(job: &Job, component: &ComponentName, of: &ClusterOf) -> Result<Found, Failure> {
    let bucket = JobBucket::of(job, &sdk_config(job).await)?;
    let access = ClusterAccess::of(job, of).await?;
    let made = Inventory::read(&bucket, component, access.arn()).await?.without(&[]);
    if made.is_empty() {
        return Ok(Found::new(HealthState::Unhealthy, "no object of the component is in the cluster"));
    }
    of_objects(job, &access.api()?, &made).await
}

/// Returns the health of the objects of a Helm release, by its name, its namespace and its storage driver.
pub(super) async fn of_release(job: &Job, of: &ClusterOf, release: [&String; 3]) -> Result<Found, Failure> {
    let templates = Templates::of(job);
    let [name, namespace, driver] = release;
    let name = templates.text("`chart_name`", name)?;
    let namespace = templates.text("`namespace`", namespace)?;
    let api = ClusterAccess::of(job, of).await?.api()?;
    let unhealthy = |reason: &str| Ok(Found::new(HealthState::Unhealthy, &job.log.redacted(reason)));
    match helm_chart::newest(&api, [&name, &namespace, driver]).await? {
        None => unhealthy(&format!("there is no release `{name}` in namespace `{namespace}`")),
        Some(found) if found.status != "deployed" => unhealthy(&format!("release `{name}` is `{}`", found.status)),
        Some(found) => {
            let ids: Vec<Id> = found.objects.into_iter().map(|object| object.id).collect();
            of_objects(job, &api, &ids).await
        }
    }
}

async fn of_objects(job: &Job, api: &Api, ids: &[Id]) -> Result<Found, Failure> {
    let mut bad = Vec::new();
    for id in ids {
        match api.get(id).await?.as_ref().map(health) {
            Some(Health::Healthy) => {}
            Some(Health::Waiting(why) | Health::Failed(why)) => bad.push(job.log.redacted(&format!("{id}: {why}"))),
            None => bad.push(format!("{id} is gone")),
        }
    }
    Ok(of_bad(&bad))
}

fn of_bad(bad: &[String]) -> Found {
    if bad.is_empty() {
        return Found::new(HealthState::Healthy, "");
    }
    let named = bad.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    let more = bad.len().saturating_sub(NAMED);
    let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
    Found::new(HealthState::Unhealthy, &format!("{named}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_names_some_objects_and_counts_the_others() {
        let bad: Vec<String> = (1..=7).map(|at| format!("Pod web/{at}: why")).collect();

        let found = of_bad(&bad);

        assert_eq!(found.state, HealthState::Unhealthy);
        assert!(found.reason.starts_with("Pod web/1: why; Pod web/2: why; "), "{}", found.reason);
        assert!(found.reason.ends_with("Pod web/5: why; and 2 more"), "{}", found.reason);
        assert_eq!(of_bad(&[]), Found::new(HealthState::Healthy, ""));
    }
}
