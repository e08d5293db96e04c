//! Checks a whole template: it must keep the rules, and must be the template that Freehold renders, except for
//! resources and outputs that the customer added.

use std::collections::BTreeSet;
use std::str::FromStr;

use serde::Serialize;

use crate::comparison::{self, Agreed, Names, Overview};
use crate::finding::{Finding, Rule};
use crate::node::{Kind, Node};
use crate::read::{Unreadable, read};
use crate::rules;
use crate::template::Template;

/// A part that the customer adds to the template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Own {
    /// A resource, by its logical id and its type.
    Resource { name: String, kind: String },
    /// An output of the stack.
    Output { name: String },
}

impl FromStr for Own {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_kind = |kind: &str| kind.contains("::") && kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b':');
        match text.split_once('=') {
            Some((name, kind)) if is_id(name) && is_kind(kind) => {
                Ok(Self::Resource { name: name.to_owned(), kind: kind.to_owned() })
            }
            _ => Err(format!(
                "`{text}` is not a resource; write its logical id and its type, such as `Alarm=AWS::SNS::Topic`"
            )),
        }
    }
}

impl Own {
    /// Returns the customer's own output `name`.
    ///
    /// # Errors
    /// A message for a text that is not the logical id of an output.
    pub fn output(name: &str) -> Result<Self, String> {
        if is_id(name) {
            return Ok(Self::Output { name: name.to_owned() });
        }
        Err(format!("`{name}` is not an output; write its logical id, such as `AlarmTopic`"))
    }

    fn name(&self) -> &str {
        match self {
            Self::Resource { name, .. } | Self::Output { name } => name,
        }
    }

    /// Returns whether the entry `name` of a section of the template is this part.
    fn is(&self, section: &str, name: &str, entry: &Node) -> bool {
        match self {
            Self::Resource { name: own, kind } => {
                section == "Resources" && own == name && entry.get("Type").and_then(Node::text) == Some(kind)
            }
            Self::Output { name: own } => section == "Outputs" && own == name,
        }
    }
}

fn is_id(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// A resource or an output of the template that the customer added. It is not checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Added {
    /// The line in the template, from 1.
    pub line: usize,
    pub name: String,
    /// The type of a resource, or `output`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// The result of the check of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The first findings, sorted by line, at most [`MAX_FINDINGS`]; empty for the template that Freehold renders.
    pub findings: Vec<Finding>,
    /// The number of findings beyond those in `findings`.
    pub left_out: usize,
    /// The resources and outputs that the customer added.
    pub added: Vec<Added>,
    /// The vendor, the install and the other names in the template; `None` when one of them cannot be read.
    pub names: Option<Names>,
    /// The app's roles and the parameters that the customer answers; `None` when the names cannot be read.
    pub overview: Option<Overview>,
    /// Whether the template states that it is the template of an install stack. A template without this statement has
    /// findings.
    pub is_install_stack: bool,
}

/// The maximum number of findings in a result. A template with more is not one that Freehold rendered.
pub const MAX_FINDINGS: usize = 100;

/// Returns the first findings about a template, sorted by line, at most [`MAX_FINDINGS`]. A template that Freehold
/// rendered has no findings.
///
/// # Errors
/// [`Unreadable`] when the text is not a template.
pub fn check(template: &str) -> Result<Vec<Finding>, Unreadable> {
    Ok(verify(template, &[], None)?.findings)
}

/// Checks a template to which a customer may have added the parts `own`. Compares the policies of the roles with
/// the terms in `agreed`, if there are any.
///
/// # Errors
/// [`Unreadable`] when the text is not a template.
pub fn verify(template: &str, own: &[Own], agreed: Option<&Agreed<'_>>) -> Result<Checked, Unreadable> {
    let whole = read(template)?;
    let (root, added) = without(whole, own);
    let mut findings = rules::find(&Template::new(&root)?);
    let (mut differences, read) = comparison::compare(&root, None);
    if agreed.is_some() {
        // The template is also compared without a contract, to check the form of the policies, which does not depend on
        // a contract.
        differences.extend(comparison::compare(&root, agreed).0);
    }
    let judged: BTreeSet<(usize, String)> = findings.iter().map(|one| (one.line, one.of.clone())).collect();
    // If a rule has a finding for a line, the finding that this line differs is left out, because it is less exact.
    findings.extend(differences.into_iter().filter(|one| !judged.contains(&(one.line, one.of.clone()))));
    findings.extend(own.iter().filter(|own| !added.iter().any(|(one, _)| one == *own)).map(absent));
    let added = added.into_iter().map(|(_, added)| added).collect();
    let left_out = findings.len().saturating_sub(MAX_FINDINGS);
    let findings = findings.into_iter().take(MAX_FINDINGS).map(Finding::on_one_line).collect();
    let (names, overview) = read.unzip();
    let is_install_stack = root.at(&["Metadata", "Freehold"]).is_some();
    Ok(Checked { findings, left_out, added, names, overview, is_install_stack })
}

fn absent(own: &Own) -> Finding {
    let reason = match own {
        Own::Resource { name, kind } => {
            format!("the template has no resource `{name}` of type `{kind}`, which `--allow` names")
        }
        Own::Output { name } => format!("the template has no output `{name}`, which `--allow-output` names"),
    };
    Finding { line: 1, of: own.name().to_owned(), rule: Rule::AsRendered, reason, way_out: None }
}

/// Removes the customer's own resources and outputs from a template. Returns the rest and what was removed.
fn without(mut root: Node, own: &[Own]) -> (Node, Vec<(Own, Added)>) {
    let mut added = Vec::new();
    let Kind::Map(sections) = &mut root.kind else { return (root, added) };
    for (section, entries) in sections {
        let Kind::Map(entries) = &mut entries.kind else { continue };
        entries.retain(|(name, entry)| {
            let Some(own) = own.iter().find(|own| own.is(section, name, entry)) else { return true };
            let kind = match own {
                Own::Resource { kind, .. } => kind.clone(),
                Own::Output { .. } => "output".to_owned(),
            };
            added.push((own.clone(), Added { line: entry.line, name: name.clone(), kind }));
            false
        });
    }
    (root, added)
}
