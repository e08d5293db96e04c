//! The permissions of the roles in the terms that the customer agreed to. The comparison uses them instead of the
//! policies in the template.

use std::collections::BTreeMap;

use freehold_permissions::{Answers, InStack, RolePlace, inputs_read};
use freehold_protocol::app_version::{RolePolicy, parameter_id};
use freehold_protocol::contract::{RoleTerms, Terms};
use serde_json::Value;

use super::agreed_inputs;
use super::difference::{OTHER_CONTRACT, finding};
use super::identity::Names;
use super::inputs::Inputs;
use super::place::shown;
use super::roles::{Granted, Roles, is_of_aws};
use crate::finding::Finding;
use crate::node::Node;

/// The terms of a contract, and the vendor's own answers to inputs that policies use.
#[derive(Debug, Clone, Copy)]
pub struct Agreed<'a> {
    pub terms: &'a Terms,
    /// The vendor's answers by the name of the input. An input without an answer has the default of the terms.
    pub answers: &'a BTreeMap<String, Value>,
}

/// Gives each role the policies of the terms. It is a finding if the terms belong to another app, or if the template
/// does not name the terms.
pub(super) fn give(
    agreed: &Agreed<'_>,
    root: &Node,
    names: &Names,
    inputs: &Inputs,
    roles: &mut Roles,
    findings: &mut Vec<Finding>,
) {
    findings.extend(other_terms(agreed.terms, root, names));
    findings.extend(agreed_inputs::differences(root, inputs, agreed.terms));
    let Names { tenant, app, install, account, region, .. } = names;
    let place = RolePlace { tenant, app, install, account, region };
    let asked = asked(agreed.terms, inputs);
    findings.extend(asked.iter().filter_map(|(name, parameter)| other_default(root, name, parameter, agreed.terms)));
    let answers = answers(agreed, &asked);
    for (name, logical, role) in roles.all() {
        let line = root.at(&["Resources", &logical]).map_or(root.line, |role| role.line);
        let terms = agreed.terms.roles.iter().find(|terms| terms.role == name);
        let policies = terms.map(|terms| terms.policies.as_slice()).unwrap_or_default();
        let boundary = terms.and_then(|terms| terms.boundary.as_deref());
        match InStack::of(policies, boundary, place, &answers) {
            Ok(InStack { inline, managed }) => {
                let strange = managed.iter().filter(|arn| !is_of_aws(arn));
                findings.extend(strange.map(|arn| not_of_aws(line, &logical, arn)));
                *role = Granted { managed, inline: Some(inline) };
            }
            Err(reason) => {
                let reason = format!("the policies of role `{name}` in the contract cannot be compared: {reason}");
                let way_out = "for an input that the vendor answers, pass `--input NAME=VALUE`";
                findings.push(finding(line, &logical, reason).or(way_out));
            }
        }
    }
    findings.extend(agreed.terms.roles.iter().filter_map(|terms| other_switch(root, terms)));
    for role in &mut roles.named {
        let terms = agreed.terms.roles.iter().find(|terms| terms.role == role.key.as_str());
        // No break-glass role is on from the start, whatever the terms contain.
        role.is_on = terms.is_some_and(|terms| terms.on) && !role.key.is_break_glass();
    }
    let known: Vec<String> = roles.all().map(|(name, ..)| name).collect();
    findings.extend(unknown_to_terms(&known, agreed.terms, root));
}

fn not_of_aws(line: usize, logical: &str, arn: &str) -> Finding {
    let reason = format!("the contract gives this role `{}`, which is not a managed policy of AWS", shown(arn));
    finding(line, logical, reason).or("ask the vendor for a contract that names the policies of AWS")
}

fn other_terms(terms: &Terms, root: &Node, names: &Names) -> Option<Finding> {
    let place = ["Parameters", "AcceptedContract", "Default"];
    let line = root.at(&place).map_or(root.line, |node| node.line);
    let digest = match terms.digest() {
        Ok(digest) => digest,
        Err(error) => return Some(finding(line, "AcceptedContract", format!("the terms have no digest: {error}"))),
    };
    (digest != names.contract || terms.app != names.app).then(|| {
        let reason = format!(
            "the template is for the terms {} of app `{}`, and the contract has the terms {digest} of app `{}`",
            names.contract, names.app, terms.app
        );
        finding(line, "AcceptedContract", reason).or(OTHER_CONTRACT)
    })
}

