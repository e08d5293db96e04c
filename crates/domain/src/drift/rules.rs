//! Rules of an install that ignore drift of whole resources, or of some of their attributes.

use std::collections::BTreeSet;

use freehold_protocol::approval::ChangeKind;
use freehold_protocol::order::AskedBy;
use freehold_protocol::order::drift::{DriftedResource, MAX_NAME};
use freehold_protocol::{ComponentName, Timestamp};
use serde::{Deserialize, Serialize};
use wildmatch::WildMatchPattern;

/// The maximum number of rules of an install.
const MAX_RULES: usize = 50;
/// The maximum size of all rules of an install together, in bytes of JSON. The install's row contains them.
const MAX_BYTES: usize = 32 * 1024;
/// The maximum number of attributes that a rule names.
const MAX_NAMED: usize = 20;

/// One rule. Checks still find and list the ignored differences, but these do not make a part count as drifted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftRule {
    /// A pattern of resource addresses; `*` matches any characters.
    pub address: String,
    /// The part whose resources are ignored; absent for all parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<ComponentName>,
    /// The attributes whose differences are ignored, each with all attributes inside it. If empty, the whole resource
    /// is ignored, even when it is missing.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub attributes: BTreeSet<String>,
    pub reason: String,
    pub by: AskedBy,
    pub at: Timestamp,
}

/// The reason why a rule is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error(
        "the address of a rule has {0} characters, but must have 1 to {MAX_NAME}; pass an address like \
         `aws_autoscaling_group.*`"
    )]
    Address(usize),
    #[error(
        "a rule names {0} attributes, but may name at most {MAX_NAMED}; name fewer, or none to ignore the whole \
         resource"
    )]
    Attributes(usize),
    #[error(
        "an attribute of a rule has {0} characters, but must have 1 to {MAX_NAME}; pass an attribute like \
         `tags.Owner`"
    )]
    Attribute(usize),
    #[error(
        "the install has {MAX_RULES} rules, which is the maximum; remove one with `freehold drift ignore --remove`"
    )]
    TooMany,
    #[error(
        "the rules of the install would have {0} bytes together, but may have at most {MAX_BYTES}; shorten a rule, or \
         remove one with `freehold drift ignore --remove`"
    )]
    TooLarge(usize),
}

impl DriftRule {
    /// Checks the lengths of a new rule.
    ///
    /// # Errors
    /// [`RuleError`].
    pub fn check(&self) -> Result<(), RuleError> {
        let unfit = |text: &String| Some(text.chars().count()).filter(|count| !(1..=MAX_NAME).contains(count));
        if let Some(count) = unfit(&self.address) {
            return Err(RuleError::Address(count));
        }
        if self.attributes.len() > MAX_NAMED {
            return Err(RuleError::Attributes(self.attributes.len()));
        }
        self.attributes.iter().find_map(unfit).map_or(Ok(()), |count| Err(RuleError::Attribute(count)))
    }

    /// Checks the number and the size of all rules of an install.
    ///
    /// # Errors
    /// [`RuleError::TooMany`] and [`RuleError::TooLarge`].
    pub fn check_all(rules: &[Self]) -> Result<(), RuleError> {
        if rules.len() > MAX_RULES {
            return Err(RuleError::TooMany);
        }
        let bytes = serde_json::to_vec(rules).map_or(usize::MAX, |json| json.len());
        if bytes > MAX_BYTES { Err(RuleError::TooLarge(bytes)) } else { Ok(()) }
    }

    /// Returns whether the rule has this address and component, so that a new rule with both replaces it.
    pub fn is_of(&self, address: &str, component: Option<&ComponentName>) -> bool {
        self.address == address && self.component.as_ref() == component
    }

    fn names(&self, part: &ComponentName, address: &str) -> bool {
        self.component.as_ref().is_none_or(|name| name == part) && matches(&self.address, address)
    }

    /// Returns whether `rules` ignore a resource of `part`: one rule ignores the whole resource, or the rules together
    /// ignore each attribute that differs.
    pub fn ignore(rules: &[Self], part: &ComponentName, resource: &DriftedResource) -> bool {
        let naming = || rules.iter().filter(|rule| rule.names(part, &resource.address));
        if naming().any(|rule| rule.attributes.is_empty()) {
            return true;
        }
        let is_named = |attribute: &String| naming().any(|rule| rule.attributes.iter().any(|one| has(one, attribute)));
        resource.change == ChangeKind::Update
            && resource.more_attributes == 0
            && !resource.attributes.is_empty()
            && resource.attributes.iter().all(is_named)
    }
}

