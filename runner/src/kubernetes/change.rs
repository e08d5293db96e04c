//! The plan of a release or a manifest: the change of each object in a cluster.

use std::fmt;

use freehold_protocol::order::tags::LABELS;
use serde_json::{Value, json};

use super::object::Id;
use crate::attribute_names::{Marks, differing, with_added};

/// The kinds that hold data. The deletion of a `Namespace` deletes everything in it, and the deletion of a
/// `CustomResourceDefinition` deletes all objects of its kind, in every namespace.
const HOLDERS: [&str; 4] = ["PersistentVolumeClaim", "PersistentVolume", "Namespace", "CustomResourceDefinition"];

/// The annotation that tells Helm not to delete an object (Helm documentation, "Tell Helm not to uninstall a
/// resource"). It has the same meaning for objects of a manifest.
const POLICY: &str = "/metadata/annotations/helm.sh~1resource-policy";

/// The change of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Create,
    Update,
    Delete,
    Keep,
    /// The object would be deleted if it were not marked ([`is_marked_to_stay`]).
    Stay,
}

/// Returns whether an object has the annotation `helm.sh/resource-policy: keep`.
pub(crate) fn is_marked_to_stay(object: &Value) -> bool {
    object.pointer(POLICY).and_then(Value::as_str) == Some("keep")
}

impl Change {
    /// Returns the change from `live`, which is `None` for an absent object, to `planned`, the result of a dry run. Labels of
    /// the install that the live object lacks do not count: an earlier version of the runner did not set them.
    pub(crate) fn between(live: Option<&Value>, planned: &Value) -> Self {
        match live {
            None => Self::Create,
            Some(live) if stated(&labelled(live, planned)) == stated(planned) => Self::Keep,
            Some(_) => Self::Update,
        }
    }

    /// Returns the change of an object that its component no longer contains. Nothing changes if the object is absent,
    /// or if somebody has already deleted it and a finalizer delays the deletion.
    pub(crate) fn removal(live: Option<&Value>, is_marked: bool) -> Self {
        match live {
            None => Self::Keep,
            Some(live) if live.pointer("/metadata/deletionTimestamp").is_some() => Self::Keep,
            Some(_) if is_marked => Self::Stay,
            Some(_) => Self::Delete,
        }
    }
}

/// Returns a live object with the labels of the install that it lacks and gets in `planned`.
fn labelled(live: &Value, planned: &Value) -> Value {
    let labels = |object| Value::pointer(object, "/metadata/labels");
    let mut labelled = live.clone();
    let metadata = labelled.get_mut("metadata").and_then(Value::as_object_mut);
    if let (Some(metadata), Some(all)) = (metadata, with_added(labels(live), labels(planned), &LABELS)) {
        metadata.insert("labels".to_owned(), Value::Object(all));
    }
    labelled
}

/// Returns an object without the fields that the API server itself sets, and without its status. Controllers write the
/// status, and may do so between the read of the object and the dry run.
fn stated(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for own in ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"] {
            metadata.remove(own);
        }
    }
    object
}

/// Returns the names of the attributes in which a live object differs from the result of a dry run. The names of a
/// secret's keys are left out, and labels of the install that the object lacks.
pub(crate) fn attributes_of_drift(live: &Value, planned: &Value) -> Vec<String> {
    let hidden = json!({ "data": true, "stringData": true });
    let is_secret = live.get("kind").and_then(Value::as_str) == Some("Secret");
    let sensitive = if is_secret { [&hidden; 2] } else { Marks::NONE.sensitive };
    differing(&stated(&labelled(live, planned)), &stated(planned), Marks { sensitive, ..Marks::NONE })
}

/// The changes of all objects of a release or a manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) changes: Vec<(Change, Id)>,
}

impl Plan {
    /// Returns whether no object changes.
    pub(crate) fn is_noop(&self) -> bool {
        self.changes.iter().all(|(change, _)| matches!(change, Change::Keep | Change::Stay))
    }