/// Finds roles of the template, except those of the modes, that the terms do not have, and roles of the terms that the
/// template does not have.
fn unknown_to_terms(known: &[String], terms: &Terms, root: &Node) -> Vec<Finding> {
    let modes = ["provision", "maintenance", "deprovision"];
    let is_in_terms = |name: &str| terms.roles.iter().any(|role| role.role == name);
    let more = known.iter().filter(|name| !modes.contains(&name.as_str()) && !is_in_terms(name));
    let more = more.map(|name| format!("the stack has the role `{name}`, which the contract does not have"));
    let is_missing = |role: &&RoleTerms| !known.contains(&role.role);
    let less = terms.roles.iter().filter(is_missing);
    let less = less.map(|role| format!("the contract has the role `{}`, which the stack does not have", role.role));
    more.chain(less).map(|reason| finding(root.line, "", reason)).collect()
}

/// Finds a mode that every stack switches on from the start and the terms do not, or the reverse.
fn other_switch(root: &Node, terms: &RoleTerms) -> Option<Finding> {
    let (switch, is_on) = match terms.role.as_str() {
        "provision" => ("EnableProvision", true),
        "maintenance" => ("EnableMaintenance", true),
        "deprovision" => ("EnableDeprovision", false),
        _ => return None,
    };
    let line = root.at(&["Parameters", switch, "Default"]).map_or(root.line, |default| default.line);
    let says = |is_on: bool| if is_on { "on" } else { "off" };
    (terms.on != is_on).then(|| {
        let reason = format!(
            "role `{}` is {} from the start in each stack, and the contract says that it is {}",
            terms.role,
            says(is_on),
            says(terms.on)
        );
        finding(line, switch, reason).or("ask the vendor for a contract of this release of Freehold")
    })
}

/// Returns the values of the inputs that policies use. The customer answers the inputs in `asked`.
fn answers(agreed: &Agreed<'_>, asked: &BTreeMap<String, String>) -> Answers {
    let mut answers = Answers::default();
    for (name, default) in agreed.terms.policy_inputs.iter().filter(|(name, _)| !asked.contains_key(*name)) {
        match agreed.answers.get(name) {
            Some(answer) => answers.known(name, answer.clone()),
            None if default.is_null() => {}
            None => answers.known(name, default.clone()),
        }
    }
    asked.iter().for_each(|(name, parameter)| answers.asked(name, parameter));
    answers
}

/// Returns the inputs that policies use and that the customer answers, each with its stack parameter.
fn asked(terms: &Terms, inputs: &Inputs) -> BTreeMap<String, String> {
    let documents = terms.roles.iter().flat_map(|role| &role.policies).filter_map(|policy| match policy {
        RolePolicy::Inline { document, .. } => Some(document),
        RolePolicy::Managed(_) | RolePolicy::GcpPredefined(_) => None,
    });
    let boundaries = terms.roles.iter().filter_map(|role| role.boundary.as_ref());
    let used = documents.chain(boundaries).flat_map(|document| inputs_read(document));
    let asked = used.map(|name| (name.clone(), parameter_id("Input", &name)));
    asked.filter(|(_, parameter)| inputs.is_plain(parameter)).collect()
}

/// Finds a default in the template that makes a policy allow something other than the contract shows: a default that
/// the terms do not have, a pattern, or a variable of IAM.
fn other_default(root: &Node, name: &str, parameter: &str, terms: &Terms) -> Option<Finding> {
    let default = root.at(&["Parameters", parameter, "Default"])?;
    // If the terms have no default for an input, its default in the template is the empty text. A default that is not a
    // text counts as a pattern.
    let text = default.text().unwrap_or("*");
    let known = terms.policy_inputs.get(name).unwrap_or(&Value::Null);
    let is_wide = text.contains(['*', '?']) || text.contains("${");
    if !is_wide && is_written_as(known, text) {
        return None;
    }
    let (reason, way_out) = if is_wide {
        let reason = format!(
            "the default of input `{name}` is the pattern `{}`, and a policy of the contract contains this input, so the role \
             could do more than the contract says",
            shown(text)
        );
        (reason, "ask the vendor for a template without this default")
    } else {
        let says = if known.is_null() { "names no default".to_owned() } else { format!("names the default {known}") };
        let reason = format!(
            "the default of input `{name}` is `{}`, but a policy of the contract contains this input, and the contract {}",
            shown(text),
            shown(&says)
        );
        (reason, OTHER_CONTRACT)
    };
    Some(finding(default.line, parameter, reason).or(way_out))
}

/// Returns whether a stack writes the default `known` of an input as `text`. A list is written as words or as JSON.
fn is_written_as(known: &Value, text: &str) -> bool {
    let json = known.to_string();
    match known {
        Value::Null => text.is_empty(),
        Value::String(plain) => plain == text || json == text,
        Value::Array(items) => {
            let words: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            json == text || words.is_some_and(|words| words.join(",") == text)
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => json == text,
    }
}
