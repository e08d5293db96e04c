//! Reads the policy statements of a template: who may do what, on which resources.

use wildmatch::WildMatch;

use crate::finding::{Finding, Rule};
use crate::node::Node;
use crate::template::Resource;

/// One statement of a policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statement<'t>(pub(crate) &'t Node);

impl<'t> Statement<'t> {
    /// Returns whether the statement may allow something.
    pub(crate) fn allows(self) -> bool {
        !self.denies()
    }

    /// Returns whether the statement denies under every condition of the template.
    pub(crate) fn denies(self) -> bool {
        let effects = self.0.get("Effect").map(Node::each).unwrap_or_default();
        !effects.is_empty() && effects.iter().all(|effect| effect.text() == Some("Deny"))
    }

    /// Returns whether the statement covers an action, such as `sts:AssumeRole`.
    pub(crate) fn is_about(self, action: &str) -> bool {
        let named = |key: &str| {
            self.0.get(key).map(|node| node.each().iter().any(|pattern| matches(&pattern.to_text(), action)))
        };
        match (named("Action"), named("NotAction")) {
            (Some(found), _) => found,
            (None, Some(found)) => !found,
            (None, None) => false,
        }
    }

    pub(crate) fn resources(self) -> Vec<&'t Node> {
        self.0.get("Resource").map(Node::each).unwrap_or_default()
    }

    /// Returns each principal with its kind (`AWS`, `Service`, `Federated`, `*`).
    pub(crate) fn principals(self) -> Vec<(&'t str, &'t Node)> {
        let Some(principal) = self.0.get("Principal") else { return Vec::new() };
        if principal.text().is_some() {
            return vec![("*", principal)];
        }
        principal
            .each()
            .into_iter()
            .flat_map(|sides| sides.entries().iter())
            .flat_map(|(kind, who)| who.each().into_iter().map(move |one| (kind.as_str(), one)))
            .collect()
    }
}

/// Returns the statements of all policy documents in `node`.
pub(crate) fn statements(node: &Node) -> Vec<Statement<'_>> {
    let mut found = Vec::new();
    node.walk(&mut |node| {
        if let Some(list) = node.get("Statement") {
            found.extend(list.each().into_iter().map(Statement));
        }
    });
    found
}

/// The properties that contain a policy.
const POLICIES: [&str; 5] =
    ["AssumeRolePolicyDocument", "KeyPolicy", "PolicyDocument", "RepositoryPolicyText", "ResourcePolicy"];

/// The properties whose policies name principals, which means that they decide who may do something.
const ADMITTING: [&str; 4] = ["AssumeRolePolicyDocument", "KeyPolicy", "RepositoryPolicyText", "ResourcePolicy"];

/// Returns whether the policy in a property names principals.
pub(crate) fn admits(property: &str) -> bool {
    ADMITTING.contains(&property)
}

/// Returns the parts of policies in `node` that cannot be checked, each with its property: a policy that is not written
/// as a document with statements, or a statement without an effect.
fn unread(node: &Node) -> Vec<(&'static str, &Node)> {
    let mut found = Vec::new();
    node.walk(&mut |node| {
        for key in POLICIES {
            for policy in node.get(key).map(Node::each).unwrap_or_default() {
                match policy.get("Statement") {
                    Some(list) => found.extend(
                        list.each().into_iter().filter(|one| one.get("Effect").is_none()).map(|one| (key, one)),
                    ),
                    None => found.push((key, policy)),
                }
            }
        }
    });
    found
}

/// Returns a finding of `rule` for each policy of a resource that is not written out as a document, such as a policy in a
/// string, and for each statement without an effect. Looks only at the properties that `is_of_rule` accepts.
pub(crate) fn unreadable(rule: Rule, resource: Resource<'_>, is_of_rule: impl Fn(&str) -> bool) -> Vec<Finding> {
    let unread = unread(resource.node).into_iter().filter(|(property, _)| is_of_rule(property));
    unread
        .map(|(property, policy)| {
            let reason = format!("`{property}` must be written out as a policy document, so that it can be checked");
            resource.finding(rule, policy, reason)
        })
        .collect()
}

/// Returns whether a pattern with `*` and `?` matches an action. Ignores upper and lower case, as IAM does.
pub(crate) fn matches(pattern: &str, action: &str) -> bool {
    WildMatch::new(&pattern.to_ascii_lowercase()).matches(&action.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_match_as_in_iam() {
        for (pattern, action, expected) in [
            ("*", "sts:AssumeRole", true),
            ("sts:*", "sts:AssumeRole", true),
            ("STS:assume*", "sts:AssumeRole", true),
            ("sts:AssumeRol?", "sts:AssumeRole", true),
            ("sts:AssumeRole", "sts:AssumeRoleWithSAML", false),
            ("s3:*", "sts:AssumeRole", false),
            ("*Role", "sts:AssumeRole", true),
            ("", "sts:AssumeRole", false),
            ("?", "", false),
            ("", "", true),
            ("*", "", true),
            ("**", "sts:AssumeRole", true),
            ("s?s:*Role*", "sts:AssumeRole", true),
            ("*a*b", "ab-abc", false),
            ("*a*b", "ab-ab", true),
            ("???", "sts", true),
            ("???", "st", false),
        ] {
            assert_eq!(matches(pattern, action), expected, "{pattern} {action}");
        }
    }
    #[test]
    fn a_pattern_of_many_stars_takes_little_time() {
        let (pattern, action) = ("*a".repeat(2_000) + "b", "a".repeat(4_000));

        assert!(!matches(&pattern, &action));
    }
    /// The definition: `*` takes any number of characters, `?` takes one.
    fn by_definition(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), None) => by_definition(rest, text),
            (Some((b'*', rest)), Some((_, shorter))) => by_definition(rest, text) || by_definition(pattern, shorter),
            (Some((b'?', rest)), Some((_, shorter))) => by_definition(rest, shorter),
            (Some((one, rest)), Some((other, shorter))) => one == other && by_definition(rest, shorter),
            (None, Some(_)) | (Some(_), None) => false,
        }
    }

    proptest! {
        #[test]
        fn patterns_match_by_definition(pattern in "[ab*?]{0,9}", text in "[ab]{0,9}") {
            prop_assert_eq!(matches(&pattern, &text), by_definition(pattern.as_bytes(), text.as_bytes()));
        }
    }
}
