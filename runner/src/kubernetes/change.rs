//! The plan of a release or a manifest: the change of each object in a cluster.

use std::fmt;

use serde_json::Value;

use super::object::Id;

/// The kinds that hold data. The deletion of a `Namespace` deletes everything in it, and the deletion of a
/// `CustomResourceDefinition` deletes all objects of its kind, in every namespace.
const HOLDERS: [&str; 4] = ["PersistentVolumeClaim", "PersistentVolume", "Namespace", "CustomResourceDefinition"];

/// The change of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Create,
    Update,
    Delete,
    Keep,
}

impl Change {
    /// Returns the change from `live`, which is `None` for an absent object, to `planned`, the result of a dry run.
    pub(crate) fn between(live: Option<&Value>, planned: &Value) -> Self {
        match live {
            None => Self::Create,
            Some(live) if stated(live) == stated(planned) => Self::Keep,
            Some(_) => Self::Update,
        }
    }
}

/// Returns an object without the fields that the API server itself sets.
fn stated(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for own in ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"] {
            metadata.remove(own);
        }
    }
    object
}

/// The changes of all objects of a release or a manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) changes: Vec<(Change, Id)>,
}

impl Plan {
    /// Returns whether no object changes.
    pub(crate) fn is_noop(&self) -> bool {
        self.changes.iter().all(|(change, _)| *change == Change::Keep)
    }

    /// Returns a log line for each object that changes.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.changes.iter().filter_map(|(change, id)| {
            let sign = match change {
                Change::Create => '+',
                Change::Update => '~',
                Change::Delete => '-',
                Change::Keep => return None,
            };
            Some(format!("  {sign} {id}"))
        })
    }

    /// Returns the names of the objects that hold data and would be deleted.
    pub(crate) fn deleted_data(&self) -> Vec<String> {
        let deleted = self.changes.iter().filter(|(change, _)| *change == Change::Delete).map(|(_, id)| id);
        deleted.filter(|id| HOLDERS.contains(&id.kind.as_str())).map(ToString::to_string).collect()
    }

    fn count(&self, wanted: Change) -> usize {
        self.changes.iter().filter(|(change, _)| *change == wanted).count()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [create, update, delete, keep] =
            [Change::Create, Change::Update, Change::Delete, Change::Keep].map(|change| self.count(change));
        write!(f, "{create} to create, {update} to update, {delete} to delete, {keep} unchanged")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_server_counts_is_no_change() {
        let object = |version: &str, replicas: u32| {
            json!({ "metadata": { "name": "a", "resourceVersion": version, "managedFields": [version] },
                "spec": { "replicas": replicas } })
        };

        assert_eq!(Change::between(None, &object("1", 1)), Change::Create);
        assert_eq!(Change::between(Some(&object("1", 1)), &object("2", 1)), Change::Keep);
        assert_eq!(Change::between(Some(&object("1", 1)), &object("2", 3)), Change::Update);
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
    }
}
