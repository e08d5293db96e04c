//! Recognizes the updates of a plan that only add tags of the install. The first plan by a version of the runner that sets
//! more tags has such an update of each resource that an earlier version made.

use freehold_protocol::names::{APP_TAG, COMPONENT_TAG, INSTALL_TAG, TENANT_TAG};
use serde_json::Value;

use crate::attribute_names::{Marks, differing, with_added};

/// The tags that are for people. A resource that lacks the tag of its owner is different: conditions of IAM read that tag.
const FOR_PEOPLE: [&str; 4] = [TENANT_TAG, APP_TAG, INSTALL_TAG, COMPONENT_TAG];
/// The attribute with all tags of a resource: its own ones and the default tags of the provider.
const ALL_TAGS: &str = "tags_all";

/// Returns the attributes `before` of a resource with the tags of the install that it lacks and gets in `after`. A tag that
/// it has with another value stays.
pub(super) fn with_added_tags(before: &Value, after: &Value) -> Value {
    let mut tagged = before.clone();
    let tags = with_added(before.get(ALL_TAGS), after.get(ALL_TAGS), &FOR_PEOPLE);
    if let (Some(attributes), Some(tags)) = (tagged.as_object_mut(), tags) {
        attributes.insert(ALL_TAGS.to_owned(), Value::Object(tags));
    }
    tagged
}

/// Returns whether an update only adds tags of the install. `unknown` has `true` for each value that is known only after
/// the apply: an update with such a value may change anything.
pub(super) fn only_adds_tags(before: &Value, after: &Value, unknown: &Value) -> bool {
    let tagged = with_added_tags(before, after);
    tagged != *before && !has_true(unknown) && differing(&tagged, after, Marks::NONE).is_empty()
}

/// Returns whether a value is `true`, or has `true` anywhere in it.
fn has_true(value: &Value) -> bool {
    match value {
        Value::Bool(is_true) => *is_true,
        Value::Array(items) => items.iter().any(has_true),
        Value::Object(entries) => entries.values().any(has_true),
        Value::Null | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_update_that_only_adds_our_tags_is_recognized() {
        let before =
            json!({ "name": "a", "tags": { "team": "x" }, "tags_all": { "team": "x", "freehold:owner": "a--b" } });
        let with = |tag: &str, value: &str| {
            let mut after = before.clone();
            after["tags_all"][tag] = value.into();
            after
        };
        let only = |after: &Value| only_adds_tags(&before, after, &json!({}));

        assert!(only(&with("freehold:app", "shop")));
        assert!(!only(&before) && !only(&with("env", "test")) && !only(&with("freehold:owner", "a--c")));
        assert!(!only(&json!({ "name": "b", "tags": { "team": "x" },
            "tags_all": { "team": "x", "freehold:owner": "a--b", "freehold:app": "shop" } })));
        let mut unknown = with("freehold:app", "shop");
        unknown.as_object_mut().unwrap().remove("name");
        assert!(!only_adds_tags(&before, &unknown, &json!({ "name": true })));
        // Terraform leaves the value of a new entry out of `after` until the value is known.
        let of_entry = json!({ "tags": { "build": true }, "rules": [{ "arn": true }] });
        assert!(!only_adds_tags(&before, &with("freehold:app", "shop"), &of_entry));
        let known = json!({ "tags": {}, "rules": [{ "arn": false }] });
        assert!(only_adds_tags(&before, &with("freehold:app", "shop"), &known));
        let other_app = with("freehold:app", "other");
        assert!(!only_adds_tags(&other_app, &with("freehold:app", "shop"), &json!({})));
    }

    #[test]
    fn a_resource_without_any_tags_gets_ours_too() {
        let after = json!({ "tags_all": { "freehold:app": "shop", "freehold:install": "globex" } });

        assert!(only_adds_tags(&json!({ "tags_all": null }), &after, &json!({})));
        assert!(!only_adds_tags(&Value::Null, &after, &json!({})), "a new resource has no attributes before");
    }
}
