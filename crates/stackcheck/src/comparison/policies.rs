//! Checks the inline policies that an app gives to a role: their form, and that they name only the customer's account.
//! The permissions in them are part of the contract and are not checked here.

use serde_json::Value;

use super::hole::{foreign_account, is_account_of_aws};
use super::inputs::Inputs;
use super::place::shown;
use crate::node::{Kind, Node};
use crate::scalar::is_text;

/// The account and the inputs that a policy may name.
pub(super) struct Context<'c> {
    /// The account to which the template is bound.
    pub(super) account: &'c str,
    pub(super) inputs: &'c Inputs,
}

type Wrong<'t> = Vec<(&'t Node, String)>;

/// Returns the mistakes in a role's inline policies, each with the value that is wrong.
pub(super) fn wrong<'t>(policies: &'t Node, context: &Context<'_>) -> Wrong<'t> {
    let Kind::List(all) = &policies.kind else { return vec![(policies, "is not a list of policies".to_owned())] };
    let mut wrong = Vec::new();
    for policy in all {
        only_keys(policy, &["PolicyDocument", "PolicyName"], &mut wrong);
        if !policy.get("PolicyName").and_then(Node::text).is_some_and(is_policy_name) {
            wrong.push((policy, "has a policy without a valid IAM name".to_owned()));
        }
        match policy.get("PolicyDocument") {
            Some(document) => of_document(document, context, &mut wrong),
            None => wrong.push((policy, "has a policy without a document".to_owned())),
        }
    }
    wrong
}

fn is_policy_name(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"+=,.@_-".contains(&b))
}

fn of_document<'t>(document: &'t Node, context: &Context<'_>, wrong: &mut Wrong<'t>) {
    only_keys(document, &["Id", "Statement", "Version"], wrong);
    let Some(statements) = document.get("Statement") else {
        return wrong.push((document, "has a policy without statements".to_owned()));
    };
    let statements = match &statements.kind {
        Kind::List(items) => items.as_slice(),
        Kind::Map(_) | Kind::Text(_) => std::slice::from_ref(statements),
    };
    for statement in statements {
        of_statement(statement, context, wrong);
    }
    for key in ["Id", "Version"] {
        document.get(key).into_iter().for_each(|text| value(text, context, wrong));
    }
}

fn of_statement<'t>(statement: &'t Node, context: &Context<'_>, wrong: &mut Wrong<'t>) {
    let keys = ["Action", "Condition", "Effect", "NotAction", "NotResource", "Resource", "Sid"];
    only_keys(statement, &keys, wrong);
    if !matches!(statement.get("Effect").and_then(Node::text), Some("Allow" | "Deny")) {
        wrong.push((statement, "has a statement that neither allows nor denies".to_owned()));
    }
    for pair in [["Action", "NotAction"], ["Resource", "NotResource"]] {
        if pair.iter().filter(|key| statement.get(key).is_some()).count() != 1 {
            wrong.push((
                statement,
                format!("has a statement with neither `{}` nor `{}`, or with both", pair[0], pair[1]),
            ));
        }
    }
    for (key, part) in statement.entries() {
        if key == "Condition" {
            let operators = part.entries().iter().flat_map(|(_, tests)| tests.entries());
            operators.for_each(|(_, values)| value(values, context, wrong));
            if !matches!(&part.kind, Kind::Map(all) if all.iter().all(|(_, tests)| matches!(tests.kind, Kind::Map(_))))
            {
                wrong.push((part, "has a condition that cannot be read".to_owned()));
            }
        } else {
            value(part, context, wrong);
        }
    }
}

