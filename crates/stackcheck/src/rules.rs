//! The rules, each with its word; what one finds has a line and a reason.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::node::{self, Node, Unreadable};
use crate::own_arns::account_of;
use crate::policy::{Statement, statements, unread};

/// Something that a security team should not accept as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// In the template, from 1.
    pub line: usize,
    /// The resource or parameter; empty for the template as a whole.
    pub of: String,
    pub rule: Rule,
    pub reason: String,
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    NoCode,
    NoOutsidePrincipal,
    NoWildcardAssumeRole,
    Boundary,
    NoIngress,
    InstanceMetadata,
    Encryption,
    NoPublicAccess,
    SwitchDefaults,
}

impl Rule {
    /// Returns the rule's word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NoCode => "no-code",
            Self::NoOutsidePrincipal => "no-outside-principal",
            Self::NoWildcardAssumeRole => "no-wildcard-assume-role",
            Self::Boundary => "boundary",
            Self::NoIngress => "no-ingress",
            Self::InstanceMetadata => "instance-metadata",
            Self::Encryption => "encryption",
            Self::NoPublicAccess => "no-public-access",
            Self::SwitchDefaults => "switch-defaults",
        }
    }
}

/// Every rule with what it asks for.
pub const RULES: [(Rule, &str); 9] = [
    (Rule::NoCode, "nothing runs while the stack is made: no transform, custom resource, function or nested stack"),
    (Rule::NoOutsidePrincipal, "nobody outside of the account may take a role or use a resource"),
    (Rule::NoWildcardAssumeRole, "whoever may take roles may take named ones only"),
    (Rule::Boundary, "every role that the vendor's policies belong to has a boundary, and nobody can take it off"),
    (Rule::NoIngress, "nothing listens: no security group lets anything in"),
    (Rule::InstanceMetadata, "an instance's metadata is asked with a token, from the instance itself"),
    (Rule::Encryption, "buckets, secrets, queues, topics and volumes are encrypted"),
    (Rule::NoPublicAccess, "no bucket can be made public"),
    (Rule::SwitchDefaults, "the dangerous modes are off until somebody switches them on"),
];

/// The roles that are off by default, by what the name of their switch begins with.
const OFF: [&str; 2] = ["EnableDeprovision", "EnableBreakGlass"];
/// Types that run code of the vendor's while a stack is made or afterwards.
const CODE: [&str; 5] = [
    "AWS::CloudFormation::CustomResource",
    "AWS::CloudFormation::Macro",
    "AWS::CloudFormation::Stack",
    "AWS::Lambda::Function",
    "AWS::Serverless::Function",
];
/// Policies that say who may, by their property.
const LETS_IN: [&str; 4] = ["AssumeRolePolicyDocument", "KeyPolicy", "RepositoryPolicyText", "ResourcePolicy"];
const WRITABLE_BY_ALL: [&str; 4] =
    ["BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"];

/// Returns what is wrong with a template, by line; nothing for one that keeps every rule.
///
/// # Errors
/// When it is no template at all.
pub fn check(template: &str) -> Result<Vec<Finding>, Unreadable> {
    let root = node::read(template)?;
    let Some(resources) = root.get("Resources").filter(|resources| !resources.entries().is_empty()) else {
        return Err(Unreadable { line: root.line, reason: "it has no `Resources`".to_owned() });
    };
    let mut check = Check { root: &root, resources, accounts: accounts(&root), findings: BTreeSet::new() };
    check.all();
    Ok(check.findings.into_iter().collect())
}

/// Returns the accounts that the template is bound to, by the keys of its mapping.
fn accounts(root: &Node) -> BTreeSet<String> {
    let regions = root.at(&["Mappings", "BoundTo"]).map(Node::entries).unwrap_or_default();
    regions.iter().flat_map(|(_, accounts)| accounts.entries()).map(|(account, _)| account.clone()).collect()
}

struct Check<'t> {
    root: &'t Node,
    resources: &'t Node,
    accounts: BTreeSet<String>,
    findings: BTreeSet<Finding>,
}

