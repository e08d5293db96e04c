//! The objects in the text of a Kyverno policy.

use freehold_protocol::order::policy_scope::is_kind_of_kyverno;
use serde_json::{Map, Value};

use crate::kubernetes::{Object, documents};

/// The keys of an object and of its metadata that come from the text. The cluster sets the other keys.
const KEYS: [&str; 4] = ["apiVersion", "kind", "metadata", "spec"];
const OF_METADATA: [&str; 4] = ["name", "namespace", "labels", "annotations"];

/// Returns the objects of a policy's text.
///
/// # Errors
/// A message with the mistake.
pub(super) fn read(policy: &str, text: &str) -> Result<Vec<Object>, String> {
    let documents = documents(text).map_err(|why| format!("the text is not YAML: {why}"))?;
    let mut objects = Vec::new();
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        let object = Object::new(format!("policy `{policy}`"), own_keys(document))?;
        let (api_version, kind) = (&object.id.api_version, &object.id.kind);
        if !is_kind_of_kyverno(api_version, kind) {
            return Err(format!("`{kind}` of `{api_version}` is not a kind of policy that Kyverno has"));
        }
        objects.push(object);
    }
    if objects.is_empty() {
        return Err("the text has no policy".to_owned());
    }
    Ok(objects)
}

fn own_keys(document: Value) -> Value {
    let Value::Object(mut object) = document else { return document };
    object.retain(|key, _| KEYS.contains(&key.as_str()));
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        retain_known(metadata);
    }
    Value::Object(object)
}

fn retain_known(metadata: &mut Map<String, Value>) {
    metadata.retain(|key, value| OF_METADATA.contains(&key.as_str()) && !value.is_null());
}

/// Returns whether `live` has everything that `wanted` has. It may have more: the API server and Kyverno add fields and
/// default values. A list has to have the same number of items.
pub(super) fn contains(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| live.get(key).is_some_and(|live| contains(live, wanted)))
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| contains(live, wanted))
        }
        (live, wanted) => live == wanted,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_has_policies_of_kyverno_and_nothing_else() {
        let one =
            |api: &str, kind: &str| format!("apiVersion: {api}\nkind: {kind}\nmetadata: {{name: a}}\nspec: {{}}\n");
        let named =
            |text: &str| read("p", text).map(|all| all.iter().map(|one| one.id.to_string()).collect::<Vec<_>>());

        let both = format!(
            "# a comment\n---\n{}---\n{}",
            one("kyverno.io/v1", "ClusterPolicy"),
            one("policies.kyverno.io/v1", "ValidatingPolicy")
        );
        assert_eq!(named(&both).unwrap(), ["ClusterPolicy a", "ValidatingPolicy a"]);
        for (text, part) in [
            (
                one("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
                "`ClusterRoleBinding` of `rbac.authorization.k8s.io/v1` is not a kind of policy",
            ),
            (one("evilkyverno.io/v1", "ClusterPolicy"), "is not a kind of policy"),
            (one("kyverno.io/v2", "PolicyException"), "is not a kind of policy"),
            (one("kyverno.io/v2", "ClusterCleanupPolicy"), "is not a kind of policy"),
            (one("policies.kyverno.io/v1", "MutatingPolicy"), "is not a kind of policy"),
            (one("v1", "Pod"), "is not a kind of policy"),
            ("kind: ClusterPolicy\n".to_owned(), "policy `p`: the object has no `apiVersion`"),
            ("a: [1\n".to_owned(), "the text is not YAML: line"),
            ("# nothing\n".to_owned(), "the text has no policy"),
            ("- 1\n".to_owned(), "has no `apiVersion`"),
        ] {
            let why = named(&text).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn what_is_added_in_the_cluster_is_no_change() {
        let wanted = json!({ "spec": { "rules": [{ "name": "a", "match": { "any": [] } }], "background": false } });
        let live = json!({ "metadata": { "uid": "1" }, "status": {}, "spec": { "admission": true, "background": false,
            "rules": [{ "name": "a", "match": { "any": [] }, "skipBackgroundRequests": true }] } });
        let more = json!({ "spec": { "background": false, "rules": [{ "name": "a", "match": { "any": [] } }, { "name": "b" }] } });
        let other = json!({ "spec": { "background": true, "rules": [{ "name": "a", "match": { "any": [] } }] } });

        assert!(contains(&live, &wanted));
        assert!(!contains(&more, &wanted) && !contains(&other, &wanted) && !contains(&json!({}), &wanted));
    }

    proptest! {
        /// Whatever else a text has, the cluster gets the keys that a policy consists of.
        #[test]
        fn other_keys_than_those_of_a_policy_are_left_out(
            keys in proptest::collection::btree_set("[a-z]{1,12}|status|metadata|spec", 0..6),
            of_metadata in proptest::collection::btree_set("[a-z]{1,12}|finalizers|ownerReferences|uid|labels", 0..6),
        ) {
            let metadata: Map<String, Value> = of_metadata.iter().map(|key| (key.clone(), json!({ "a": "b" }))).collect();
            let mut object: Map<String, Value> = keys.iter().map(|key| (key.clone(), json!(1))).collect();
            object.insert("metadata".to_owned(), Value::Object(metadata));
            object["metadata"]["name"] = json!("a");
            object.insert("apiVersion".to_owned(), json!("kyverno.io/v1"));
            object.insert("kind".to_owned(), json!("ClusterPolicy"));

            let read = read("p", &Value::Object(object).to_string()).unwrap();

            let found = read[0].value.as_object().unwrap();
            prop_assert!(found.keys().all(|key| KEYS.contains(&key.as_str())), "{:?}", found);
            let found = found["metadata"].as_object().unwrap();
            prop_assert!(found.keys().all(|key| OF_METADATA.contains(&key.as_str())), "{:?}", found);
            prop_assert_eq!(found.contains_key("labels"), of_metadata.contains("labels"));
        }
    }
}
