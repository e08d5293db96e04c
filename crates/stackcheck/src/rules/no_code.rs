//! Checks that no code runs while the stack is created: there is no transform, custom resource, function or nested
//! stack.

use crate::finding::{Finding, Rule};
use crate::node::Node;
use crate::template::{Resource, Template};

/// The types of resources that run code of the vendor while the stack is created or later.
const CODE: [&str; 5] = [
    "AWS::CloudFormation::CustomResource",
    "AWS::CloudFormation::Macro",
    "AWS::CloudFormation::Stack",
    "AWS::Lambda::Function",
    "AWS::Serverless::Function",
];

/// Finds resources that run code, and transforms at any depth.
pub(super) fn find(template: &Template<'_>) -> Vec<Finding> {
    let of_template = template.root.get("Transform").into_iter().chain(
        template
            .root
            .entries()
            .iter()
            .filter(|(name, _)| name != "Resources")
            .flat_map(|(name, part)| transforms(name, part)),
    );
    let of_resources = template.resources().flat_map(|resource| {
        transforms(resource.name, resource.node).into_iter().map(move |node| transform(resource.name, node))
    });
    of_template
        .map(|node| transform("", node))
        .chain(of_resources)
        .chain(template.resources().filter_map(code))
        .collect()
}

fn transform(of: &str, node: &Node) -> Finding {
    let reason = "a transform changes the template before anybody reads it".to_owned();
    Finding { line: node.line, of: of.to_owned(), rule: Rule::NoCode, reason, way_out: None }
}

/// Returns the values of all keys `Fn::Transform` inside of `value`, at any depth. `name` is the key of `value` itself:
/// if it is `Fn::Transform`, `value` is returned too.
fn transforms<'n>(name: &str, value: &'n Node) -> Vec<&'n Node> {
    let mut found: Vec<&Node> = (name == "Fn::Transform").then_some(value).into_iter().collect();
    value.walk(&mut |node| found.extend(node.get("Fn::Transform")));
    found
}

fn code(resource: Resource<'_>) -> Option<Finding> {
    let kind = resource.kind;
    let at = resource.node.get("Type").unwrap_or(resource.node);
    (CODE.contains(&kind) || kind.starts_with("Custom::")).then(|| {
        resource.finding(
            Rule::NoCode,
            at,
            format!("a `{kind}` runs code or creates resources that this template does not show"),
        )
    })
}
