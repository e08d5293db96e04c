//! Parses IAM policy documents into statements that can be compared.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::pattern::{Pattern, has_variable};
use crate::policy_text;

/// The keys of a policy document (IAM JSON policy elements).
const DOCUMENT: [&str; 3] = ["Id", "Statement", "Version"];

/// The effect of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Allow,
    Deny,
}

/// All statements of a role's policy documents, or of its boundary.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    pub(crate) plain: Vec<Statement>,
    /// Statements with other elements than actions, resources and a condition, as canonical text.
    pub(crate) other: BTreeSet<(Effect, String)>,
    /// The policies whose texts are not policy documents: the name of the policy and its text.
    pub(crate) unread: BTreeSet<(String, String)>,
}

/// A statement that has only actions, resources and perhaps a condition.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) effect: Effect,
    actions: Patterns,
    resources: Patterns,
    /// The condition as canonical text; empty when there is none.
    condition: String,
}

/// The patterns of one element, such as `Action`: parsed (`exact`), and by the text that the policy has (`texts`).
#[derive(Debug)]
struct Patterns {
    exact: BTreeSet<Pattern>,
    texts: BTreeMap<String, Pattern>,
}

impl Patterns {
    fn new(texts: Vec<String>, read: fn(&str) -> Pattern) -> Self {
        let texts: BTreeMap<String, Pattern> = texts.into_iter().map(|text| (text.clone(), read(&text))).collect();
        Self { exact: texts.values().cloned().collect(), texts }
    }

    fn cover(&self, other: &Pattern) -> bool {
        self.exact.contains(other) || self.texts.values().any(|pattern| pattern.covers(other))
    }

    fn may_meet(&self, other: &Pattern) -> bool {
        self.texts.values().any(|pattern| pattern.may_meet(other))
    }
}

/// Actions that share an effect, resources and a condition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group {
    pub(crate) effect: Effect,
    pub(crate) condition: String,
    pub(crate) actions: BTreeSet<String>,
    pub(crate) resources: BTreeSet<String>,
}

impl Statements {
    /// Parses the permissions boundary of a role.
    pub(crate) fn of_boundary(text: &str) -> Self {
        let mut statements = Self::default();
        statements.read("its boundary", text);
        statements
    }

    /// Parses the policy document of `holder` and adds its statements.
    pub(crate) fn read(&mut self, holder: &str, document: &str) {
        if self.try_read(document).is_none() {
            self.unread.insert((holder.to_owned(), document.to_owned()));
        }
    }

