//! Puts the app's Kyverno policies into a cluster before a component is deployed there (decision 0094). Kyverno, which
//! runs in the cluster, evaluates them on every object that anybody makes there.
//!
//! A redelivery starts again from the beginning: a policy that is there already stays as it is, and the inventory names
//! each policy that an earlier attempt may have made.

mod policy_objects;

use freehold_aws_errors::chain;
use freehold_protocol::app_version::PolicyEngine;
use freehold_protocol::order::policy_scope::is_for_clusters;
use freehold_protocol::order::{Order, RemovePart};
use freehold_protocol::policy::{OrderPolicy, PolicyOrigin, PolicyResult};
use freehold_protocol::{ComponentName, names};
use serde_json::{Value, json};

use crate::job::Job;
use crate::job::bucket::JobBucket;
use crate::job::failure::Failure;
use crate::kinds::cluster_images;
use crate::kinds::inventory::Inventory;
use crate::kubernetes::{Api, COMPONENT, Change, ClusterError, Id, Object, Plan, annotation};
use crate::state_objects;

/// The annotation with the digest of the text that an object comes from.
const TEXT: &str = "freehold/policy";

/// The HTTP status of a response when an object exists already, or has changed since it was read.
const CONFLICT: u16 = 409;

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
#[derive(Debug)]
pub(super) struct ClusterPolicies {
    before: Inventory,
    /// The objects of this install that the cluster must have.
    wanted: Vec<Id>,
    /// The wanted objects that the cluster lacks or has with other contents, each with the live object.
    changed: Vec<(Object, Option<Value>)>,
    /// The objects that an earlier version of the app had.
    gone: Vec<Id>,
    /// The results of policies that cannot be used.
    failed: Vec<PolicyResult>,
    /// Whether each policy was found or can be made. If not, no other policy is removed.
    is_whole: bool,
}

impl ClusterPolicies {
    /// Compares the policies of the order with those of the cluster.
    pub(super) async fn compare(place: Place<'_>) -> Result<Self, Failure> {
        let key = state_objects::cluster_policies(place.arn);
        let before = Inventory::read_at(place.bucket, &key, place.arn).await?;
        let (wanted, changed, gone, failed) = Default::default();
        let is_whole = !leaves_policies_out(&place.job.order);
        let mut all = Self { before, wanted, changed, gone, failed, is_whole };
        for policy in of_kyverno(&place.job.order) {
            if let Err(why) = all.add(place, policy).await? {
                all.is_whole = false;
                let (name, contents) = (policy.name.clone(), policy.contents.clone());
                let (deny, warn) = Default::default();
                all.failed.push(PolicyResult {
                    name,
                    origin: PolicyOrigin::Vendor,
                    contents,
                    deny,
                    warn,
                    failed: Some(why),
                });
            }
        }
        if all.is_whole {
            for id in all.before.without(&all.wanted) {
                let live = place.api.get(&id).await?;
                if live.is_some_and(|live| annotation(&live, COMPONENT) == Some(&own_part(place.job))) {
                    all.gone.push(id);
                }
            }
        }
        Ok(all)
    }

