//! Reads what a template states about itself: the tenant, the accounts in which it may be launched, and the parameters.

use std::collections::BTreeMap;

use crate::assertions::{Assertions, assertions};
use crate::node::Node;
use crate::read::{Unreadable, read};

/// Facts that a template states about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// The places in which the template may be launched; empty when it may be launched anywhere.
    pub bound_to: Vec<Bound>,
    /// The tenant that the template belongs to; `None` when the template does not name one.
    pub tenant: Option<String>,
    /// Whether the text declares resources; a contract or another document has none.
    pub has_resources: bool,
    /// The parameters by name, each with its default value.
    parameters: BTreeMap<String, Option<String>>,
    /// The values that a parameter may have, if the template lists them.
    allowed: BTreeMap<String, Vec<String>>,
    /// The assertions of the template's rules about the values of its parameters.
    assertions: Vec<Assertions>,
}

/// A region and an account in which a template may be launched, and the install that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    pub region: String,
    pub account: String,
    pub install: String,
}

impl Facts {
    /// Reads the facts of `template`.
    ///
    /// # Errors
    /// [`Unreadable`] when the text is not a template.
    pub fn of(template: &str) -> Result<Self, Unreadable> {
        let root = read(template)?;
        let regions = root.at(&["Mappings", "BoundTo"]).map(Node::entries).unwrap_or_default();
        let bound_to = regions.iter().flat_map(|(region, accounts)| {
            accounts.entries().iter().map(|(account, install)| Bound {
                region: region.clone(),
                account: account.clone(),
                install: install.text().unwrap_or_default().to_owned(),
            })
        });
        let parameters = root.get("Parameters").map(Node::entries).unwrap_or_default().iter();
        let default = |parameter: &Node| parameter.get("Default").and_then(Node::text).map(str::to_owned);
        let tenant = root.at(&["Metadata", "Freehold", "Tenant"]).and_then(Node::text);
        Ok(Self {
            tenant: tenant.map(str::to_owned),
            bound_to: bound_to.collect(),
            has_resources: root.get("Resources").is_some(),
            parameters: parameters.clone().map(|(name, parameter)| (name.clone(), default(parameter))).collect(),
            allowed: parameters.filter_map(|(name, parameter)| Some((name.clone(), allowed(parameter)?))).collect(),
            assertions: assertions(&root),
        })
    }

    /// Returns the names of all parameters.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.parameters.keys().map(String::as_str)
    }

    /// Returns whether there is a parameter of this name.
    #[must_use]
    pub fn has_parameter(&self, name: &str) -> bool {
        self.parameters.contains_key(name)
    }

    /// Returns the values that the template allows for a parameter; empty when it does not list them.
    #[must_use]
    pub fn allowed(&self, parameter: &str) -> &[String] {
        self.allowed.get(parameter).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the template's text about the first rule that a launch with `values` breaks. Every other parameter has its
    /// default.
    #[must_use]
    pub fn broken_rule(&self, values: &BTreeMap<&str, &str>) -> Option<&str> {
        let defaults = self.parameters.iter().filter_map(|(name, default)| Some((name.as_str(), default.as_deref()?)));
        let all: BTreeMap<&str, &str> = defaults.chain(values.iter().map(|(name, value)| (*name, *value))).collect();
        self.assertions.iter().find_map(|rule| rule.broken(&all))
    }

    /// Returns the default of a parameter, if it has one.
    #[must_use]
    pub fn default(&self, parameter: &str) -> Option<&str> {
        self.parameters.get(parameter)?.as_deref()
    }
}

fn allowed(parameter: &Node) -> Option<Vec<String>> {
    Some(parameter.get("AllowedValues")?.items().iter().filter_map(Node::text).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_says_what_it_is_made_for_and_what_it_asks() {
        let facts = Facts::of(
            "Parameters:\n  HttpsProxy: {Type: String}\n  EnableRunner: {Type: String, Default: \"true\", AllowedValues: [\"true\", \"false\"]}\n\
             Mappings:\n  BoundTo:\n    eu-west-1:\n      \"222222222222\": \"globex\"\nResources: {}\n",
        )
        .unwrap();

        let bound = Bound { region: "eu-west-1".into(), account: "222222222222".into(), install: "globex".into() };
        assert_eq!(facts.bound_to, [bound]);
        assert_eq!(facts.parameters().collect::<Vec<_>>(), ["EnableRunner", "HttpsProxy"]);
        assert_eq!((facts.default("EnableRunner"), facts.default("HttpsProxy")), (Some("true"), None));
        assert_eq!(facts.allowed("EnableRunner"), ["true", "false"]);
        assert!(facts.allowed("HttpsProxy").is_empty() && facts.has_resources);
        assert!(!Facts::of("{\"payload\": \"x\"}").unwrap().has_resources);
        assert!(facts.has_parameter("HttpsProxy") && !facts.has_parameter("EnableRuner"));
    }

    #[test]
    fn a_launch_breaks_a_rule_by_its_values_and_by_the_defaults_of_others() {
        let facts = Facts::of(
            "Parameters:\n  Sha256: {Type: String, Default: \"\"}\n  Principal: {Type: String, Default: \"\"}\n\
             Rules:\n  Program:\n    RuleCondition: !Equals [!Ref Principal, \"\"]\n    Assertions:\n      \
             - {Assert: !Not [!Equals [!Ref Sha256, \"\"]], AssertDescription: set one}\n",
        )
        .unwrap();

        assert_eq!(facts.broken_rule(&BTreeMap::new()), Some("set one"));
        assert_eq!(facts.broken_rule(&BTreeMap::from([("Principal", "arn")])), None);
        assert_eq!(facts.broken_rule(&BTreeMap::from([("Sha256", "00")])), None);
        assert_eq!(facts.broken_rule(&BTreeMap::from([("Sha256", "")])), Some("set one"));
    }

    #[test]
    fn what_is_not_yaml_is_not_a_template() {
        Facts::of("a: [").unwrap_err();
    }
}