impl<'t> Check<'t> {
    fn all(&mut self) {
        self.transforms();
        self.switches();
        for (name, resource) in self.resources.entries() {
            let kind = resource.get("Type").and_then(Node::text).unwrap_or_default();
            self.code(name, resource, kind);
            self.volumes(name, resource);
            // The policy of a VPC endpoint can only take away.
            if kind != "AWS::EC2::VPCEndpoint" {
                self.readable(name, resource);
                self.principals(name, resource);
                self.assumed(name, resource, kind);
            }
            match kind {
                "AWS::IAM::Role" => self.boundary(name, resource),
                "AWS::IAM::User" | "AWS::IAM::AccessKey" => {
                    self.found(resource, name, Rule::NoOutsidePrincipal, "a user's key works from anywhere, for ever");
                }
                "AWS::EC2::SecurityGroup" => self.no_ingress(name, resource),
                "AWS::EC2::SecurityGroupIngress" => {
                    self.found(resource, name, Rule::NoIngress, "it lets traffic in");
                }
                "AWS::EC2::LaunchTemplate" => self.metadata(name, resource, &["Properties", "LaunchTemplateData"]),
                "AWS::EC2::Instance" => self.metadata(name, resource, &["Properties"]),
                "AWS::S3::Bucket" => self.bucket(name, resource),
                "AWS::SecretsManager::Secret" | "AWS::SNS::Topic" | "AWS::SQS::Queue" | "AWS::EC2::Volume" => {
                    self.encrypted(name, resource, kind)
                }
                _ => {}
            }
        }
    }

    fn found(&mut self, at: &Node, of: &str, rule: Rule, reason: impl Into<String>) {
        self.findings.insert(Finding { line: at.line, of: of.to_owned(), rule, reason: reason.into() });
    }

    /// Finds every transform, however deep it stands.
    fn transforms(&mut self) {
        let reason = "a transform changes the template before anybody reads it";
        if let Some(transform) = self.root.get("Transform") {
            self.found(transform, "", Rule::NoCode, reason);
        }
        for (name, part) in self.root.entries().iter().filter(|(name, _)| name != "Resources") {
            for transform in transforms(name, part) {
                self.found(transform, "", Rule::NoCode, reason);
            }
        }
        for (name, resource) in self.resources.entries() {
            for transform in transforms(name, resource) {
                self.found(transform, name, Rule::NoCode, reason);
            }
        }
    }

    fn switches(&mut self) {
        for (name, switch) in self.root.get("Parameters").map(Node::entries).unwrap_or_default() {
            let default = switch.get("Default");
            if OFF.iter().any(|off| name.starts_with(off)) && default.and_then(Node::text) != Some("false") {
                self.found(default.unwrap_or(switch), name, Rule::SwitchDefaults, "this role has to be off by default");
            }
        }
    }

    fn code(&mut self, name: &str, resource: &Node, kind: &str) {
        if CODE.contains(&kind) || kind.starts_with("Custom::") {
            let at = resource.get("Type").unwrap_or(resource);
            self.found(at, name, Rule::NoCode, format!("a `{kind}` runs or brings what this template does not show"));
        }
    }

    /// Finds policies and statements that are not written out, such as one given as a text.
    fn readable(&mut self, name: &str, resource: &Node) {
        for (key, policy) in unread(resource) {
            let rule = if LETS_IN.contains(&key) { Rule::NoOutsidePrincipal } else { Rule::NoWildcardAssumeRole };
            self.found(policy, name, rule, format!("`{key}` has to be written out, to be read"));
        }
    }

    fn principals(&mut self, name: &str, resource: &Node) {
        for statement in statements(resource).into_iter().filter(|statement| statement.allows()) {
            if let Some(others) = statement.0.get("NotPrincipal") {
                self.found(
                    others,
                    name,
                    Rule::NoOutsidePrincipal,
                    "everybody but those named is everybody else in the world",
                );
            }
            for (kind, who) in statement.principals() {
                if let Some(reason) = self.outside(kind, who) {
                    self.found(who, name, Rule::NoOutsidePrincipal, reason);
                }
            }
        }
    }

    /// Returns why somebody is not of this account.
    fn outside(&self, kind: &str, who: &Node) -> Option<String> {
        let said = who.said();
        match kind {
            "Service" => {
                let aws = said.ends_with(".amazonaws.com") || said.ends_with(".amazonaws.com.cn");
                (!aws || said.contains('*')).then(|| format!("`{said}` is no service of AWS"))
            }
            "AWS" if self.is_own(&said) => None,
            "AWS" if said == "*" => Some("everybody in the world is let in".to_owned()),
            "AWS" => Some(format!("`{said}` is not known to be of this account")),
            "Federated" if said.contains(":${AWS::AccountId}:") || self.is_resource(&said) => None,
            "*" => Some("everybody in the world is let in".to_owned()),
            _ => Some(format!("`{said}` is an identity from outside of this account")),
        }
    }

