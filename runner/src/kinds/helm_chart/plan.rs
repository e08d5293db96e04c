//! Makes the plan of a release: compares each of its objects with the cluster.

use freehold_protocol::order::InstallChart;
use serde_json::Value;

use super::program::{Helm, Hooks};
use super::release::Release;
use super::releases::{self, Revision};
use crate::job::Job;
use crate::job::failure::{Failure, until_stopped};
use crate::kinds::cluster_images;
use crate::kubernetes::{
    Api, Change, ClusterError, Id, Object, Plan, documents, is_marked_to_stay, read_except, read_objects,
};

/// The name of the rendered objects in messages.
const CHART: &str = "the rendered chart";
/// The path of the annotation that makes an object a hook.
const HOOK: &str = "/metadata/annotations/helm.sh~1hook";
/// The paths of the two annotations that name the release of an object.
const RELEASE_NAME: &str = "/metadata/annotations/meta.helm.sh~1release-name";
const RELEASE_NAMESPACE: &str = "/metadata/annotations/meta.helm.sh~1release-namespace";

/// The plan of one release.
pub(super) struct ReleasePlan {
    /// The rendered objects of the chart with its hooks, as YAML.
    pub(super) rendered: String,
    pub(super) changes: Plan,
    /// The objects of the release.
    pub(super) objects: Vec<Object>,
    /// The objects that hooks make.
    pub(super) hooks: Vec<Value>,
}

/// Renders the chart, checks its images, and compares its objects with those in the cluster. It changes nothing.
/// `registry` is the address of the install registry.
pub(super) async fn make(
    job: &Job,
    work: &InstallChart,
    helm: &Helm<'_>,
    api: &Api,
    (values, registry): (&[String], &str),
    revisions: &[Revision],
) -> Result<ReleasePlan, Failure> {
    let capabilities = until_stopped(job, async { Ok(api.capabilities().await?) }).await?;
    let is_upgrade = releases::is_deployed(revisions);
    let render = async |hooks| {
        helm.template(values, &capabilities, is_upgrade, hooks).await.map_err(|failure| named(work, failure))
    };
    let rendered = render(Hooks::Shown).await?;
    let before = match releases::upgraded(revisions) {
        Some(number) => helm.manifest(&[&format!("--revision={number}")]).await?,
        None => String::new(),
    };
    let unreadable = |why: String| Failure::of_component(&work.component, why);
    let release = helm.release();
    let (all, new) = match documents(&rendered) {
        Ok(all) => {
            let is_hook = |object: &Value| hook(object).is_some();
            (all, read_except(CHART, &rendered, is_hook).map_err(unreadable)?)
        }
        // Helm accepts YAML that this runner cannot read. An object of the release that cannot be read is reported
        // before a hook.
        Err(why) => {
            let without_hooks = render(Hooks::LeftOut).await?;
            read_objects(CHART, &without_hooks).map_err(unreadable)?;
            return Err(unreadable(format!(
                "a hook of the chart cannot be read, so no policy can be evaluated on it and its images are not known; correct \
                 the YAML of the hook: {why}"
            )));
        }
    };
    let made = all.iter().filter(|object| hook(object).is_none_or(|when| !is_test(when)));
    cluster_images::look(job, work.component.as_str(), registry, made)?;
    let old = read_objects("the deployed release", &before).map_err(unreadable)?;
    let compare = Compare { api, release, work };
    let compared = until_stopped(job, async {
        let (new, old) = (compare.place(new).await?, compare.place(old).await?);
        let changes = compare.changes(&new, &old).await?;
        Ok((changes, new))
    });
    let (changes, objects) = compared.await?;
    let hooks = all.into_iter().filter(|object| hook(object).is_some_and(|when| !is_test(when))).collect();
    Ok(ReleasePlan { rendered, changes, objects, hooks })
}

/// Returns the deletions that an uninstall of the release makes.
pub(super) async fn removal(job: &Job, work: &InstallChart, helm: &Helm<'_>, api: &Api) -> Result<Plan, Failure> {
    let unreadable = |why: String| Failure::of_component(&work.component, why);
    let old = read_objects("the release", &helm.manifest(&[]).await?).map_err(unreadable)?;
    let compare = Compare { api, release: helm.release(), work };
    until_stopped(job, async {
        let mut changes = Vec::new();
        for object in compare.place(old).await? {
            let live = api.get(&object.id).await?;
            // An uninstall reads the annotation in the release, and not the one of the live object.
            changes.push((Change::removal(live.as_ref(), is_marked_to_stay(&object.value)), object.id));
        }
        Ok(Plan { changes })
    })
    .await
}