/// Checks a value in a policy: a text, a Boolean or number as JSON writes it, an `Fn::Sub` with references to inputs, or
/// a list of these.
fn value<'t>(node: &'t Node, context: &Context<'_>, wrong: &mut Wrong<'t>) {
    match &node.kind {
        Kind::Text(text) if node.is_plain && !is_text(text) && !is_json(text) => {
            let reason = format!("has `{}`, which YAML can read as another value; put it into quotes", shown(text));
            wrong.push((node, reason));
        }
        Kind::Text(text) => text_of(node, text, context, wrong),
        Kind::List(items) => items.iter().for_each(|item| match item.kind {
            Kind::List(_) => wrong.push((item, "has a list in a list".to_owned())),
            Kind::Map(_) | Kind::Text(_) => value(item, context, wrong),
        }),
        Kind::Map(entries) => match entries.as_slice() {
            [(function, sub)] if function == "Fn::Sub" && sub.text().is_some() => {
                let text = sub.text().unwrap_or_default();
                if let Some(name) =
                    variables(text).find(|name| !name.starts_with('!') && !context.inputs.is_plain(name))
                {
                    let reason =
                        format!("refers to `{}`, which is not an input that a policy may contain", shown(name));
                    wrong.push((sub, reason));
                }
                text_of(sub, text, context, wrong);
            }
            _ => wrong.push((node, "has a function or a map where Freehold renders a string".to_owned())),
        },
    }
}

/// Returns whether a scalar without quotes is a Boolean or a number as JSON writes it. In YAML, a number can have more
/// notations, so `0xE8D4A50FFF` may be the account 999999999999.
fn is_json(plain: &str) -> bool {
    matches!(serde_json::from_str(plain), Ok(Value::Bool(_) | Value::Number(_)))
}

fn text_of<'t>(node: &'t Node, text: &str, context: &Context<'_>, wrong: &mut Wrong<'t>) {
    let reason = foreign_text(text, context.account).or_else(|| {
        // A text and the defaults of its inputs may each be harmless, but together have another meaning.
        let filled = with_defaults(text, context.inputs);
        foreign_text(&filled, context.account).map(|reason| format!("with the defaults of its inputs, {reason}"))
    });
    if let Some(reason) = reason {
        return wrong.push((node, reason));
    }
    let account = text.strip_prefix("arn:").and_then(|arn| arn.split(':').nth(3));
    let is_known = |account: &str| {
        let is_own = account == context.account || is_one_reference(account);
        is_own || matches!(account, "" | "*" | "aws") || is_account_of_aws(account)
    };
    if let Some(other) = account.filter(|account| !is_known(account)) {
        wrong.push((node, format!("names resources of account `{}`, which is not yours", shown(other))));
    }
}

fn foreign_text(text: &str, account: &str) -> Option<String> {
    // `{{` and the value of an input after it can form a dynamic reference together.
    if text.contains("{{") {
        return Some("contains `{{`, which can begin a dynamic reference of CloudFormation".to_owned());
    }
    foreign_account(text, account).map(|other| format!("names account {other}, which is not yours"))
}

/// Returns whether a text is one reference to an input and nothing else.
fn is_one_reference(text: &str) -> bool {
    let name = text.strip_prefix("${Input").and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| !name.contains(['$', '{', '}']))
}

/// Returns a text of `Fn::Sub` with the defaults of inputs in the places of their references.
fn with_defaults(text: &str, inputs: &Inputs) -> String {
    let mut filled = text.to_owned();
    for name in variables(text) {
        if let Some(default) = inputs.default_of(name) {
            filled = filled.replace(&format!("${{{name}}}"), default);
        }
    }
    filled
}

/// Returns the names between `${` and `}`.
pub(super) fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split("${").skip(1).map(|rest| rest.split_once('}').map_or(rest, |(name, _)| name))
}

fn only_keys<'t>(node: &'t Node, known: &[&str], wrong: &mut Wrong<'t>) {
    for (key, value) in node.entries().iter().filter(|(key, _)| !known.contains(&key.as_str())) {
        wrong.push((value, format!("has `{}`, which a policy of a role does not have", shown(key))));
    }
    if !matches!(node.kind, Kind::Map(_)) {
        wrong.push((node, "has a part that cannot be read".to_owned()));
    }
}