    fn try_read(&mut self, document: &str) -> Option<()> {
        let document = policy_text::parse(document).ok()?;
        // The listing does not show other keys, so a document that has them is not listed as statements.
        if !document.as_object()?.keys().all(|key| DOCUMENT.contains(&key.as_str())) {
            return None;
        }
        // Without this version, IAM takes policy variables as plain text (IAM JSON policy elements, "Version").
        let has_variables = document.get("Version").and_then(Value::as_str) == Some("2012-10-17");
        let version = if has_variables { None } else { document.get("Version").or(Some(&Value::Null)) };
        let statements = match document.get("Statement")? {
            Value::Array(all) => all.clone(),
            one @ Value::Object(_) => vec![one.clone()],
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
        // An invalid statement invalidates the whole document: a comparison of the other statements would be
        // incomplete.
        let read: Option<Vec<_>> = statements.iter().map(|one| one_statement(one, version)).collect();
        for statement in read? {
            match statement {
                Read::Plain(statement) => self.plain.push(statement),
                Read::Other(effect, text) => drop(self.other.insert((effect, text))),
            }
        }
        Some(())
    }

    /// Returns whether a statement without a condition denies the action on every resource that `resource` matches.
    /// `None` means all resources.
    pub(crate) fn deny(&self, action: &Pattern, resource: Option<&Pattern>) -> bool {
        let anything = Pattern::new("*");
        let resource = resource.unwrap_or(&anything);
        let mut denials = self.plain.iter().filter(|one| one.effect == Effect::Deny && one.condition.is_empty());
        denials.any(|one| one.actions.cover(action) && one.resources.cover(resource))
    }

    /// Returns whether a statement may allow the action on some resource that `resource` matches; `None` means any
    /// resource. A condition counts as met, a template can have any value, and a statement that cannot be parsed may allow
    /// everything.
    pub(crate) fn may_allow(&self, action: &Pattern, resource: Option<&Pattern>) -> bool {
        let on = |one: &Statement| resource.is_none_or(|resource| one.resources.may_meet(resource));
        let mut allowances = self.plain.iter().filter(|one| one.effect == Effect::Allow);
        !self.unread.is_empty()
            || self.other.iter().any(|(effect, _)| *effect == Effect::Allow)
            || allowances.any(|one| one.actions.may_meet(action) && on(one))
    }

    /// Returns the actions and resources that these statements cover and `other` does not, for one effect.
    pub(crate) fn beyond(&self, other: &Self, effect: Effect) -> Vec<Group> {
        // First collects actions by condition and resource, then joins resources that have the same actions.
        let mut by_resource: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
        let known: Vec<&Statement> = other.plain.iter().filter(|one| one.effect == effect).collect();
        for statement in self.plain.iter().filter(|one| one.effect == effect) {
            let near: Vec<&&Statement> =
                known.iter().filter(|one| one.condition.is_empty() || one.condition == statement.condition).collect();
            for (resource, resource_pattern) in &statement.resources.texts {
                let near: Vec<&&&Statement> = near.iter().filter(|one| one.resources.cover(resource_pattern)).collect();
                for (action, action_pattern) in &statement.actions.texts {
                    if !near.iter().any(|one| one.actions.cover(action_pattern)) {
                        let key = (statement.condition.as_str(), resource.as_str());
                        by_resource.entry(key).or_default().insert(action);
                    }
                }
            }
        }
        let mut groups: BTreeMap<(&str, BTreeSet<&str>), BTreeSet<String>> = BTreeMap::new();
        for ((condition, resource), actions) in by_resource {
            groups.entry((condition, actions)).or_default().insert(resource.to_owned());
        }
        groups
            .into_iter()
            .map(|((condition, actions), resources)| Group {
                effect,
                condition: condition.to_owned(),
                actions: actions.into_iter().map(str::to_owned).collect(),
                resources,
            })
            .collect()
    }

    /// Returns the statements with this effect that the policies of `other` do not have. Looks only at statements that have
    /// more elements than actions, resources and a condition ([`Self::other`]).
    pub(crate) fn others_beyond<'a>(&'a self, other: &'a Self, effect: Effect) -> impl Iterator<Item = &'a str> {
        let only = self.other.difference(&other.other);
        only.filter(move |(known, _)| *known == effect).map(|(_, text)| text.as_str())
    }
}

enum Read {
    Plain(Statement),
    Other(Effect, String),
}

/// Parses a statement. `version` is the version of its document if this version has no policy variables.
fn one_statement(value: &Value, version: Option<&Value>) -> Option<Read> {
    const PLAIN: [&str; 5] = ["Sid", "Effect", "Action", "Resource", "Condition"];
    let map = value.as_object()?;
    let effect = match map.get("Effect")?.as_str()? {
        "Allow" => Effect::Allow,
        "Deny" => Effect::Deny,
        _ => return None,
    };
    let version = version.filter(|_| policy_text::texts_in(value).into_iter().any(has_variable));
    let plain = version.is_none() && map.keys().all(|key| PLAIN.contains(&key.as_str()));
    if let (true, Some(actions), Some(resources)) = (plain, map.get("Action"), map.get("Resource")) {
        let condition = map.get("Condition").map(canonical_condition).unwrap_or_default();
        let actions = Patterns::new(texts(actions)?, Pattern::of_action);
        let resources = Patterns::new(texts(resources)?, Pattern::new);
        return Some(Read::Plain(Statement { effect, actions, resources, condition }));
    }
    let mut rest: Map<String, Value> = map.clone();
    rest.retain(|key, _| !matches!(key.as_str(), "Sid" | "Effect"));
    rest.extend(version.map(|version| ("Version".to_owned(), version.clone())));
    Some(Read::Other(effect, canonical(&Value::Object(rest))))
}

/// Returns the texts of an element, which is a text or a list of texts; `None` for anything else.
pub(crate) fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(all) => all.iter().map(|one| Some(one.as_str()?.to_owned())).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Returns a condition as canonical text. A text and a list of only this text become equal, and lists are sorted,
/// because IAM treats them as equal.
fn canonical_condition(value: &Value) -> String {
    let Value::Object(operators) = value else { return canonical(value) };
    if operators.is_empty() {
        return String::new();
    }
    let list = |value: &Value| match value {
        Value::Array(all) => Value::Array(sorted(all)),
        other => Value::Array(vec![other.clone()]),
    };
    let keys = |value: &Value| match value {
        Value::Object(keys) => Value::Object(keys.iter().map(|(key, value)| (key.clone(), list(value))).collect()),
        other => other.clone(),
    };
    let operators = operators.iter().map(|(name, value)| (name.clone(), keys(value)));
    canonical(&Value::Object(operators.collect()))
}

fn sorted(all: &[Value]) -> Vec<Value> {
    let mut all = all.to_vec();
    all.sort_by_key(canonical);
    all
}

/// Returns the canonical text of a value. A number without a canonical form keeps its digits, because an empty text
/// would make different conditions equal.
fn canonical(value: &Value) -> String {
    freehold_protocol::canonical::to_vec(value)
        .map_or_else(|_| value.to_string(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_with_numbers_of_many_digits_are_different_ones() {
        let older_than = |seconds: u64| canonical_condition(&json!({ "NumericLessThan": { "aws:age": seconds } }));

        assert_ne!(older_than(9_007_199_254_740_993), older_than(9_007_199_254_740_995));
        assert!(!older_than(9_007_199_254_740_993).is_empty());
    }
}
