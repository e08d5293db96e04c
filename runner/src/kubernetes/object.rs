//! The objects of a manifest, and the ids that identify them in a cluster.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::yaml;

/// The identity of an object in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Id {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl Id {
    /// Returns whether both ids name the same object. It ignores the version of the API.
    pub(crate) fn is_same_object(&self, other: &Self) -> bool {
        self.group() == other.group()
            && (&self.kind, &self.namespace, &self.name) == (&other.kind, &other.namespace, &other.name)
    }

    /// Returns the API group of the object's kind. It is empty for the core API.
    pub(crate) fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// The annotation that names the install and the part of the app to which an object belongs.
pub(crate) const COMPONENT: &str = "freehold/component";

/// Returns the value of an annotation of an object.
pub(crate) fn annotation<'v>(object: &'v Value, name: &str) -> Option<&'v str> {
    object.get("metadata")?.get("annotations")?.get(name)?.as_str()
}

/// Returns the text at a key of a part of an object; empty if there is none.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// One object of a manifest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Object {
    /// The place of the object for messages, such as `manifest, document 2`.
    pub(crate) place: String,
    pub(crate) id: Id,
    pub(crate) value: Value,
}

impl Object {
    /// Reads one object, or returns a message about the key that is missing.
    pub(crate) fn new(place: String, value: Value) -> Result<Self, String> {
        let text = |path: &str| value.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty());
        let needed = |path: &str, key: &str| {
            text(path).map(str::to_owned).ok_or_else(|| format!("{place}: the object has no `{key}`"))
        };
        let id = Id {
            api_version: needed("/apiVersion", "apiVersion")?,
            kind: needed("/kind", "kind")?,
            name: needed("/metadata/name", "metadata.name")?,
            namespace: text("/metadata/namespace").map(str::to_owned),
        };
        Ok(Self { place, id, value })
    }

    /// Sets the object's namespace, or removes it when `namespace` is `None`.
    pub(crate) fn place_in(&mut self, namespace: Option<&str>) {
        self.id.namespace = namespace.map(str::to_owned);
        if let Some(metadata) = self.value.get_mut("metadata").and_then(Value::as_object_mut) {
            match namespace {
                Some(namespace) => metadata.insert("namespace".to_owned(), Value::from(namespace)),
                None => metadata.remove("namespace"),
            };
        }
    }

    /// Sets the protocol of each port that has none to `TCP`. A port in a list is identified by its number and
    /// protocol. API servers before Kubernetes 1.21 do not add the default protocol there, and refuse to apply a port
    /// without one.
    pub(crate) fn name_protocols(&mut self) {
        if ["", "apps", "batch", "extensions"].contains(&self.id.group()) {
            let key = if self.id.kind == "Service" { "port" } else { "containerPort" };
            name_protocols(&mut self.value, key);
        }
    }

    /// Sets an annotation of the object.
    pub(crate) fn annotate(&mut self, name: &str, value: &str) {
        if let Some(metadata) = self.value.get_mut("metadata") {
            set(metadata, "annotations", name, value);
        }
    }

    /// Sets labels of the object.
    pub(crate) fn label(&mut self, labels: &BTreeMap<&'static str, String>) {
        if let Some(metadata) = self.value.get_mut("metadata") {
            labels.iter().for_each(|(name, value)| set(metadata, "labels", name, value));
        }
    }

    /// Sets labels of the pods that the object makes. `live` is the object in the cluster, if it has one: only labels that
    /// its pods have already are set then, because another label in their template would replace all of its pods.
    pub(crate) fn label_pods(&mut self, labels: &BTreeMap<&'static str, String>, live: Option<&Value>) {
        let Some(place) = self.pod_template() else { return };
        let old = live.map(|live| live.pointer(place).and_then(|template| template.pointer("/metadata/labels")));
        let is_set = |name: &str| old.is_none_or(|old| old.is_some_and(|old| old.get(name).is_some()));
        let Some(template) = self.value.pointer_mut(place).and_then(Value::as_object_mut) else { return };
        for (name, value) in labels.iter().filter(|(name, _)| is_set(name)) {
            let metadata = template.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
            set(metadata, "labels", name, value);
        }
    }

    /// Returns the path of the template of the object's pods, for the kinds of Kubernetes itself that have one.
    pub(crate) fn pod_template(&self) -> Option<&'static str> {
        match (self.id.group(), self.id.kind.as_str()) {
            ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
            | ("batch", "Job")
            | ("", "ReplicationController") => Some("/spec/template"),
            ("batch", "CronJob") => Some("/spec/jobTemplate/spec/template"),
            _ => None,
        }
    }

    /// Returns the kind that the object defines, if it is a CustomResourceDefinition: the group, the kind, and whether
    /// objects of that kind have a namespace.
    pub(crate) fn defines(&self) -> Option<(&str, &str, bool)> {
        if self.id.kind != "CustomResourceDefinition" {
            return None;
        }
        let text = |path: &str| self.value.pointer(path).and_then(Value::as_str);
        Some((text("/spec/group")?, text("/spec/names/kind")?, text("/spec/scope") == Some("Namespaced")))
    }
}

/// Sets an entry of `map`, the annotations or the labels in the metadata.
fn set(metadata: &mut Value, map: &str, name: &str, value: &str) {
    let entries = metadata.as_object_mut().map(|all| all.entry(map).or_insert_with(|| Value::Object(Map::new())));
    match entries {
        Some(Value::Object(entries)) => {
            entries.insert(name.to_owned(), Value::from(value));
        }
        // The manifest has the key without a value.
        Some(other @ Value::Null) => {
            *other = Value::Object([(name.to_owned(), Value::from(value))].into_iter().collect())
        }
        // Without `metadata`, or with another type of `map`, the API server refuses the object anyway.
        Some(_) | None => {}
    }
}