    /// Adds the objects of a policy. Returns the reason if the policy cannot be used.
    async fn add(&mut self, place: Place<'_>, policy: &OrderPolicy) -> Result<Result<(), String>, Failure> {
        let text = match policy.text() {
            Ok(text) => text,
            Err(error) => return Ok(Err(chain(&error))),
        };
        let objects = match policy_objects::read(&policy.name, &text) {
            Ok(objects) => objects,
            Err(why) => return Ok(Err(why)),
        };
        for mut object in objects {
            let Id { api_version, kind, namespace, .. } = &object.id;
            let Some(resource) = place.api.resource(api_version, kind).await? else {
                place.job.log.line(&format!(
                    "{}: the cluster does not have the kind `{kind}` of `{api_version}`, so nothing there evaluates this policy; \
                     install Kyverno in the app's sandbox, or as a component before the other components",
                    object.place
                ));
                self.is_whole = false;
                continue;
            };
            if !resource.namespaced {
                object.place_in(None);
            } else if namespace.is_none() {
                return Ok(Err(format!(
                    "a `{kind}` belongs to one namespace, and this object has no `metadata.namespace`"
                )));
            }
            if self.wanted.iter().any(|other| other.is_same_object(&object.id)) {
                return Ok(Err(format!("{} is in the app's policies twice", object.id)));
            }
            let live = place.api.get(&object.id).await?;
            if let Some(live) = live.as_ref().filter(|live| annotation(live, COMPONENT) != Some(&own_part(place.job))) {
                if policy_objects::contains(live, &object.value) {
                    place.job.log.line(&format!("the cluster has {} already, from somebody else", object.id));
                    continue;
                }
                return Ok(Err(format!(
                    "the cluster has another {} already, which belongs to somebody else; give the policy another name",
                    object.id
                )));
            }
            object.annotate(COMPONENT, &own_part(place.job));
            object.annotate(TEXT, policy.contents.as_str());
            object.label(&place.job.order.shared_labels());
            self.wanted.push(object.id.clone());
            if !is_current(place.api, &object, live.as_ref()).await? {
                self.changed.push((object, live));
            }
        }
        Ok(Ok(()))
    }

    /// Returns a plan with the changes of the policies added.
    pub(super) fn plan_with(&self, plan: &Plan) -> Plan {
        let change = |live: &Option<Value>| if live.is_some() { Change::Update } else { Change::Create };
        let changed = self.changed.iter().map(|(object, live)| (change(live), object.id.clone()));
        let gone = self.gone.iter().map(|id| (Change::Delete, id.clone()));
        Plan { changes: changed.chain(gone).chain(plan.changes.iter().cloned()).collect() }
    }

    /// Returns the objects of a component with those of the policies that change.
    pub(super) fn objects_with(&self, objects: &[Object]) -> Vec<Object> {
        self.changed.iter().map(|(object, _)| object).chain(objects).cloned().collect()
    }

    /// Adds the policies that change to the document that an approval is bound to.
    pub(super) fn add_to(&self, mut document: Value) -> Value {
        let changed: Vec<&Value> = self.changed.iter().map(|(object, _)| &object.value).collect();
        if let (false, Some(document)) = (changed.is_empty(), document.as_object_mut()) {
            document.insert("policies".to_owned(), json!(changed));
        }
        document
    }

    /// Returns the results about policies that cannot be used. Each of them stops the job.
    pub(super) fn failed(&self) -> &[PolicyResult] {
        &self.failed
    }

    /// Makes the policies in the cluster, and removes those that an earlier version of the app had.
    pub(super) async fn apply(&self, place: Place<'_>) -> Result<(), Failure> {
        let all = self.before.with(&self.wanted);
        if self.changed.is_empty() && self.gone.is_empty() && all == self.before {
            return Ok(());
        }
        let key = state_objects::cluster_policies(place.arn);
        // The inventory is written before the first change. So it also names the policies of an attempt that is killed.
        all.write_at(place.bucket, &key).await?;
        let mut is_first = true;
        for (object, live) in &self.changed {
            if let Err(error) = make(place, object, live.as_ref()).await {
                let failure = Failure::new(not_made(object, &error));
                return Err(if is_first { failure } else { failure.after_change() });
            }
            is_first = false;
            place.job.log.line(&format!("put {} into the cluster", object.place));
        }
        for id in &self.gone {
            remove(place, id).await.map_err(|error| Failure::from(error).after_change())?;
        }
        let after = if self.is_whole { Inventory::new(place.arn, self.wanted.clone()) } else { all };
        after.write_at(place.bucket, &key).await.map_err(Failure::after_change)
    }
}

/// Removes the app's policies from the cluster. Logs a policy that cannot be removed: a teardown continues.
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