    fn is_own(&self, said: &str) -> bool {
        let account = said.split(':').nth(4);
        said == "${AWS::AccountId}"
            || self.accounts.contains(said)
            || self.is_resource(said)
            || self.is_own_parameter(said)
            // `${AWS::AccountId}` has colons itself.
            || said.starts_with("arn:") && said.contains(":iam::${AWS::AccountId}:")
            || said.starts_with("arn:") && account.is_some_and(|account| self.accounts.contains(account))
    }

    /// Returns whether it is `${Name}` or `${Name.Attribute}` of a resource of the template.
    fn is_resource(&self, said: &str) -> bool {
        let name = said.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        let name = name.map(|name| name.split('.').next().unwrap_or_default());
        name.is_some_and(|name| self.resources.get(name).is_some())
    }

    /// Returns whether it is `${Name}` of a parameter whose pattern takes ARNs of the template's own account only.
    fn is_own_parameter(&self, said: &str) -> bool {
        let name = said.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        let pattern = name.and_then(|name| self.root.at(&["Parameters", name, "AllowedPattern"])?.text());
        pattern.is_some_and(|pattern| account_of(pattern).is_some_and(|account| self.accounts.contains(account)))
    }

    fn assumed(&mut self, name: &str, resource: &'t Node, kind: &str) {
        if kind == "AWS::IAM::ManagedPolicy" && self.is_ceiling(name, resource) {
            return;
        }
        let limited = kind == "AWS::IAM::Role" && self.is_held(resource, limits_assume_role);
        for statement in statements(resource).into_iter().filter(|statement| statement.allows()) {
            if !statement.is_about("sts:AssumeRole") || limited {
                continue;
            }
            if let Some(rest) = statement.0.get("NotResource") {
                self.found(rest, name, Rule::NoWildcardAssumeRole, "it may take every role but those named");
            }
            for role in statement.resources() {
                let said = role.said();
                if said.contains('*') {
                    let reason = format!("it may take every role that `{said}` stands for");
                    self.found(role, name, Rule::NoWildcardAssumeRole, reason);
                }
            }
        }
    }

    /// Returns whether a managed policy is a boundary and nothing else: it grants nothing then.
    fn is_ceiling(&self, name: &str, policy: &Node) -> bool {
        let attached = ["Roles", "Users", "Groups"].iter().any(|who| policy.at(&["Properties", who]).is_some());
        let own = format!("${{{name}}}");
        let roles = || self.resources.entries().iter().map(|(_, resource)| resource);
        let bounds = |role: &Node| role.at(&["Properties", "PermissionsBoundary"]).is_some_and(|one| one.names(&own));
        // Some list it, in a case in which it only denies.
        let lists = |role: &Node| {
            let listed = role.at(&["Properties", "ManagedPolicyArns"]).map(Node::items).unwrap_or_default();
            listed
                .iter()
                .filter(|one| one.names(&own))
                .any(|one| !one.choice().is_some_and(|case| only_denies(policy, case)))
        };
        !attached && !roles().any(lists) && roles().any(bounds)
    }

    /// Returns whether a role has a boundary that does something in every case. What the customer's own does nobody knows
    /// here: a policy of the template that the role lists has to do it then.
    fn is_held(&self, role: &Node, does: impl Fn(&Node) -> bool + Copy) -> bool {
        let boundary = role.at(&["Properties", "PermissionsBoundary"]);
        let sides = boundary.map(Node::each).unwrap_or_default();
        !sides.is_empty()
            && !boundary.is_some_and(Node::may_be_nothing)
            && sides.into_iter().all(|side| match self.ceiling(side) {
                Some(policy) => does(policy),
                None => self.is_own_parameter(&side.said()) && self.lists(role, does),
            })
    }

    /// Returns whether a role lists a policy of the template that does something.
    fn lists(&self, role: &Node, does: impl Fn(&Node) -> bool) -> bool {
        let listed = role.at(&["Properties", "ManagedPolicyArns"]).map(Node::each).unwrap_or_default();
        listed.into_iter().filter_map(|one| self.ceiling(one)).any(does)
    }

