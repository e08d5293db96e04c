//! Compares two values of a resource: the names of the attributes in which they differ, without the values, and the entries
//! that one of them lacks.

use serde_json::{Map, Value};

/// The number of names in a path. A deeper value counts as its parent.
const DEPTH: usize = 4;

/// Facts about the two values that the values themselves do not contain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marks<'a> {
    /// `true` for each sensitive value, in the form of the values. The names below such a value are not shown.
    pub(crate) sensitive: [&'a Value; 2],
    /// `true` for each value that will only be known after an apply.
    pub(crate) unknown: &'a Value,
}

impl Marks<'_> {
    pub(crate) const NONE: Marks<'static> = Marks { sensitive: [&Value::Null; 2], unknown: &Value::Null };

    fn of(self, name: &str) -> Self {
        let of = |value| Value::get(value, name).unwrap_or(&Value::Null);
        let [before, after] = self.sensitive;
        Self { sensitive: [of(before), of(after)], unknown: of(self.unknown) }
    }

    fn is_sensitive(self) -> bool {
        self.sensitive.contains(&&Value::Bool(true))
    }
}

/// Returns the paths at which `before` and `after` differ, such as `tags.Owner`, sorted. A list counts as one
/// attribute. Attributes that will only be known after an apply are left out, unless nothing else differs.
pub(crate) fn differing(before: &Value, after: &Value, marks: Marks<'_>) -> Vec<String> {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    let none = Map::new();
    let (before, after) = (before.as_object().unwrap_or(&none), after.as_object().unwrap_or(&none));
    children("", (before, after), marks, &mut (&mut known, &mut unknown));
    let mut names = if known.is_empty() { unknown } else { known };
    names.sort();
    names
}

/// Returns the entries of `before` with those entries of `after` that `before` lacks and whose keys are in `keys`; `None` if
/// there is no such entry.
pub(crate) fn with_added(before: Option<&Value>, after: Option<&Value>, keys: &[&str]) -> Option<Map<String, Value>> {
    let of = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let mut entries = of(before);
    let is_added = |key: &String| keys.contains(&key.as_str()) && !entries.contains_key(key);
    let added: Map<String, Value> = of(after).into_iter().filter(|(key, _)| is_added(key)).collect();
    let is_some = !added.is_empty();
    entries.extend(added);
    is_some.then_some(entries)
}

fn children(
    path: &str,
    (before, after): (&Map<String, Value>, &Map<String, Value>),
    marks: Marks<'_>,
    found: &mut (&mut Vec<String>, &mut Vec<String>),
) {
    let only_after = after.keys().filter(|name| !before.contains_key(*name));
    for name in before.keys().chain(only_after) {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        walk(path, (before.get(name), after.get(name)), marks.of(name), found);
    }
}

fn walk(
    path: String,
    (before, after): (Option<&Value>, Option<&Value>),
    marks: Marks<'_>,
    found: &mut (&mut Vec<String>, &mut Vec<String>),
) {
    let is_null = |value: Option<&Value>| value.is_none_or(Value::is_null);
    if before == after || is_null(before) && is_null(after) && *marks.unknown != Value::Bool(true) {
        return;
    }
    if *marks.unknown == Value::Bool(true) {
        found.1.push(path);
        return;
    }
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after)))
            if !marks.is_sensitive() && path.split('.').count() < DEPTH =>
        {
            children(&path, (before, after), marks, found);
        }
        _ => found.0.push(path),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn names(before: &Value, after: &Value) -> Vec<String> {
        differing(before, after, Marks::NONE)
    }

    #[test]
    fn the_names_of_what_differs_are_paths_without_values() {
        let before = json!({ "size": 3, "tags": { "Owner": "ada", "Team": "shop" }, "rules": [1, 2], "gone": "x" });
        let after = json!({ "size": 4, "tags": { "Owner": "bob", "Team": "shop" }, "rules": [1, 3], "new": "y" });

        assert_eq!(names(&before, &after), ["gone", "new", "rules", "size", "tags.Owner"]);
        assert!(names(&before, &before).is_empty());
        assert!(names(&json!({ "a": null }), &json!({})).is_empty(), "null is the same as absent");
    }

    #[test]
    fn below_what_is_sensitive_no_name_is_told() {
        let (before, after) = (json!({ "env": { "KEY_a": "1" } }), json!({ "env": { "KEY_b": "1" } }));
        let sensitive = json!({ "env": true });

        let found = |one, other| differing(&before, &after, Marks { sensitive: [one, other], ..Marks::NONE });

        assert_eq!(found(&Value::Null, &Value::Null), ["env.KEY_a", "env.KEY_b"]);
        assert_eq!(found(&sensitive, &Value::Null), ["env"]);
        assert_eq!(found(&Value::Null, &sensitive), ["env"]);
    }

    #[test]
    fn what_is_known_only_after_an_apply_counts_only_alone() {
        let (before, after) =
            (json!({ "tags": { "a": "1" }, "tags_all": {}, "id": "i" }), json!({ "tags": {}, "id": "i" }));
        let unknown = json!({ "tags_all": true });

        let found = |after| differing(&before, after, Marks { unknown: &unknown, ..Marks::NONE });

        assert_eq!(found(&after), ["tags.a"]);
        assert_eq!(found(&json!({ "tags": { "a": "1" }, "id": "i" })), ["tags_all"]);
    }

    #[test]
    fn only_the_named_entries_that_are_missing_are_added() {
        let (before, after) = (json!({ "a": "1", "c": "3" }), json!({ "a": "2", "b": "2", "d": "4" }));
        let added = |keys: &[&str]| with_added(Some(&before), Some(&after), keys).map(Value::from);

        assert_eq!(added(&["a", "b", "c"]), Some(json!({ "a": "1", "b": "2", "c": "3" })));
        assert_eq!(added(&["a", "c"]), None);
        assert_eq!(with_added(None, Some(&after), &["d"]).map(Value::from), Some(json!({ "d": "4" })));
        assert_eq!(with_added(Some(&before), None, &["a"]), None);
    }

    #[test]
    fn a_deep_difference_counts_as_its_parent() {
        let deep = |value| json!({ "a": { "b": { "c": { "d": { "e": value } } } } });

        assert_eq!(names(&deep(1), &deep(2)), ["a.b.c.d"]);
    }

    proptest! {
        #[test]
        fn no_value_is_ever_told(keys in proptest::collection::vec("[a-c]", 1..6), secret in "[0-9]{12}") {
            let (mut before, mut after) = (Map::new(), Map::new());
            for (at, key) in keys.iter().enumerate() {
                before.insert(key.clone(), json!({ "k": secret, "n": at }));
                after.insert(key.clone(), json!({ "k": format!("{secret}{at}"), "n": [secret] }));
            }

            let found = names(&before.into(), &after.into());

            prop_assert!(!found.is_empty());
            prop_assert!(found.iter().all(|name| !name.contains(&secret)), "{found:?}");
        }

        #[test]
        fn a_difference_has_a_name_and_equal_values_have_none(value in "[a-b]{0,2}", other in "[a-b]{0,2}") {
            let (one, two) = (json!({ "x": { "y": value } }), json!({ "x": { "y": other } }));

            prop_assert_eq!(names(&one, &two).is_empty(), value == other);
        }
    }
}
