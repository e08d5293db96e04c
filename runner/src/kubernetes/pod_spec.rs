//! Finds the images in the pod specs of an object.

use std::collections::BTreeSet;

use serde_json::Value;

/// The lists of a pod spec whose items have an `image`.
const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// Returns the images of all pod specs in an object, each once. A pod spec can be anywhere in the object: the path
/// depends on the kind, operators define kinds of their own, and a list contains objects. Texts are not parsed, so a
/// pod spec in the data of a ConfigMap is not found.
pub(crate) fn images(object: &Value) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    add(object, &mut found);
    found
}

fn add<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| add(item, found)),
        Value::Object(map) => {
            let items = |key: &str| map.get(key).and_then(Value::as_array).into_iter().flatten();
            for container in CONTAINERS.into_iter().flat_map(items) {
                found.extend(container.get("image").and_then(Value::as_str));
            }
            // An image can also be a volume, from Kubernetes 1.31.
            for volume in items("volumes") {
                found.extend(volume.pointer("/image/reference").and_then(Value::as_str));
            }
            map.values().for_each(|value| add(value, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn of(object: &Value) -> Vec<&str> {
        images(object).into_iter().collect()
    }

    #[test]
    fn every_container_of_a_pod_is_found() {
        let pod = json!({ "kind": "Pod", "spec": {
            "containers": [{ "name": "a", "image": "a:1" }, { "name": "without" }],
            "initContainers": [{ "image": "b:1" }],
            "ephemeralContainers": [{ "image": "c:1" }],
            "volumes": [{ "name": "v", "image": { "reference": "d:1" } }, { "name": "w", "emptyDir": {} }],
        } });

        assert_eq!(of(&pod), ["a:1", "b:1", "c:1", "d:1"]);
    }

    #[test]
    fn what_is_not_a_pod_spec_has_no_image() {
        let definition = json!({ "kind": "CustomResourceDefinition", "spec": { "properties": {
            "containers": { "type": "array", "items": { "properties": { "image": { "type": "string" } } } } } } });
        let map = json!({ "kind": "ConfigMap", "data": { "pod.yaml": "containers: [{image: \"a:1\"}]" } });

        assert!(of(&definition).is_empty() && of(&map).is_empty());
    }

    proptest! {
        /// The images are found at whatever path the kind has its pod spec: `spec` of a Pod, `spec.template.spec` of a
        /// Deployment, `spec.jobTemplate.spec.template.spec` of a CronJob, an item of a list, or one of an operator.
        #[test]
        fn a_pod_spec_is_found_at_every_path(path in prop::collection::vec("[a-z]{1,8}|[0-3]", 0..8), list in 0..3_usize) {
            let mut object = json!({ CONTAINERS[list]: [{ "image": "registry.example/a:1" }] });
            for part in path {
                object = match part.parse::<usize>() {
                    Ok(before) => Value::Array((0..before).map(Value::from).chain([object]).collect()),
                    Err(_) => json!({ part: object, "other": "x" }),
                };
            }

            prop_assert_eq!(of(&object), ["registry.example/a:1"]);
        }
    }
}