    /// Returns a log line for each object that changes, and for each that stays because it is marked.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.changes.iter().filter_map(|(change, id)| {
            let sign = match change {
                Change::Create => '+',
                Change::Update => '~',
                Change::Delete => '-',
                Change::Keep => return None,
                Change::Stay => {
                    return Some(format!(
                        "  = {id} stays in the cluster: it is marked `helm.sh/resource-policy: keep`"
                    ));
                }
            };
            Some(format!("  {sign} {id}"))
        })
    }

    /// Returns the names of the objects that hold data and would be deleted.
    pub(crate) fn deleted_data(&self) -> Vec<String> {
        self.deleted().filter(|id| HOLDERS.contains(&id.kind.as_str())).map(ToString::to_string).collect()
    }

    /// Returns the objects that would be deleted.
    pub(crate) fn deleted(&self) -> impl Iterator<Item = &Id> {
        self.changes.iter().filter(|(change, _)| *change == Change::Delete).map(|(_, id)| id)
    }

    fn count(&self, wanted: Change) -> usize {
        self.changes.iter().filter(|(change, _)| *change == wanted).count()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [create, update, delete] =
            [Change::Create, Change::Update, Change::Delete].map(|change| self.count(change));
        let unchanged = self.count(Change::Keep) + self.count(Change::Stay);
        write!(f, "{create} to create, {update} to update, {delete} to delete, {unchanged} unchanged")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_counts_is_not_a_change() {
        let object = |version: &str, replicas: u32| {
            json!({ "metadata": { "name": "a", "resourceVersion": version, "managedFields": [version] },
                "spec": { "replicas": replicas } })
        };

        assert_eq!(Change::between(None, &object("1", 1)), Change::Create);
        assert_eq!(Change::between(Some(&object("1", 1)), &object("2", 1)), Change::Keep);
        assert_eq!(Change::between(Some(&object("1", 1)), &object("2", 3)), Change::Update);
    }

    #[test]
    fn the_status_that_controllers_write_is_neither_a_change_nor_drift() {
        let object = |ready: u32, replicas: u32| {
            json!({ "kind": "Deployment", "metadata": { "name": "a" }, "spec": { "replicas": replicas },
                "status": { "readyReplicas": ready } })
        };

        assert_eq!(Change::between(Some(&object(1, 2)), &object(2, 2)), Change::Keep);
        assert!(attributes_of_drift(&object(1, 2), &object(2, 2)).is_empty());
        assert_eq!(attributes_of_drift(&object(1, 2), &object(2, 3)), ["spec.replicas"]);
    }

    #[test]
    fn a_label_of_ours_that_an_object_lacks_is_neither_a_change_nor_drift() {
        let object = |labels: &Value| json!({ "kind": "ConfigMap", "metadata": { "name": "a", "labels": labels } });
        let planned = object(&json!({ "app": "web", "freehold.dev/app": "shop", "freehold.dev/install": "globex" }));
        let between = |live: &Value| (Change::between(Some(live), &planned), attributes_of_drift(live, &planned));

        assert_eq!(between(&object(&json!({ "app": "web" }))), (Change::Keep, Vec::new()));
        assert_eq!(between(&object(&Value::Null)), (Change::Update, vec!["metadata.labels.app".to_owned()]));
        let other = object(&json!({ "app": "web", "freehold.dev/app": "other", "freehold.dev/install": "globex" }));
        assert_eq!(between(&other), (Change::Update, vec!["metadata.labels.freehold.dev/app".to_owned()]));
    }

    #[test]
    fn a_plan_has_counts_and_names() {
        let id = |name: &str| Id {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("web".into()),
            name: name.into(),
        };
        let changes = vec![(Change::Create, id("a")), (Change::Keep, id("b")), (Change::Delete, id("c"))];

        let plan = Plan { changes };

        assert_eq!(plan.to_string(), "1 to create, 0 to update, 1 to delete, 1 unchanged");
        assert!(plan.deleted_data().is_empty());
        assert_eq!(plan.lines().collect::<Vec<_>>(), ["  + ConfigMap web/a", "  - ConfigMap web/c"]);
    }

    #[test]
    fn an_object_stays_if_it_is_marked_or_already_deleted() {
        let marked = |policy: &str| json!({ "metadata": { "annotations": { "helm.sh/resource-policy": policy } } });
        let ending = json!({ "metadata": { "deletionTimestamp": "2026-11-23T20:00:00Z" } });
        let removal = |live: &Value| Change::removal(Some(live), is_marked_to_stay(live));

        assert_eq!(removal(&marked("keep")), Change::Stay);
        assert_eq!(removal(&marked("delete")), Change::Delete);
        assert_eq!(removal(&json!({ "metadata": {} })), Change::Delete);
        assert_eq!(removal(&ending), Change::Keep);
        assert_eq!(Change::removal(None, false), Change::Keep);
    }

    #[test]
    fn deleted_objects_that_hold_data_are_named() {
        let id = |kind: &str, namespace: Option<&str>, name: &str| Id {
            api_version: "v1".into(),
            kind: kind.into(),
            namespace: namespace.map(str::to_owned),
            name: name.into(),
        };
        let claim = id("PersistentVolumeClaim", Some("web"), "data");
        let definition = id("CustomResourceDefinition", None, "databases.example.org");
        let plan = |change| Plan { changes: vec![(change, claim.clone()), (change, definition.clone())] };

        assert_eq!(
            plan(Change::Delete).deleted_data(),
            ["PersistentVolumeClaim web/data", "CustomResourceDefinition databases.example.org"]
        );
        assert!(plan(Change::Keep).deleted_data().is_empty());
        assert!(plan(Change::Keep).is_noop() && !plan(Change::Delete).is_noop());
        let stay = plan(Change::Stay);
        assert!(stay.is_noop() && stay.deleted_data().is_empty());
        assert_eq!(stay.to_string(), "0 to create, 0 to update, 0 to delete, 2 unchanged");
        let line =
            "  = PersistentVolumeClaim web/data stays in the cluster: it is marked `helm.sh/resource-policy: keep`";
        assert_eq!(stay.lines().next().unwrap(), line);
    }
}
