//! Compares a template with the one that Freehold renders for the same install: every difference is a finding.

mod agreed_inputs;
mod agreed_terms;
mod app_secrets;
mod compare;
mod difference;
mod expected_template;
mod hole;
mod identity;
mod inputs;
mod overview;
mod place;
mod policies;
mod roles;
mod secret_ids;

pub use agreed_terms::Agreed;
pub use identity::Names;
pub use overview::{Overview, RoleOverview};

use difference::finding;

use crate::finding::Finding;
use crate::node::Node;

/// Returns every difference between a template and the template that Freehold renders, the names in the template, and
/// an overview of its roles and parameters. Without `agreed`, all policies of the roles are accepted.
pub(crate) fn compare(root: &Node, agreed: Option<&Agreed<'_>>) -> (Vec<Finding>, Option<(Names, Overview)>) {
    let mut findings = dynamic_references(root);
    let names = match identity::read(root) {
        Ok(names) => names,
        Err(wrong) => {
            findings.extend(wrong);
            return (findings, None);
        }
    };
    let mut roles = roles::read(root, &mut findings);
    let inputs = inputs::read(root, &mut findings);
    let overview = overview::of(root, &names, &mut roles, &inputs);
    if let Some(agreed) = agreed {
        agreed_terms::give(agreed, root, &names, &inputs, &mut roles, &mut findings);
    }
    // Only the vendor knows whether its app needs a network, so the template itself decides. The parts of the network
    // are always the same.
    let has_network = root.at(&["Parameters", "PrivateSubnetIds"]).is_some();
    match expected_template::expected(&names, &roles, &inputs, has_network) {
        Ok(expected) => {
            let context = policies::Context { account: names.account.as_str(), inputs: &inputs };
            compare::differences(&expected, root, &context, &mut findings);
        }
        // INVARIANT: the values have the form that the renderer accepts, and a test renders them.
        Err(reason) => findings.push(finding(root.line, "", format!("cannot be compared: {reason}"))),
    }
    (findings, Some((names, overview)))
}

/// Finds dynamic references: texts that CloudFormation replaces with a parameter or a secret of the account.
fn dynamic_references(root: &Node) -> Vec<Finding> {
    let mut found = Vec::new();
    root.walk(&mut |node| {
        let keys = node.entries().iter().map(|(key, value)| (key.as_str(), value.line));
        for (text, line) in node.text().map(|text| (text, node.line)).into_iter().chain(keys) {
            if text.contains("{{resolve:") {
                let reason = "`{{resolve:` puts a parameter or a secret of the account in place of this text";
                found.push(finding(line, "", reason.to_owned()));
            }
        }
    });
    found
}
