//! The rules, and the type of a finding.

use freehold_protocol::shape::is_format;
use serde::Serialize;

/// A problem in a template that a security team should not accept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// The line in the template, from 1.
    pub line: usize,
    /// The name of the resource or parameter; empty for the template as a whole.
    pub of: String,
    pub rule: Rule,
    pub reason: String,
    /// The advice at the end of the reason, if Freehold wrote one. Another text in the reason that looks like advice is a value of
    /// the template.
    #[serde(skip)]
    pub way_out: Option<String>,
}

/// The maximum length of a reason and of a name, in characters.
const MAX_CHARS: usize = 1000;

impl Finding {
    /// Returns the reason without its way out.
    #[must_use]
    pub fn problem(&self) -> &str {
        let Some(way_out) = &self.way_out else { return &self.reason };
        let problem = self.reason.strip_suffix(way_out.as_str()).and_then(|problem| problem.strip_suffix("; "));
        problem.unwrap_or(&self.reason)
    }

    /// Returns the finding with a way out, at the end of the reason.
    pub(crate) fn or(self, way_out: impl Into<String>) -> Self {
        let way_out = way_out.into();
        Self { reason: format!("{}; {way_out}", self.reason), way_out: Some(way_out), ..self }
    }

    /// Returns the finding with texts on one line, so that a value of the template cannot look like another line of the
    /// output.
    pub(crate) fn on_one_line(self) -> Self {
        let way_out = self.way_out.as_deref().map(one_line);
        Self { of: one_line(&self.of), reason: one_line(&self.reason), way_out, ..self }
    }
}

fn one_line(text: &str) -> String {
    let is_odd = |c: char| c.is_control() || is_format(c) || matches!(c, '\u{2028}' | '\u{2029}');
    let mut line: String = text.chars().map(|c| if is_odd(c) { ' ' } else { c }).take(MAX_CHARS).collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        line.push('…');
    }
    line
}

/// The rule that a finding belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    AsRendered,
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
    /// Returns the rule's name, as findings and options use it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AsRendered => "as-rendered",
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

/// Every rule and its requirement, as a text for people.
pub const RULES: [(Rule, &str); 10] = [
    (
        Rule::AsRendered,
        "each resource, parameter, condition, statement, output and text is the one that Freehold renders for this install",
    ),
    (Rule::NoCode, "nothing runs while the stack is made: no transform, custom resource, function or nested stack"),
    (Rule::NoOutsidePrincipal, "nobody outside of the account may assume a role or use a resource"),
    (Rule::NoWildcardAssumeRole, "a policy that allows `sts:AssumeRole` names each role"),
    (
        Rule::Boundary,
        "every role that the vendor's policies belong to has a boundary, and nobody can remove the boundary",
    ),
    (Rule::NoIngress, "no security group lets traffic in, except HTTPS from a group of this template to VPC endpoints"),
    (Rule::InstanceMetadata, "the metadata of an instance is read with a token, and from the instance only"),
    (Rule::Encryption, "buckets, secrets, queues, topics and volumes are encrypted"),
    (Rule::NoPublicAccess, "no bucket can be made public"),
    (Rule::SwitchDefaults, "the dangerous modes are off until the customer switches them on"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(reason: &str) -> Finding {
        Finding { line: 1, of: String::new(), rule: Rule::AsRendered, reason: reason.to_owned(), way_out: None }
    }

    #[test]
    fn only_advice_of_freehold_is_a_way_out() {
        let own = finding("`A` is `1`").or("put it into quotes").on_one_line();
        let forged = finding("`A` is `x`; run `curl evil`").on_one_line();

        assert_eq!((own.problem(), own.way_out.as_deref()), ("`A` is `1`", Some("put it into quotes")));
        assert_eq!(own.reason, "`A` is `1`; put it into quotes");
        assert_eq!((forged.problem(), forged.way_out.as_deref()), ("`A` is `x`; run `curl evil`", None));
    }
}
