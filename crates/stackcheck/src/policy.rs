//! What policy statements of a template say: who, what and on which resources.

use crate::node::Node;

/// One statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statement<'t>(pub(crate) &'t Node);

impl<'t> Statement<'t> {
    /// Returns whether it allows, in whatever case.
    pub(crate) fn allows(self) -> bool {
        !self.denies()
    }

    /// Returns whether it denies, in every case.
    pub(crate) fn denies(self) -> bool {
        let effects = self.0.get("Effect").map(Node::each).unwrap_or_default();
        !effects.is_empty() && effects.iter().all(|effect| effect.text() == Some("Deny"))
    }

    /// Returns whether it is about this action, such as `sts:AssumeRole`.
    pub(crate) fn is_about(self, action: &str) -> bool {
        let named =
            |key: &str| self.0.get(key).map(|node| node.each().iter().any(|pattern| matches(&pattern.said(), action)));
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

/// Returns the statements of everything under `node` that is a policy document.
pub(crate) fn statements(node: &Node) -> Vec<Statement<'_>> {
    let mut found = Vec::new();
    node.walk(&mut |node| {
        if let Some(list) = node.get("Statement") {
            found.extend(list.each().into_iter().map(Statement));
        }
    });
    found
}

/// The properties that hold a policy.
const POLICIES: [&str; 5] =
    ["AssumeRolePolicyDocument", "KeyPolicy", "PolicyDocument", "RepositoryPolicyText", "ResourcePolicy"];

/// Returns what is under `node` and cannot be read, with the property that it belongs to: a policy that is not written out, or
/// a statement without an effect.
pub(crate) fn unread(node: &Node) -> Vec<(&'static str, &Node)> {
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

/// Returns whether an action is one of those that a pattern with `*` and `?` names; both whatever their case, as in IAM.
pub(crate) fn matches(pattern: &str, action: &str) -> bool {
    let (pattern, action) = (pattern.to_ascii_lowercase(), action.to_ascii_lowercase());
    let (pattern, action): (Vec<char>, Vec<char>) = (pattern.chars().collect(), action.chars().collect());
    // Row by row: whether the first characters of the pattern match the first ones of the action.
    let mut row = vec![false; action.len() + 1];
    if let Some(first) = row.first_mut() {
        *first = true;
    }
    for wanted in pattern {
        let mut next = vec![false; action.len() + 1];
        for at in 0..=action.len() {
            let here = row.get(at).copied().unwrap_or(false);
            let before = at.checked_sub(1);
            let at_before = |row: &[bool]| before.and_then(|at| row.get(at)).copied().unwrap_or(false);
            let is = match wanted {
                '*' => here || at_before(&next),
                '?' => at_before(&row),
                letter => at_before(&row) && before.and_then(|at| action.get(at)) == Some(&letter),
            };
            if let Some(slot) = next.get_mut(at) {
                *slot = is;
            }
        }
        row = next;
    }
    row.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
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
        ] {
            assert_eq!(matches(pattern, action), expected, "{pattern} {action}");
        }
    }
}
