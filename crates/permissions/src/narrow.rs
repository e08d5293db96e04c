//! Leaves out of a policy document what nobody used.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::pattern::Pattern;

/// A policy document that allows less than another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Narrowed {
    /// Nothing when no statement is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<Value>,
    /// In the order of the document. Empty when the document stays as it is.
    pub changes: Vec<Narrowing>,
}

/// One action of a statement that allows, and what is left of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Narrowing {
    /// As the document writes it, such as `iam:Create*`.
    pub action: String,
    /// Those of the used actions that it allows. Empty when it is left out.
    pub used: BTreeSet<String>,
}

/// Returns `document` with each allowed action of `service` replaced by those of `used` that it allows, such as
/// `CreateRole` of `iam`. Other services, denials, `NotAction`, and actions with templates stay as they are. Returns
/// nothing when the text is no policy document.
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

/// Returns what is left of a statement; `Some(None)` when nothing is.
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
        // Two patterns of one statement may allow the same action.
        let mut seen = BTreeSet::new();
        kept.retain(|text| seen.insert(text.clone()));
        if kept.is_empty() {
            return Some(None);
        }
        *action = json!(kept);
    }
    Some(Some(statement))
}

/// Returns those of `used` that an action of a policy allows; nothing when it cannot be narrowed.
fn narrow_action(text: &str, service: &str, used: &BTreeSet<String>) -> Option<BTreeSet<String>> {
    let (prefix, name) = text.split_once(':')?;
    if !prefix.eq_ignore_ascii_case(service) || name.contains("{{") || name.contains("${") {
        return None;
    }
    let pattern = Pattern::of_action(name);
    let allowed = used.iter().filter(|action| pattern.covers(&Pattern::of_action(action)));
    Some(allowed.map(|action| format!("{service}:{action}")).collect())
}

fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(all) => all.iter().map(|one| Some(one.as_str()?.to_owned())).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
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