fn name_protocols(value: &mut Value, key: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| name_protocols(item, key)),
        Value::Object(map) => {
            let ports = map.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
            for port in ports.filter_map(Value::as_object_mut).filter(|port| port.contains_key(key)) {
                port.entry("protocol").or_insert_with(|| Value::from("TCP"));
            }
            map.values_mut().for_each(|value| name_protocols(value, key));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Reads the objects of a manifest. Messages call it `file`. Empty documents are skipped, and the items of a `List`
/// become objects of the manifest.
///
/// # Errors
/// A message that names the document and its mistake.
pub(crate) fn read(file: &str, text: &str) -> Result<Vec<Object>, String> {
    read_except(file, text, |_| false)
}

/// Reads the objects of a manifest, like [`read`], without the documents that `skips` returns true for.
///
/// # Errors
/// A message that names the document and its mistake.
pub(crate) fn read_except(file: &str, text: &str, skips: impl Fn(&Value) -> bool) -> Result<Vec<Object>, String> {
    let documents = yaml::documents(text).map_err(|why| format!("{file} is not YAML: {why}"))?;
    let mut objects = Vec::new();
    for (number, document) in documents.into_iter().enumerate().filter(|(_, document)| !skips(document)) {
        add(&mut objects, format!("{file}, document {}", number + 1), document)?;
    }
    Ok(objects)
}

fn add(objects: &mut Vec<Object>, place: String, document: Value) -> Result<(), String> {
    match document {
        Value::Null => Ok(()),
        Value::Object(mut map)
            if map.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"))
                && map.contains_key("items") =>
        {
            let Some(Value::Array(items)) = map.remove("items") else { return Ok(()) };
            for (number, item) in items.into_iter().enumerate() {
                add(objects, format!("{place}, item {}", number + 1), item)?;
            }
            Ok(())
        }
        Value::Object(map) if map.is_empty() => Ok(()),
        value @ Value::Object(_) => {
            objects.push(Object::new(place, value)?);
            Ok(())
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(format!("{place}: it is not a Kubernetes object"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_read_with_their_places() {
        let text = "---\n# nothing\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: List\n\
                    items:\n- {apiVersion: apps/v1, kind: Deployment, metadata: {name: b, namespace: web}}\n";

        let objects = read("manifest", text).unwrap();

        let found: Vec<_> = objects.iter().map(|one| (one.place.as_str(), one.id.to_string())).collect();
        assert_eq!(
            found,
            [
                ("manifest, document 2", "ConfigMap a".to_owned()),
                ("manifest, document 3, item 1", "Deployment web/b".to_owned())
            ]
        );
    }

    #[test]
    fn mistakes_name_their_document() {
        assert_eq!(
            read("manifest", "apiVersion: v1\nkind: ConfigMap\n").unwrap_err(),
            "manifest, document 1: the object has no `metadata.name`"
        );
        assert_eq!(
            read("manifest", "kind: A\n---\nhello\n").unwrap_err(),
            "manifest, document 1: the object has no `apiVersion`"
        );
        assert!(read("manifest", "a: [").unwrap_err().starts_with("manifest is not YAML: line "));
    }

    #[test]
    fn the_protocol_of_a_port_is_written_out() {
        let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: a, \
                    ports: [{containerPort: 80}, {containerPort: 53, protocol: UDP}]}]}}}\n---\napiVersion: v1\nkind: Service\n\
                    metadata: {name: a}\nspec: {ports: [{port: 80}]}\n";

        let mut objects = read("manifest", text).unwrap();
        objects.iter_mut().for_each(Object::name_protocols);

        let ports = objects[0].value.pointer("/spec/template/spec/containers/0/ports").unwrap();
        assert_eq!(
            *ports,
            serde_json::json!([{ "containerPort": 80, "protocol": "TCP" }, { "containerPort": 53, "protocol": "UDP" }])
        );
        assert_eq!(objects[1].value.pointer("/spec/ports/0/protocol").unwrap(), "TCP");
    }

    #[test]
    fn labels_are_set_on_the_object_and_on_pods_that_have_to_be_made_anyway() {
        let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, labels: null}\nspec: {selector: {matchLabels: {app: a}}, \
                    template: {metadata: {labels: {app: a}}}}\n";
        let labels =
            BTreeMap::from([("freehold.dev/app", "shop".to_owned()), ("freehold.dev/install", "globex".to_owned())]);
        let labelled = |live: Option<&Value>| {
            let mut object = read("manifest", text).unwrap().remove(0);
            object.label(&labels);
            object.label_pods(&labels, live);
            object.value
        };
        let pods = |value: &Value| value.pointer("/spec/template/metadata/labels").unwrap().clone();

        let new = labelled(None);
        let older = read("manifest", text).unwrap().remove(0).value;

        let both = serde_json::json!({ "freehold.dev/app": "shop", "freehold.dev/install": "globex" });
        assert_eq!(new["metadata"]["labels"], both);
        assert_eq!(pods(&new)["freehold.dev/app"], "shop");
        assert_eq!(new["spec"]["selector"], older["spec"]["selector"]);
        assert_eq!(labelled(Some(&new)), new);
        assert_eq!(pods(&labelled(Some(&older))), serde_json::json!({ "app": "a" }));
    }

    #[test]
    fn another_version_of_an_api_has_the_same_object() {
        let id = |version: &str| Id {
            api_version: version.into(),
            kind: "Ingress".into(),
            namespace: Some("web".into()),
            name: "a".into(),
        };

        assert!(id("networking.k8s.io/v1").is_same_object(&id("networking.k8s.io/v1beta1")));
        assert!(!id("networking.k8s.io/v1").is_same_object(&id("extensions/v1beta1")));
    }
}