/// Returns whether `attribute` is `name`, or is inside of it.
fn has(name: &str, attribute: &str) -> bool {
    attribute.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns whether `text` matches `pattern`, in which `*` matches any characters.
fn matches(pattern: &str, text: &str) -> bool {
    // The wildcard for a single character is `\0`, which no address contains.
    WildMatchPattern::<'*', '\0'>::new(pattern).matches(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rule(address: &str, component: Option<&str>, attributes: &[&str]) -> DriftRule {
        DriftRule {
            address: address.to_owned(),
            component: component.map(|name| name.parse().unwrap()),
            attributes: attributes.iter().map(ToString::to_string).collect(),
            reason: "the autoscaler".to_owned(),
            by: AskedBy::Schedule,
            at: Timestamp::default(),
        }
    }

    fn resource(address: &str, change: ChangeKind, attributes: &[&str]) -> DriftedResource {
        DriftedResource {
            address: address.to_owned(),
            kind: String::new(),
            change,
            attributes: attributes.iter().map(ToString::to_string).collect(),
            more_attributes: 0,
        }
    }

    fn ignores(rules: &[DriftRule], resource: &DriftedResource) -> bool {
        DriftRule::ignore(rules, &"web".parse().unwrap(), resource)
    }

    #[test]
    fn a_rule_without_attributes_ignores_the_whole_resource() {
        let gone = resource("aws_sqs_queue.jobs", ChangeKind::Create, &[]);

        assert!(ignores(&[rule("aws_sqs_queue.*", None, &[])], &gone));
        assert!(ignores(&[rule("*", Some("web"), &[])], &gone));
        assert!(!ignores(&[rule("*", Some("api"), &[])], &gone));
        assert!(!ignores(&[rule("aws_sqs_queue", None, &[])], &gone));
        assert!(!ignores(&[rule("*", None, &["delay_seconds"])], &gone));
    }

    #[test]
    fn rules_with_attributes_ignore_a_resource_when_they_name_all_of_its_differences() {
        let group = resource("aws_autoscaling_group.a", ChangeKind::Update, &["desired_capacity", "tags.Owner"]);
        let (size, tags) = (rule("aws_auto*", None, &["desired_capacity"]), rule("*", None, &["tags"]));

        assert!(!ignores(std::slice::from_ref(&size), &group));
        assert!(ignores(&[size.clone(), tags], &group));
        assert!(!ignores(&[size.clone(), rule("*", None, &["tag"])], &group), "`tag` is not the beginning of a path");
        let hidden =
            DriftedResource { more_attributes: 1, ..resource("aws_auto", ChangeKind::Update, &["desired_capacity"]) };
        assert!(!ignores(&[size], &hidden), "what is not listed is not ignored");
    }

    #[test]
    fn a_rule_has_limits() {
        let many: Vec<String> = (0..21).map(|at| format!("a{at}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();

        assert_eq!(rule("", None, &[]).check(), Err(RuleError::Address(0)));
        assert_eq!(rule(&"a".repeat(201), None, &[]).check(), Err(RuleError::Address(201)));
        assert_eq!(rule("a", None, &[""]).check(), Err(RuleError::Attribute(0)));
        assert_eq!(rule("a", None, &many).check(), Err(RuleError::Attributes(21)));
        assert_eq!(rule("a.*", None, &["tags"]).check(), Ok(()));
    }

    #[test]
    fn all_rules_together_have_limits() {
        let names: Vec<String> = (0..20).map(|at| format!("{at:0200}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let large = |count| (0..count).map(|at| rule(&format!("a{at}"), None, &names)).collect::<Vec<_>>();
        let small = |count| (0..count).map(|at| rule(&format!("a{at}"), None, &[])).collect::<Vec<_>>();

        assert_eq!(DriftRule::check_all(&large(7)), Ok(()));
        assert!(matches!(DriftRule::check_all(&large(8)), Err(RuleError::TooLarge(32_769..40_000))));
        assert_eq!(DriftRule::check_all(&small(MAX_RULES)), Ok(()));
        assert_eq!(DriftRule::check_all(&small(MAX_RULES + 1)), Err(RuleError::TooMany));
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, text) in
            [("*", ""), ("a*", "a"), ("a*c", "abc"), ("*b*", "abc"), ("a*b*c", "a1b2b3c"), ("**", "x")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("a*", "ba"), ("a*c", "ab"), ("*b", "abc"), ("a*a", "a"), ("a*b*c", "acb")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    proptest! {
        #[test]
        fn a_pattern_fits_as_a_regular_expression_of_its_stars_does(pattern in "[ab*]{0,6}", text in "[ab]{0,8}") {
            fn slow(pattern: &[u8], text: &[u8]) -> bool {
                match pattern.split_first() {
                    None => text.is_empty(),
                    Some((b'*', rest)) => (0..=text.len()).any(|at| slow(rest, &text[at..])),
                    Some((one, rest)) => text.first() == Some(one) && slow(rest, &text[1..]),
                }
            }

            prop_assert_eq!(matches(&pattern, &text), slow(pattern.as_bytes(), text.as_bytes()));
        }

        #[test]
        fn one_more_rule_never_ignores_less(count in 0_usize..4, address in "[ab*]{1,3}", attribute in "[xy]") {
            let found = resource("ab", ChangeKind::Update, &["x", "y"]);
            let rules: Vec<DriftRule> = (0..count).map(|at| rule("*", None, &[["x", "z"][at % 2]])).collect();
            let more = [rules.clone(), vec![rule(&address, None, &[&attribute])]].concat();

            prop_assert!(!ignores(&rules, &found) || ignores(&more, &found));
        }
    }
}
