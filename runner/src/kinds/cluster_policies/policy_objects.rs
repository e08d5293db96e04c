//! The objects in the text of a Kyverno policy.

use serde_json::Value;

use crate::kubernetes::{Object, documents};

/// The API group of Kyverno's kinds, and the end of its other groups, such as `policies.kyverno.io`.
const GROUP: &str = "kyverno.io";

/// Returns the objects of a policy's text. Other kinds than Kyverno's are refused: a policy limits what the app does, and
/// makes nothing.
///
/// # Errors
/// A message with the mistake.
pub(super) fn read(policy: &str, text: &str) -> Result<Vec<Object>, String> {
    let documents = documents(text).map_err(|why| format!("the text is not YAML: {why}"))?;
    let mut objects = Vec::new();
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        let object = Object::new(format!("policy `{policy}`"), document)?;
        let group = object.id.group();
        if group != GROUP && !group.strip_suffix(GROUP).is_some_and(|before| before.ends_with('.')) {
            return Err(format!("`{}` of `{}` is not a kind of Kyverno", object.id.kind, object.id.api_version));
        }
        objects.push(object);
    }
    if objects.is_empty() {
        return Err("the text has no policy".to_owned());
    }
    Ok(objects)
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
                "`ClusterRoleBinding` of `rbac.authorization.k8s.io/v1` is not a kind of Kyverno",
            ),
            (one("evilkyverno.io/v1", "ClusterPolicy"), "is not a kind of Kyverno"),
            (one("v1", "Pod"), "is not a kind of Kyverno"),
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
        #[test]
        fn a_text_never_panics(text in "[ -~\n]{0,200}") {
            let _ = read("p", &text);
        }
    }
}
