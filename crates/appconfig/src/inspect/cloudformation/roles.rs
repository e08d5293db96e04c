//! Finds roles in a template without a permissions boundary. CloudFormation creates a stack's roles with the
//! permissions of the job, and the job may only create roles that have the install's boundary.

use super::template::Template;
use crate::read::document::{Entry, Node};
use crate::report::draft::Draft;

/// Reports every role that AWS would refuse to make, because it has no permissions boundary.
pub(super) fn check(template: &Template, drafts: &mut Vec<Draft>) {
    let resources = template.section("Resources").map(Node::entries).unwrap_or_default();
    drafts.extend(resources.iter().filter(|entry| is_unbounded_role(entry)).map(|role| draft(template, role)));
}

fn is_unbounded_role(resource: &Entry) -> bool {
    let kind = resource.value.get("Type").and_then(Node::as_text);
    let boundary = resource.value.get("Properties").and_then(|properties| properties.get("PermissionsBoundary"));
    kind == Some("AWS::IAM::Role") && boundary.is_none()
}

fn draft(template: &Template, role: &Entry) -> Draft {
    let place = template.place_of(&role.key_span);
    let message = format!("role `{}` has no `PermissionsBoundary`, so AWS does not let the deploy create it", role.key);
    // The install may never need a role that depends on a condition.
    let is_certain = role.value.get("Condition").is_none();
    let draft = if is_certain { Draft::error(place, message) } else { Draft::warning(place, message) };
    draft.help(
        "add a parameter `Boundary` to the template, `PermissionsBoundary: !Ref Boundary` to the role, and `Boundary = \"{{ \
         .nuon.install_stack.outputs.boundary_arn }}\"` to the component's parameters",
    )
}
