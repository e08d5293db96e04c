//! Applies the app's Kyverno policies to a cluster before a component is deployed there (decision 0094). Kyverno, which
//! runs in the cluster, judges by them every object that anybody makes there.
//!
//! A redelivery starts again from the beginning: an apply is idempotent, and the inventory names each policy that an
//! earlier attempt may have applied.

mod policy_objects;

use freehold_aws_errors::chain;
use freehold_protocol::app_version::PolicyEngine;
use freehold_protocol::names;
use freehold_protocol::policy::{OrderPolicy, PolicyOrigin, PolicyResult};
use serde_json::Value;

use crate::kinds::bucket::JobBucket;
use crate::kinds::failure::Failure;
use crate::kinds::inventory::Inventory;
use crate::kubernetes::{Api, Applied, ClusterError, Id, Object};
use crate::state_objects;
use crate::work::job::Job;

/// The annotation that names the install and the part of the app to which an object belongs.
const COMPONENT: &str = "freehold/component";

/// A job's cluster, and the bucket with the inventory of the policies in it.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) job: &'a Job,
    pub(super) api: &'a Api,
    pub(super) bucket: &'a JobBucket,
    /// The ARN of the cluster.
    pub(super) arn: &'a str,
}

/// The app's Kyverno policies, compared with those of a cluster. Nothing was changed yet.
#[derive(Debug, Default)]
pub(super) struct ClusterPolicies {
    /// The objects that the cluster must have.
    wanted: Vec<Id>,
    /// Those of them that it does not have, or has otherwise.
    changed: Vec<Object>,
    results: Vec<PolicyResult>,
}

/// What became of one policy.
enum Found {
    Ready(Vec<(Object, bool)>),
    /// The cluster has no Kyverno, so that nobody asks the policy.
    Unasked(String),
    /// The policy cannot be applied.
    Unusable(String),
}

impl ClusterPolicies {
    /// Compares the policies of the order with those of the cluster.
    pub(super) async fn compare(place: Place<'_>) -> Result<Self, Failure> {
        let mut all = Self::default();
        let policies = &place.job.order.policies;
        for policy in policies.iter().filter(|policy| policy.engine == PolicyEngine::Kyverno) {
            let (mut warn, mut failed) = (Vec::new(), None);
            match find(place, policy).await? {
                Found::Ready(objects) => {
                    for (object, is_current) in objects {
                        all.wanted.push(object.id.clone());
                        all.changed.extend((!is_current).then_some(object));
                    }
                }
                Found::Unasked(why) => warn.push(why),
                Found::Unusable(why) => failed = Some(why),
            }
            let (name, contents) = (policy.name.clone(), policy.contents.clone());
            all.results.push(PolicyResult {
                name,
                origin: PolicyOrigin::Vendor,
                contents,
                deny: Vec::new(),
                warn,
                failed,
            });
        }
        Ok(all)
    }

    /// Returns the results about the policies, which stop the job if a policy cannot be applied.
    pub(super) fn results(&self) -> &[PolicyResult] {
        &self.results
    }

    /// Applies the policies, and removes those that an earlier version of the app had.
    pub(super) async fn apply(&self, place: Place<'_>) -> Result<(), Failure> {
        let key = state_objects::cluster_policies(place.arn);
        let before = Inventory::read_at(place.bucket, &key, place.arn).await?;
        let gone = before.without(&self.wanted);
        if gone.is_empty() && before.with(&self.wanted) == before && self.changed.is_empty() {
            return Ok(());
        }
        // The inventory is written before the first change. So it also names the policies of an attempt that is killed.
        before.with(&self.wanted).write_at(place.bucket, &key).await?;
        for object in &self.changed {
            let applied = place.api.apply(object, Applied::Enforced).await;
            applied.map_err(|error| Failure::new(not_applied(object, &error)))?;
            place.job.log.line(&format!("applied {} to the cluster", object.place));
        }
        for id in &gone {
            remove(place, id).await?;
        }
        Inventory::new(place.arn, self.wanted.clone()).write_at(place.bucket, &key).await
    }
}

/// Removes the app's policies from the cluster. A policy that cannot be removed is a line in the log: a teardown continues.
pub(super) async fn withdraw(place: Place<'_>) -> Result<(), Failure> {
    let key = state_objects::cluster_policies(place.arn);
    let before = Inventory::read_at(place.bucket, &key, place.arn).await?;
    let mut left = Vec::new();
    for id in before.without(&[]) {
        if let Err(error) = remove(place, &id).await {
            place.job.log.line(&format!("{id} could not be removed: {}", chain(&error)));
            left.push(id);
        }
    }
    let after = Inventory::new(place.arn, left);
    if after == before { Ok(()) } else { after.write_at(place.bucket, &key).await }
}

/// Removes a policy, if it still belongs to this install.
async fn remove(place: Place<'_>, id: &Id) -> Result<(), ClusterError> {
    let live = place.api.get(id).await?;
    match live.as_ref().map(owner_of) {
        Some(Some(owner)) if owner == own_part(place.job).as_str() => {
            place.api.delete(id).await?;
            place.job.log.line(&format!("removed {id} from the cluster"));
        }
        Some(_) => place.job.log.line(&format!("did not remove {id}: it belongs to somebody else")),
        None => {}
    }
    Ok(())
}

async fn find(place: Place<'_>, policy: &OrderPolicy) -> Result<Found, Failure> {
    let text = match policy.text() {
        Ok(text) => text,
        Err(error) => return Ok(Found::Unusable(chain(&error))),
    };
    let objects = match policy_objects::read(&policy.name, &text) {
        Ok(objects) => objects,
        Err(why) => return Ok(Found::Unusable(why)),
    };
    let mut ready = Vec::new();
    for mut object in objects {
        let Id { api_version, kind, namespace, .. } = &object.id;
        let Some(resource) = place.api.resource(api_version, kind).await? else {
            return Ok(Found::Unasked(format!(
                "the cluster does not have the kind `{kind}` of `{api_version}`, so nothing there asks this policy; \
                 install Kyverno in the app's sandbox, or as a component before the others"
            )));
        };
        if resource.namespaced && namespace.is_none() {
            return Ok(Found::Unusable(format!(
                "{}: a `{kind}` is for one namespace, and this one has no `metadata.namespace`",
                object.place
            )));
        }
        let own = own_part(place.job);
        object.annotate(COMPONENT, &own);
        let live = place.api.get(&object.id).await?;
        if let Some(owner) = live.as_ref().map(owner_of).filter(|owner| *owner != Some(own.as_str())) {
            let owner = owner.map_or_else(|| "somebody else".to_owned(), |owner| format!("`{owner}`"));
            return Ok(Found::Unusable(format!(
                "{}: the cluster has a {} already, which belongs to {owner}; give the policy another name",
                object.place, object.id
            )));
        }
        let is_current = live.is_some_and(|live| policy_objects::contains(&live, &object.value));
        ready.push((object, is_current));
    }
    Ok(Found::Ready(ready))
}

/// Returns the annotation of this install's policies. The colon distinguishes it from a component's annotation.
fn own_part(job: &Job) -> String {
    format!("{}/policies:kyverno", names::owner(&job.order.tenant, &job.order.install))
}

fn owner_of(live: &Value) -> Option<&str> {
    live.get("metadata")?.get("annotations")?.get(COMPONENT)?.as_str()
}

fn not_applied(object: &Object, error: &ClusterError) -> String {
    format!(
        "{}: the policy could not be applied to the cluster, so nothing was deployed under it: {}; let the job's role change \
         objects of `{}`, or correct the policy",
        object.place,
        chain(error),
        object.id.group()
    )
}