    fn ceiling(&self, boundary: &Node) -> Option<&'t Node> {
        let said = boundary.said();
        let name = said.strip_prefix("${")?.strip_suffix('}')?;
        let (_, policy) = self.resources.entries().iter().find(|(known, _)| known == name)?;
        (policy.get("Type").and_then(Node::text) == Some("AWS::IAM::ManagedPolicy")).then_some(policy)
    }

    fn boundary(&mut self, name: &str, role: &'t Node) {
        let boundary = role.at(&["Properties", "PermissionsBoundary"]);
        let mut left_alone = boundary.is_none_or(Node::may_be_nothing);
        for one in boundary.map(Node::each).unwrap_or_default() {
            match self.ceiling(one) {
                // One that the customer names is the customer's business; ours is listed then.
                None if self.is_own_parameter(&one.said()) => left_alone |= !self.lists(role, keeps_boundaries),
                None => {
                    let reason = format!("the boundary `{}` is not in this template, to be read", one.said());
                    self.found(one, name, Rule::Boundary, reason);
                }
                Some(policy) if !keeps_boundaries(policy) => {
                    let reason = "its boundary lets it make roles without that boundary, or take it off";
                    self.found(one, name, Rule::Boundary, reason);
                }
                Some(_) => {}
            }
        }
        // One without is as mighty as its policies: they have to name every action, and none of IAM.
        if left_alone {
            let wide = statements(role).into_iter().filter(|statement| statement.allows()).any(is_wide);
            let managed = role.at(&["Properties", "ManagedPolicyArns"]).is_some_and(|list| !list.each().is_empty());
            if wide || managed {
                let reason = "no boundary of this template holds it, and its policies do not name all that it may do";
                self.found(role, name, Rule::Boundary, reason);
            }
        }
    }

    fn no_ingress(&mut self, name: &str, group: &Node) {
        let rules = group.at(&["Properties", "SecurityGroupIngress"]).map(Node::each).unwrap_or_default();
        let guarded = self.guards_endpoints_only(name);
        for rule in rules {
            if !(guarded && self.is_from_inside(rule)) {
                self.found(rule, name, Rule::NoIngress, "it lets traffic in");
            }
        }
    }

    /// Returns whether a rule lets in nothing but HTTPS of another security group of this template.
    fn is_from_inside(&self, rule: &Node) -> bool {
        let says = |key: &str| rule.get(key).map(Node::said).unwrap_or_default();
        let others =
            ["CidrIp", "CidrIpv6", "SourcePrefixListId", "SourceSecurityGroupName", "SourceSecurityGroupOwnerId"];
        self.is_resource(&says("SourceSecurityGroupId"))
            && others.iter().all(|key| rule.get(key).is_none())
            && [says("IpProtocol"), says("FromPort"), says("ToPort")] == ["tcp", "443", "443"]
    }

    /// Returns whether VPC endpoints, behind which only AWS listens, are all that a security group is given to.
    fn guards_endpoints_only(&self, name: &str) -> bool {
        let given = |resource: &Node| {
            let mut found = false;
            resource.walk(&mut |node| {
                found |= node.names(&format!("${{{name}}}")) || node.names(&format!("${{{name}.GroupId}}"))
            });
            found
        };
        self.resources.entries().iter().all(|(_, resource)| {
            resource.get("Type").and_then(Node::text) == Some("AWS::EC2::VPCEndpoint") || !given(resource)
        })
    }

    fn metadata(&mut self, name: &str, resource: &Node, under: &[&str]) {
        let options = resource.at(under).and_then(|data| data.get("MetadataOptions"));
        let at = options.unwrap_or(resource);
        let says = |key: &str| options.and_then(|options| options.get(key)?.text());
        if says("HttpTokens") != Some("required") {
            self.found(at, name, Rule::InstanceMetadata, "`HttpTokens` has to be `required` (IMDSv2)");
        }
        if says("HttpPutResponseHopLimit") != Some("1") {
            self.found(at, name, Rule::InstanceMetadata, "`HttpPutResponseHopLimit` has to be 1");
        }
    }

    fn bucket(&mut self, name: &str, bucket: &Node) {
        if bucket.at(&["Properties", "BucketEncryption", "ServerSideEncryptionConfiguration"]).is_none() {
            self.found(bucket, name, Rule::Encryption, "it has no `BucketEncryption`");
        }
        let block = bucket.at(&["Properties", "PublicAccessBlockConfiguration"]);
        let open: Vec<&str> = WRITABLE_BY_ALL
            .into_iter()
            .filter(|key| block.and_then(|block| block.get(key)?.text()) != Some("true"))
            .collect();
        if !open.is_empty() {
            let reason = format!("`PublicAccessBlockConfiguration` does not say `true` for {}", open.join(", "));
            self.found(block.unwrap_or(bucket), name, Rule::NoPublicAccess, reason);
        }
    }

    /// Finds volumes that a machine gets without encryption.
    fn volumes(&mut self, name: &str, resource: &Node) {
        let mut volumes = Vec::new();
        resource.walk(&mut |node| {
            let mappings = node.get("BlockDeviceMappings").map(Node::each).unwrap_or_default();
            volumes.extend(mappings.into_iter().filter_map(|mapping| mapping.get("Ebs")));
        });
        for volume in volumes.into_iter().flat_map(Node::each) {
            if volume.get("Encrypted").and_then(Node::text) != Some("true") {
                self.found(volume, name, Rule::Encryption, "this volume is not encrypted");
            }
        }
    }

    fn encrypted(&mut self, name: &str, resource: &Node, kind: &str) {
        let says = |key: &str| resource.at(&["Properties", key]).map(Node::said);
        let is = match kind {
            "AWS::SecretsManager::Secret" => says("KmsKeyId").is_some(),
            "AWS::SNS::Topic" => says("KmsMasterKeyId").is_some(),
            "AWS::EC2::Volume" => says("Encrypted").as_deref() == Some("true"),
            "AWS::SQS::Queue" => {
                says("SqsManagedSseEnabled").as_deref() != Some("false") || says("KmsMasterKeyId").is_some()
            }
            _ => true,
        };
        if !is {
            self.found(resource, name, Rule::Encryption, format!("this `{kind}` is not encrypted"));
        }
    }
}

