//! Gives the rules access to a template: its resources, the accounts that it is bound to, and the targets of its
//! references.

use std::collections::BTreeSet;

use crate::finding::{Finding, Rule};
use crate::node::Node;
use crate::own_arns::account_of;
use crate::read::Unreadable;

/// The maximum number of entries in sections (AWS CloudFormation quotas).
const MOST: [(&str, usize); 2] = [("Resources", 500), ("Parameters", 200)];

/// One resource of a template.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resource<'t> {
    pub(crate) name: &'t str,
    /// The type, such as `AWS::IAM::Role`.
    pub(crate) kind: &'t str,
    pub(crate) node: &'t Node,
}

impl<'t> Resource<'t> {
    /// Returns the value at `path` below the resource's properties.
    pub(crate) fn property(&self, path: &[&str]) -> Option<&'t Node> {
        self.node.get("Properties")?.at(path)
    }

    /// Returns a finding of `rule` at the line of `at`, which is a value of this resource.
    pub(crate) fn finding(&self, rule: Rule, at: &Node, reason: impl Into<String>) -> Finding {
        Finding { line: at.line, of: self.name.to_owned(), rule, reason: reason.into(), way_out: None }
    }
}

/// A template with at least one resource.
#[derive(Debug)]
pub(crate) struct Template<'t> {
    pub(crate) root: &'t Node,
    resources: &'t Node,
    /// The accounts that the template is bound to: the keys in its mapping `BoundTo`.
    accounts: BTreeSet<String>,
}

impl<'t> Template<'t> {
    /// Interprets a parsed text as a template.
    ///
    /// # Errors
    /// [`Unreadable`] when the text has no resources, or more than CloudFormation accepts.
    pub(crate) fn new(root: &'t Node) -> Result<Self, Unreadable> {
        let Some(resources) = root.get("Resources").filter(|resources| !resources.entries().is_empty()) else {
            return Err(Unreadable { line: root.line, reason: "the template has no `Resources`".to_owned() });
        };
        for (section, most) in MOST {
            let count = root.get(section).map_or(0, |section| section.entries().len());
            if count > most {
                let reason =
                    format!("the template has {count} {section}, more than the {most} that CloudFormation accepts");
                return Err(Unreadable { line: root.line, reason });
            }
        }
        let regions = root.at(&["Mappings", "BoundTo"]).map(Node::entries).unwrap_or_default();
        let accounts = regions.iter().flat_map(|(_, accounts)| accounts.entries());
        Ok(Self { root, resources, accounts: accounts.map(|(account, _)| account.clone()).collect() })
    }

    /// Returns every resource.
    pub(crate) fn resources(&self) -> impl Iterator<Item = Resource<'t>> + use<'t> {
        self.resources.entries().iter().map(|(name, node)| {
            let kind = node.get("Type").and_then(Node::text).unwrap_or_default();
            Resource { name, kind, node }
        })
    }

    /// Returns the resources whose policies can grant permissions. The policy of a VPC endpoint can only restrict them.
    pub(crate) fn resources_with_grants(&self) -> impl Iterator<Item = Resource<'t>> + use<'t> {
        self.resources().filter(|resource| resource.kind != "AWS::EC2::VPCEndpoint")
    }

    /// Returns whether a principal of kind `AWS` belongs to the template's own account.
    pub(crate) fn is_own(&self, text: &str) -> bool {
        let account = text.split(':').nth(4);
        text == "${AWS::AccountId}"
            || self.accounts.contains(text)
            || self.is_resource(text)
            || self.is_own_parameter(text)
            // The split at colons above does not find this account, because `${AWS::AccountId}` contains colons itself.
            || text.starts_with("arn:") && text.contains(":iam::${AWS::AccountId}:")
            || text.starts_with("arn:") && account.is_some_and(|account| self.accounts.contains(account))
    }

    /// Returns whether a text is a reference to a resource of the template: `${Name}` or `${Name.Attribute}`.
    pub(crate) fn is_resource(&self, text: &str) -> bool {
        let name = reference(text).map(|name| name.split('.').next().unwrap_or_default());
        name.is_some_and(|name| self.resources.get(name).is_some())
    }

    /// Returns whether a text is `${Name}` of a parameter whose pattern accepts only ARNs of an account that the
    /// template is bound to.
    pub(crate) fn is_own_parameter(&self, text: &str) -> bool {
        let pattern = reference(text).and_then(|name| self.root.at(&["Parameters", name, "AllowedPattern"])?.text());
        pattern.is_some_and(|pattern| account_of(pattern).is_some_and(|account| self.accounts.contains(account)))
    }

    /// Returns the managed policy of the template that `node` refers to; `None` when it refers to something else.
    pub(crate) fn managed_policy(&self, node: &Node) -> Option<&'t Node> {
        let text = node.to_text();
        let name = reference(&text)?;
        let policy = self.resources().find(|resource| resource.name == name)?;
        (policy.kind == "AWS::IAM::ManagedPolicy").then_some(policy.node)
    }

    /// Returns whether a role attaches a managed policy of the template for which `does` returns true.
    pub(crate) fn role_lists(&self, role: &Node, does: impl Fn(&Node) -> bool) -> bool {
        let listed = role.at(&["Properties", "ManagedPolicyArns"]).map(Node::each).unwrap_or_default();
        listed.into_iter().filter_map(|one| self.managed_policy(one)).any(does)
    }
}

/// Returns the name in `${Name}`; `None` for another text.
fn reference(text: &str) -> Option<&str> {
    text.strip_prefix("${")?.strip_suffix('}')
}
