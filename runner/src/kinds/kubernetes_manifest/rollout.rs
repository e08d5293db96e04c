//! Rolls a manifest out to a cluster: makes the plan, applies objects, prunes objects, and waits until they are
//! healthy.

use std::time::{Duration, Instant};

use freehold_protocol::order::ApplyManifest;
use serde_json::Value;

use crate::job::Job;
use crate::job::failure::Failure;
use crate::kubernetes::{
    Api, Applied, COMPONENT, Change, ClusterError, Health, Id, Object, Plan, annotation, health, is_marked_to_stay,
    read_objects,
};

/// The time between two polls of an object.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The time limit for a CustomResourceDefinition to become usable.
const DEFINED: Duration = Duration::from_secs(60);
/// The part of the attempt's time limit that is reserved for the work after the wait.
const REST: Duration = Duration::from_secs(15);

/// The roll-out of one manifest.
pub(super) struct Rollout<'a> {
    pub(super) job: &'a Job,
    pub(super) work: &'a ApplyManifest,
    pub(super) api: &'a Api,
    /// The namespace for objects that do not name one.
    pub(super) namespace: &'a str,
    pub(super) started: Instant,
}

impl Rollout<'_> {
    /// Reads the objects of the manifest and sets their namespaces, the component's annotation and the labels of the
    /// install. Returns them in the order in which they must be applied. Fails for a kind that neither the cluster nor the
    /// manifest defines.
    pub(super) async fn objects(&self, text: &str) -> Result<Vec<Object>, Failure> {
        let mut objects = read_objects("manifest", text).map_err(|why| self.failure(why))?;
        if objects.is_empty() {
            return Err(self.failure("the manifest has no objects"));
        }
        let defined: Vec<(String, String, bool)> = objects
            .iter()
            .filter_map(Object::defines)
            .map(|(group, kind, namespaced)| (group.to_owned(), kind.to_owned(), namespaced))
            .collect();
        for object in &mut objects {
            let id = &object.id;
            let resource = self.api.resource(&id.api_version, &id.kind).await?;
            let by_definition =
                defined.iter().find(|(group, kind, _)| (id.group(), &id.kind) == (group.as_str(), kind));
            let namespaced =
                resource.map(|one| one.namespaced).or_else(|| by_definition.map(|(_, _, namespaced)| *namespaced));
            let namespaced = namespaced.ok_or_else(|| self.unknown_kind(object))?;
            let namespace = object.id.namespace.clone().unwrap_or_else(|| self.namespace.to_owned());
            object.place_in(namespaced.then_some(namespace.as_str()));
            object.name_protocols();
            object.annotate(COMPONENT, &self.owner());
            self.label(object).await?;
        }
        if let Some(twice) = twice(&objects) {
            return Err(self.failure(format!("{}: {} is in the manifest twice", twice.place, twice.id)));
        }
        objects.sort_by_key(|object| stage(&object.id.kind));
        Ok(objects)
    }

    /// Sets the labels of the install on an object and on its pods.
    async fn label(&self, object: &mut Object) -> Result<(), Failure> {
        let labels = self.job.order.labels();
        object.label(&labels);
        if object.pod_template().is_some() {
            let live = self.api.get(&object.id).await?;
            object.label_pods(&labels, live.as_ref());
        }
        Ok(())
    }

    fn unknown_kind(&self, object: &Object) -> Failure {
        let Object { place, id, .. } = object;
        self.failure(format!(
            "{place}: the cluster has no kind `{}` of `{}`; correct the kind, or deploy the component that defines it \
             before this component (`dependencies`)",
            id.kind, id.api_version
        ))
    }

    /// Returns the changes that the roll-out would make. The API server checks each object in a dry run and refuses
    /// invalid ones.
    pub(super) async fn plan(&self, objects: &[Object], gone: &[Id]) -> Result<Plan, Failure> {
        let mut changes = Vec::new();
        for object in objects {
            let live = self.api.get(&object.id).await?;
            self.check_owner(object, live.as_ref())?;
            changes.push((self.change(object, live.as_ref()).await?, object.id.clone()));
        }
        for id in gone {
            let live = self.api.get(id).await?;
            let change = if self.is_ours(live.as_ref()) {
                Change::removal(live.as_ref(), live.as_ref().is_some_and(is_marked_to_stay))
            } else {
                self.job.log.line(&format!("{id} does not exist any more, or no longer belongs to this component"));
                Change::Keep
            };
            changes.push((change, id.clone()));
        }
        Ok(Plan { changes })
    }

    /// Returns the change that the roll-out would make to an object. Fields of the component's own object that people
    /// edited by `kubectl` are changed back.
    async fn change(&self, object: &Object, live: Option<&Value>) -> Result<Change, Failure> {
        let error = match self.api.change(object, live).await {
            Ok(change) => return Ok(change),
            Err(error) => error,
        };
        if !(self.is_ours(live) && error.is_about_edits_by_kubectl()) {
            return Err(self.refused(object, error));
        }
        for owner in error.owners() {
            let (id, field, manager) = (&object.id, &owner.field, &owner.manager);
            self.job.log.line(&format!("{id}: `{field}` was edited by `{manager}`; a deploy changes it back"));
        }
        let planned = self.api.apply(object, Applied::Compared).await;
        Ok(Change::between(live, &planned.map_err(|error| self.refused(object, error))?))
    }

    /// Applies one object, like [`Self::change`] plans it.
    async fn apply_object(&self, object: &Object) -> Result<(), Failure> {
        let applied = match self.api.apply(object, Applied::Done).await {
            Err(error) if error.is_about_edits_by_kubectl() => {
                let live = self.api.get(&object.id).await?;
                if self.is_ours(live.as_ref()) { self.api.apply(object, Applied::TakenBack).await } else { Err(error) }
            }
            applied => applied,
        };
        applied.map(drop).map_err(|error| self.refused(object, error))
    }

    /// Applies all objects. Waits for the definitions of kinds before it applies objects of later stages.
    pub(super) async fn apply(&self, objects: &[Object]) -> Result<(), Failure> {
        self.make_namespace().await?;
        let mut definitions = Vec::new();
        for object in objects {
            if stage(&object.id.kind) > DEFINITIONS && !definitions.is_empty() {
                let until = Instant::now() + DEFINED;
                self.wait_for(&std::mem::take(&mut definitions), until).await?;
            }
            self.apply_object(object).await?;
            if object.defines().is_some() {
                definitions.push(object.id.clone());
            }
        }
        Ok(())
    }

    /// Makes the component's namespace if it is missing. The namespace stays when the component is removed, because
    /// other components may use it.
    async fn make_namespace(&self) -> Result<(), Failure> {
        let made = self.api.make_namespace(self.namespace, &self.job.order.shared_labels()).await;
        let made = made.map_err(|error| self.failure(format!("`namespace`: {}", freehold_aws_errors::chain(&error))));
        if made? {
            self.job.log.line(&format!("created namespace `{}`", self.namespace));
        }
        Ok(())
    }

    /// Deletes what the plan deletes, in the opposite order of an apply. It does not delete an object that has lost this
    /// component's annotation since the plan, or that somebody has marked to stay.
    pub(super) async fn prune(&self, plan: &Plan) -> Result<(), Failure> {
        let mut gone: Vec<&Id> = plan.deleted().collect();
        gone.sort_by_key(|id| std::cmp::Reverse(stage(&id.kind)));
        for id in gone {
            if self.is_to_go(id).await? {
                self.api.delete(id).await?;
            } else {
                self.job.log.line(&format!("{id} was changed by somebody else and is not deleted"));
            }
        }
        Ok(())
    }

    /// Returns whether a live object belongs to this component and is not marked to stay.
    async fn is_to_go(&self, id: &Id) -> Result<bool, Failure> {
        let live = self.api.get(id).await?;
        Ok(self.is_ours(live.as_ref()) && !live.as_ref().is_some_and(is_marked_to_stay))
    }

    fn is_ours(&self, live: Option<&Value>) -> bool {
        live.and_then(owner) == Some(&self.owner())
    }

    /// Refuses an object of another component. The API server would not report a conflict, because the runner applies
    /// both under the same field manager.
    pub(super) fn check_owner(&self, object: &Object, live: Option<&Value>) -> Result<(), Failure> {
        let Object { place, id, .. } = object;
        match live.and_then(owner) {
            Some(other) if other != self.owner() => Err(self.failure(format!(
                "{place}: {id} belongs to `{other}`; remove it from `{other}` and deploy `{other}` first"
            ))),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the value of the annotation [`COMPONENT`] for the objects of this manifest.
    fn owner(&self) -> String {
        format!("{}/{}", self.job.order.install, self.work.component)
    }

    /// Waits until every object is healthy.
    pub(super) async fn wait(&self, objects: &[Object]) -> Result<(), Failure> {
        let ids: Vec<Id> = objects.iter().map(|object| object.id.clone()).collect();
        self.wait_for(&ids, self.deadline()).await
    }

    fn deadline(&self) -> Instant {
        self.job.deadline(self.started, REST)
    }

    /// Waits until none of the objects exists with this component's annotation, except those that are marked to stay.
    /// Finalizers may delay a deletion.
    pub(super) async fn wait_until_gone(&self, ids: &[Id]) -> Result<(), Failure> {
        let until = self.deadline();
        for id in ids {
            while self.is_to_go(id).await? {
                if Instant::now() >= until {
                    return Err(self.failure(format!("{id} still exists: a finalizer prevents its deletion")));
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
        Ok(())
    }

    async fn wait_for(&self, ids: &[Id], until: Instant) -> Result<(), Failure> {
        let mut last_line = String::new();
        for id in ids {
            loop {
                let why = match self.api.get(id).await?.as_ref().map(health) {
                    Some(Health::Healthy) => break,
                    Some(Health::Waiting(why)) => why,
                    Some(Health::Failed(why)) => return Err(self.failure(format!("{id} has failed: {why}"))),
                    None => "it is gone".to_owned(),
                };
                if Instant::now() >= until {
                    return Err(self.failure(format!("{id} has not become healthy in time: {why}")));
                }
                let line = format!("waiting for {id}: {why}");
                if line != last_line {
                    self.job.log.line(&line);
                    last_line = line;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
        Ok(())
    }

    fn failure(&self, why: impl std::fmt::Display) -> Failure {
        Failure::of_component(&self.work.component, why)
    }

    /// Returns the failure for an object that the cluster refuses. For a conflict, the failure names the owners of the
    /// fields and how to resolve the conflict.
    pub(super) fn refused(&self, object: &Object, error: ClusterError) -> Failure {
        let Object { place, id, .. } = object;
        let owners = error.owners();
        if owners.is_empty() {
            return self.failure(format!("{place}: {}", freehold_aws_errors::chain(&error)));
        }
        let fields = owners.iter().map(|owner| format!("`{}` belongs to `{}`", owner.field, owner.manager));
        let fields = fields.collect::<Vec<_>>().join(", ");
        self.failure(format!(
            "{place}: other field managers own fields of {id}: {fields}; remove these fields from the manifest, or let \
             their managers give them up"
        ))
    }
}

/// Returns the value of the annotation [`COMPONENT`] of a live object.
fn owner(live: &Value) -> Option<&str> {
    annotation(live, COMPONENT)
}

/// The stage of CustomResourceDefinitions.
const DEFINITIONS: u8 = 1;

/// Returns the stage in which objects of a kind are applied. Namespaces and other prerequisites come first, and
/// webhooks, which may refuse other objects, come last.
fn stage(kind: &str) -> u8 {
    match kind {
        "Namespace" => 0,
        "CustomResourceDefinition" => DEFINITIONS,
        "PriorityClass" | "StorageClass" | "ServiceAccount" | "ClusterRole" | "Role" => 2,
        "ClusterRoleBinding" | "RoleBinding" | "ConfigMap" | "Secret" | "PersistentVolume" => 3,
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" | "APIService" => 5,
        _ => 4,
    }
}

fn twice(objects: &[Object]) -> Option<&Object> {
    let mut seen = std::collections::BTreeSet::new();
    objects
        .iter()
        .find(|object| !seen.insert((object.id.group(), &object.id.kind, &object.id.namespace, &object.id.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_need_comes_first() {
        let mut kinds =
            ["Deployment", "MutatingWebhookConfiguration", "ConfigMap", "Namespace", "CustomResourceDefinition"];

        kinds.sort_by_key(|kind| stage(kind));

        assert_eq!(
            kinds,
            ["Namespace", "CustomResourceDefinition", "ConfigMap", "Deployment", "MutatingWebhookConfiguration"]
        );
    }
}