/// Returns the transforms in and below a value, and the value itself when its name says so.
fn transforms<'n>(name: &str, value: &'n Node) -> Vec<&'n Node> {
    let mut found: Vec<&Node> = (name == "Fn::Transform").then_some(value).into_iter().collect();
    value.walk(&mut |node| found.extend(node.get("Fn::Transform")));
    found
}

/// Returns whether a statement grants what it does not name.
fn is_wide(statement: Statement<'_>) -> bool {
    statement.0.get("NotAction").is_some()
        || statement.0.get("Action").is_some_and(|actions| {
            actions.each().iter().any(|action| action.said().contains('*') || action.said().starts_with("iam:"))
        })
}

/// Returns whether a policy's statements all deny when the condition of an `Fn::If` has the given value.
fn only_denies(policy: &Node, case: (&str, bool)) -> bool {
    let (condition, holds) = case;
    let list = policy.at(&["Properties", "PolicyDocument", "Statement"]).map(Node::items).unwrap_or_default();
    let there = list.iter().flat_map(|statement| match (statement.condition(), statement.get("Fn::If")) {
        (Some(known), Some(sides)) if known == condition => {
            sides.items().get(if holds { 1 } else { 2 }).map(Node::each).unwrap_or_default()
        }
        _ => statement.each(),
    });
    there.map(Statement).all(Statement::denies)
}

/// Returns whether a boundary leaves named roles only to be taken.
fn limits_assume_role(policy: &Node) -> bool {
    statements(policy).into_iter().any(|statement| {
        let all_but_some = statement.0.get("NotResource").is_some() && statement.0.get("Condition").is_none();
        statement.denies() && statement.is_about("sts:AssumeRole") && all_but_some
    })
}

/// Returns whether a boundary keeps those under it from making roles without it, and from taking it off.
fn keeps_boundaries(policy: &Node) -> bool {
    let everywhere = |statement: &Statement<'_>| {
        statement.denies() && statement.resources().iter().any(|resource| resource.said() == "*")
    };
    let all = statements(policy);
    let makes = all.iter().filter(|one| everywhere(one)).any(|statement| {
        let conditioned = statement.0.at(&["Condition", "StringNotEquals", "iam:PermissionsBoundary"]).is_some()
            || statement.0.at(&["Condition", "ArnNotEquals", "iam:PermissionsBoundary"]).is_some();
        ["iam:CreateRole", "iam:PutRolePermissionsBoundary"].iter().all(|action| statement.is_about(action))
            && conditioned
    });
    let removes = all.iter().filter(|one| everywhere(one) && one.0.get("Condition").is_none());
    makes && removes.into_iter().any(|statement| statement.is_about("iam:DeleteRolePermissionsBoundary"))
}