fn named(work: &InstallChart, failure: Failure) -> Failure {
    match failure {
        Failure::Failed { reason, partial } => Failure::Failed {
            reason: format!("component `{}`: the chart does not render: {reason}", work.component),
            partial,
        },
        other @ (Failure::Stopped { .. } | Failure::Waits(_) | Failure::NotApproved { .. }) => other,
    }
}

struct Compare<'a> {
    api: &'a Api,
    release: &'a Release,
    work: &'a InstallChart,
}

impl Compare<'_> {
    /// Sets the namespace of each object: the namespace that the object names, or that of the release. Objects of
    /// cluster-wide kinds get no namespace.
    async fn place(&self, objects: Vec<Object>) -> Result<Vec<Object>, Failure> {
        let mut placed = Vec::new();
        for mut object in objects {
            let resource = self.api.resource(&object.id.api_version, &object.id.kind).await?;
            let own = object.id.namespace.clone().unwrap_or_else(|| self.release.namespace.clone());
            // The chart itself defines a kind that the cluster does not know yet. Such a kind counts as namespaced.
            let namespaced = resource.is_none_or(|resource| resource.namespaced);
            object.place_in(namespaced.then_some(own.as_str()));
            placed.push(object);
        }
        Ok(placed)
    }

    async fn changes(&self, new: &[Object], old: &[Object]) -> Result<Plan, Failure> {
        let mut changes = Vec::new();
        for object in new {
            let before = old.iter().find(|before| before.id.is_same_object(&object.id));
            changes.push((self.change(object, before).await?, object.id.clone()));
        }
        for gone in old.iter().filter(|old| !new.iter().any(|new| new.id.is_same_object(&old.id))) {
            let live = self.api.get(&gone.id).await?;
            // An upgrade reads the annotation of the live object, and not the one in the release.
            let is_marked = live.as_ref().is_some_and(is_marked_to_stay);
            changes.push((Change::removal(live.as_ref(), is_marked), gone.id.clone()));
        }
        Ok(Plan { changes })
    }

    async fn change(&self, object: &Object, before: Option<&Object>) -> Result<Change, Failure> {
        let live = self.api.get(&object.id).await?;
        if let Some(live) = &live {
            // Helm only creates the definitions of kinds in `crds/` and never changes them.
            if object.id.kind == "CustomResourceDefinition" && before.is_none() && owner(live).is_none() {
                return Ok(Change::Keep);
            }
            self.check_owner(&object.id, live)?;
        }
        // Helm also removes the fields that are missing in the new manifest. The dry run of a merge does not show that.
        if live.is_some() && before.is_some_and(|before| before.value != object.value) {
            return Ok(Change::Update);
        }
        match self.api.merge_change(object, live.as_ref()).await {
            Ok(change) => Ok(change),
            // Webhooks with side effects refuse every dry run (Kubernetes API, `sideEffects`).
            Err(ClusterError::Refused { message, .. }) if message.contains("dry run") => {
                Ok(if live.is_some() { Change::Update } else { Change::Create })
            }
            Err(error) => {
                let why = Failure::from(error);
                Err(match why {
                    Failure::Failed { reason, partial } => {
                        let (component, place) = (&self.work.component, &object.place);
                        Failure::Failed { reason: format!("component `{component}`, {place}: {reason}"), partial }
                    }
                    other @ (Failure::Stopped { .. } | Failure::Waits(_) | Failure::NotApproved { .. }) => other,
                })
            }
        }
    }

    /// Refuses a live object that does not belong to this release. Helm would also refuse the object, but only after it
    /// has changed other objects.
    fn check_owner(&self, id: &Id, live: &Value) -> Result<(), Failure> {
        let owner = owner(live);
        let (name, namespace) = (self.release.name.as_str(), self.release.namespace.as_str());
        if self.work.take_ownership || owner == Some((name, namespace)) {
            return Ok(());
        }
        let whose = match owner {
            Some((name, namespace)) => format!("release `{name}` of namespace `{namespace}`"),
            None => "no release of Helm".to_owned(),
        };
        Err(Failure::new(format!(
            "component `{}`: {id} is in the cluster already and belongs to {whose}; delete it, or let the chart take \
             it over with `take_ownership = true`",
            self.work.component
        )))
    }
}

/// Returns the events at which Helm makes an object, if the object is a hook.
fn hook(object: &Value) -> Option<&str> {
    object.pointer(HOOK).and_then(Value::as_str)
}

/// Returns whether Helm makes a hook in `helm test` only, which no job runs.
fn is_test(when: &str) -> bool {
    when.split(',').all(|event| event.trim().starts_with("test"))
}

/// Returns the name and the namespace of the release to which a live object belongs.
pub(super) fn owner(live: &Value) -> Option<(&str, &str)> {
    let text = |path: &str| live.pointer(path).and_then(Value::as_str);
    Some((text(RELEASE_NAME)?, text(RELEASE_NAMESPACE)?))
}
