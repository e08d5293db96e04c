//! Narrows a policy document to the actions that were used.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::pattern::Pattern;
use crate::statements::texts;

/// A narrowed policy document, and its differences from the original.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Narrowed {
    /// The document; `None` when no statement is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<Value>,
    /// The narrowed actions, in the order of the document. Empty when the document does not change.
    pub changes: Vec<Narrowing>,
}

/// One action of an `Allow` statement, and the used actions that replace it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Narrowing {
    /// The action in the original document, such as `iam:Create*`.
    pub action: String,
    /// The used actions that `action` allows. Empty when the narrowed document omits `action`.
    pub used: BTreeSet<String>,
}

/// Returns `document` after replacing each allowed action of `service` by the actions of `used` that it allows. For
/// example, `service` is `iam` and `used` contains `CreateRole`. Other services, `Deny` statements, `NotAction`, and
/// actions with templates do not change. Returns `None` when the text is not a policy document.
pub fn narrow(document: &str, service: &str, used: &BTreeSet<String>) -> Option<Narrowed> {
    let mut document: Value = serde_json::from_str(document).ok()?;
    let statements = match document.get_mut("Statement")? {
        Value::Array(all) => std::mem::take(all),
        one @ Value::Object(_) => vec![one.take()],
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    let mut changes = Vec::new();
    let mut left = Vec::new();
    for statement in statements {
        left.extend(narrow_statement(statement, service, used, &mut changes)?);
    }
    if left.is_empty() {
        return Some(Narrowed { document: None, changes });
    }
    *document.get_mut("Statement")? = Value::Array(left);
    Some(Narrowed { document: Some(document), changes })
}

/// Returns the narrowed statement. `Some(None)` means that no action is left, and `None` that the statement is invalid.
fn narrow_statement(
    mut statement: Value,
    service: &str,
    used: &BTreeSet<String>,
    changes: &mut Vec<Narrowing>,
) -> Option<Option<Value>> {
    let map = statement.as_object_mut()?;
    let allows = map.get("Effect")?.as_str()? == "Allow";
    let Some(action) = map.get_mut("Action").filter(|_| allows) else { return Some(Some(statement)) };
    let mut kept: Vec<String> = Vec::new();
    let mut narrowed = false;
    for text in texts(action)? {
        let Some(now) = narrow_action(&text, service, used) else {
            kept.push(text);
            continue;
        };
        if now.len() != 1 || !now.contains(&text) {
            narrowed = true;
            changes.push(Narrowing { action: text, used: now.clone() });
        }
        kept.extend(now);
    }
    if narrowed {
        // Several patterns of one statement may allow the same action, which is needed only once.
        let mut seen = BTreeSet::new();
        kept.retain(|text| seen.insert(text.clone()));
        if kept.is_empty() {
            return Some(None);
        }
        *action = json!(kept);
    }
    Some(Some(statement))
}

/// Returns the actions of `used` that the policy's action `text` allows, or `None` when `text` cannot be narrowed.
fn narrow_action(text: &str, service: &str, used: &BTreeSet<String>) -> Option<BTreeSet<String>> {
    let (prefix, name) = text.split_once(':')?;
    if !prefix.eq_ignore_ascii_case(service) || name.contains("{{") || name.contains("${") {
        return None;
    }
    let pattern = Pattern::of_action(name);
    let allowed = used.iter().filter(|action| pattern.covers(&Pattern::of_action(action)));
    Some(allowed.map(|action| format!("{service}:{action}")).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(actions: &[&str]) -> BTreeSet<String> {
        actions.iter().map(|action| (*action).to_owned()).collect()
    }

    fn narrowed(document: &Value, used: &[&str]) -> Narrowed {
        narrow(&document.to_string(), "iam", &set(used)).unwrap()
    }

    #[test]
    fn wildcards_of_the_service_become_what_was_used() {
        let document = json!({ "Version": "2012-10-17", "Statement": [
            { "Sid": "Roles", "Effect": "Allow", "Action": ["IAM:*Role", "iam:GetPolicy", "s3:*"], "Resource": "*" },
            { "Effect": "Allow", "Action": "iam:*User", "Resource": "*" },
        ]});

        let narrowed = narrowed(&document, &["CreateRole", "GetRole", "ListRoles"]);

        let left = json!([{ "Sid": "Roles", "Effect": "Allow", "Action": ["iam:CreateRole", "iam:GetRole", "s3:*"],
            "Resource": "*" }]);
        assert_eq!(narrowed.document.unwrap(), json!({ "Version": "2012-10-17", "Statement": left }));
        let changes: Vec<_> = narrowed.changes.iter().map(|one| (one.action.as_str(), one.used.len())).collect();
        assert_eq!(changes, [("IAM:*Role", 2), ("iam:GetPolicy", 0), ("iam:*User", 0)]);
    }

    #[test]
    fn what_is_not_understood_and_what_denies_stays() {
        let document = json!({ "Statement": [
            { "Effect": "Deny", "Action": "iam:*", "Resource": "*" },
            { "Effect": "Allow", "NotAction": "iam:*", "Resource": "*" },
            { "Effect": "Allow", "Action": "*", "Resource": "*" },
            { "Effect": "Allow", "Action": "iam:{{ .nuon.inputs.inputs.verb }}Role", "Resource": "*" },
            { "Effect": "Allow", "Action": "iam:GetRole", "Resource": "*" },
        ]});

        let narrowed = narrowed(&document, &["GetRole"]);

        assert_eq!((narrowed.document, narrowed.changes), (Some(document), vec![]));
    }

    #[test]
    fn a_document_of_which_nothing_is_left_is_left_out() {
        let document = json!({ "Statement": { "Effect": "Allow", "Action": ["iam:*"], "Resource": "*" } });

        assert_eq!(narrowed(&document, &[]).document, None);
        for text in ["", "[]", "{}", r#"{"Statement":"all"}"#, r#"{"Statement":[{"Effect":"Allow","Action":7}]}"#] {
            assert_eq!(narrow(text, "iam", &set(&[])), None, "{text}");
        }
    }

    const ACTIONS: [&str; 6] = ["CreateRole", "CreateUser", "GetRole", "GetUser", "PutRolePolicy", "TagRole"];

    proptest! {
        #[test]
        fn it_allows_what_was_used_and_was_allowed_before_and_nothing_else(
            patterns in prop::collection::vec("(iam:)?(Create|Get|P|\\*)?(Role|User|\\*|\\?)?", 1..4),
            used in prop::sample::subsequence(ACTIONS.to_vec(), 0..=ACTIONS.len()),
        ) {
            let document = json!({ "Statement": [{ "Effect": "Allow", "Action": patterns, "Resource": "*" }] });
            let iam = |text: &&String| text.to_lowercase().starts_with("iam:");
            let allows = |patterns: &[String], action: &str| patterns.iter().filter(iam).any(|pattern| {
                Pattern::of_action(pattern).covers(&Pattern::of_action(&format!("iam:{action}")))
            });

            let narrowed = narrowed(&document, &used);

            let left: Vec<String> = narrowed.document.as_ref().map_or_else(Vec::new, |document| {
                texts(&document["Statement"][0]["Action"]).unwrap()
            });
            for action in ACTIONS {
                let expected = allows(&patterns, action) && used.contains(&action);
                prop_assert_eq!(allows(&left, action), expected, "{} of {:?} to {:?}", action, &patterns, &left);
            }
            let others = |all: &[String]| all.iter().filter(|text| !iam(text)).cloned().collect::<BTreeSet<_>>();
            prop_assert_eq!(others(&left), others(&patterns));
        }
    }
}