/// Ends the removal of a component whose objects are gone: removes the rules and policies that its deploys have put
/// into the cluster, and empties its inventory.
pub(super) async fn end_removal(place: Place<'_>, component: &ComponentName, how: &RemovePart) -> Result<(), Failure> {
    cluster_images::withdraw(place.job, place.api).await;
    if how.removes_policies {
        withdraw(place).await?;
    }
    Inventory::new(place.arn, Vec::new()).write(place.bucket, component).await
}

fn of_kyverno(order: &Order) -> impl Iterator<Item = &OrderPolicy> {
    order.policies.iter().filter(|policy| policy.engine == PolicyEngine::Kyverno)
}

/// Returns whether the order carries no policy of Kyverno although its terms have one or are not known. The control
/// plane of the previous release sends such orders, and they do not mean that the app has no policies.
fn leaves_policies_out(order: &Order) -> bool {
    if of_kyverno(order).next().is_some() {
        return false;
    }
    let Some(Ok(Some(terms))) = order.terms.as_ref().map(|terms| terms.asked()) else { return true };
    terms.policies.iter().any(|policy| is_for_clusters(policy.engine, &policy.kind))
}

/// Returns whether the cluster has the policy as its text defines it, apart from fields that the cluster does not know,
/// and from those that the API server and Kyverno add.
async fn is_current(api: &Api, object: &Object, live: Option<&Value>) -> Result<bool, Failure> {
    let Some(live) = live.filter(|live| annotation(live, TEXT) == annotation(&object.value, TEXT)) else {
        return Ok(false);
    };
    if policy_objects::contains(live, &object.value) {
        return Ok(true);
    }
    match api.replace(object, live, true).await {
        Ok(planned) => Ok(Change::between(Some(live), &planned) == Change::Keep),
        // Somebody has changed it since it was read.
        Err(error) if error.status() == Some(CONFLICT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Makes the policy, or replaces it as a whole.
async fn make(place: Place<'_>, object: &Object, live: Option<&Value>) -> Result<(), ClusterError> {
    let api = place.api;
    let made = match live {
        Some(live) => api.replace(object, live, false).await,
        None => {
            if let Some(namespace) = &object.id.namespace {
                api.make_namespace(namespace, &place.job.order.shared_labels()).await?;
            }
            api.create(object).await
        }
    };
    let Err(error) = made else { return Ok(()) };
    if error.status() != Some(CONFLICT) {
        return Err(error);
    }
    // The response to an earlier call was lost, another job of this install was faster, or Kyverno has written a state.
    let same = |live: &Value, name: &str| annotation(live, name) == annotation(&object.value, name);
    match api.get(&object.id).await? {
        Some(live) if same(&live, COMPONENT) && same(&live, TEXT) && policy_objects::contains(&live, &object.value) => {
            Ok(())
        }
        Some(live) if same(&live, COMPONENT) => api.replace(object, &live, false).await.map(drop),
        Some(_) | None => Err(error),
    }
}

/// Removes a policy, if it still belongs to this install.
async fn remove(place: Place<'_>, id: &Id) -> Result<(), ClusterError> {
    let live = place.api.get(id).await?;
    let Some(live) = live else { return Ok(()) };
    if annotation(&live, COMPONENT) != Some(own_part(place.job).as_str()) {
        place.job.log.line(&format!("did not remove {id}: it belongs to somebody else"));
        return Ok(());
    }
    place.api.delete(id).await?;
    place.job.log.line(&format!("removed {id} from the cluster"));
    Ok(())
}

/// Returns the annotation of this install's policies. The colon distinguishes it from a component's annotation.
fn own_part(job: &Job) -> String {
    format!("{}/policies:kyverno", names::owner(&job.order.tenant, &job.order.install))
}

fn not_made(object: &Object, error: &ClusterError) -> String {
    format!(
        "{}: the policy could not be put into the cluster, so nothing was deployed under it: {}; let the job's role change \
         objects of `{}`, or correct the policy",
        object.place,
        chain(error),
        object.id.group()
    )
}
