//! The assertions in a template's `Rules`: conditions that the values of its parameters must meet together.
//! CloudFormation checks them before it makes or changes a stack.

use std::collections::BTreeMap;

use crate::node::Node;

/// The assertions of one rule. They share the condition: if each assertion had a copy of it, a template of a megabyte
/// could fill the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assertions {
    /// The condition under which the rule applies. A rule without a condition always applies.
    condition: Option<Node>,
    assertions: Vec<Assertion>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Assertion {
    assert: Node,
    description: String,
}

impl Assertions {
    /// Returns the template's text about the first assertion that parameters with these values certainly break. An
    /// expression with a function or a value that is not known breaks nothing.
    pub(crate) fn broken(&self, values: &BTreeMap<&str, &str>) -> Option<&str> {
        let applies = self.condition.as_ref().is_none_or(|condition| holds(condition, values) == Some(true));
        let mut assertions = self.assertions.iter().filter(|_| applies);
        let broken = assertions.find(|assertion| holds(&assertion.assert, values) == Some(false));
        broken.map(|assertion| assertion.description.as_str())
    }
}

/// Returns the assertions of each rule of a template.
pub(crate) fn assertions(root: &Node) -> Vec<Assertions> {
    let rules = root.get("Rules").map(Node::entries).unwrap_or_default();
    let one = |assertion: &Node| {
        let description = assertion.get("AssertDescription").and_then(Node::text).unwrap_or_default().to_owned();
        Some(Assertion { assert: assertion.get("Assert")?.clone(), description })
    };
    let of_rule = |(_, rule): &(String, Node)| Assertions {
        condition: rule.get("RuleCondition").cloned(),
        assertions: rule.get("Assertions").map(Node::items).unwrap_or_default().iter().filter_map(one).collect(),
    };
    rules.iter().map(of_rule).collect()
}

/// Returns whether an expression is true; `None` when its value is not known.
fn holds(expression: &Node, values: &BTreeMap<&str, &str>) -> Option<bool> {
    let [(function, of)] = expression.entries() else { return None };
    let parts = of.items();
    match (function.as_str(), parts) {
        ("Fn::Equals", [left, right]) => Some(text(left, values)? == text(right, values)?),
        ("Fn::Not", [part]) => holds(part, values).map(|part| !part),
        ("Fn::And", _) => joined(parts, values, false),
        ("Fn::Or", _) => joined(parts, values, true),
        _ => None,
    }
}

/// Returns the value of `parts` together. One part with the value `decisive` decides, whatever the other parts are.
fn joined(parts: &[Node], values: &BTreeMap<&str, &str>, decisive: bool) -> Option<bool> {
    let parts: Vec<Option<bool>> = parts.iter().map(|part| holds(part, values)).collect();
    if parts.contains(&Some(decisive)) {
        return Some(decisive);
    }
    parts.iter().all(Option::is_some).then_some(!decisive)
}

/// Returns a text, or the value of the parameter that an expression refers to.
fn text<'v>(expression: &'v Node, values: &BTreeMap<&str, &'v str>) -> Option<&'v str> {
    match expression.get("Ref") {
        Some(name) => values.get(name.text()?).copied(),
        None => expression.text(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read;

    /// Returns whether the assertion `assert` under `condition` is broken when `A` is `a` and `B` is empty.
    fn is_broken(condition: &str, assert: &str) -> bool {
        let template = format!("Rules:\n  One:\n{condition}    Assertions:\n      - Assert: {assert}\n");
        let found = assertions(&read(&template).unwrap());
        assert_eq!(found.len(), 1, "{template}");
        found.iter().any(|one| one.broken(&BTreeMap::from([("A", "a"), ("B", "")])).is_some())
    }

    #[test]
    fn an_assertion_is_broken_only_when_its_values_say_so() {
        for broken in [
            "!Equals [!Ref A, b]",
            "!Not [!Equals [!Ref B, \"\"]]",
            "!And [!Equals [!Ref A, a], !Equals [!Ref B, b]]",
            "!And [!Equals [!Ref Unknown, a], !Equals [!Ref B, b]]",
            "!Or [!Equals [!Ref A, b], !Equals [!Ref B, b]]",
        ] {
            assert!(is_broken("", broken), "{broken}");
        }
        for not_broken in [
            "!Equals [!Ref A, a]",
            "!Not [!Equals [!Ref A, \"\"]]",
            "!Or [!Equals [!Ref A, b], !Equals [!Ref B, \"\"]]",
            "!Or [!Equals [!Ref Unknown, b], !Equals [!Ref B, b]]",
            "!Equals [!Ref Unknown, a]",
            "!Contains [[a], !Ref B]",
        ] {
            assert!(!is_broken("", not_broken), "{not_broken}");
        }
    }

    #[test]
    fn a_rule_with_many_assertions_has_its_condition_once_and_names_the_broken_one() {
        let template = "Rules:\n  One:\n    RuleCondition: !Equals [!Ref A, a]\n    Assertions:\n      \
                        - {Assert: !Equals [!Ref A, a], AssertDescription: first}\n      \
                        - {Assert: !Equals [!Ref A, b], AssertDescription: second}\n";

        let found = assertions(&read(template).unwrap());

        assert_eq!(found.len(), 1);
        assert_eq!(found[0].broken(&BTreeMap::from([("A", "a")])), Some("second"));
        assert_eq!(found[0].broken(&BTreeMap::from([("A", "c")])), None);
    }

    #[test]
    fn a_rule_applies_only_under_its_condition() {
        let broken = "!Equals [!Ref A, b]";

        assert!(is_broken("    RuleCondition: !Equals [!Ref B, \"\"]\n", broken));
        assert!(!is_broken("    RuleCondition: !Equals [!Ref A, b]\n", broken));
        assert!(!is_broken("    RuleCondition: !Equals [!Ref Unknown, b]\n", broken));
    }
}
