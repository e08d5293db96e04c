//! Reads the secrets of an app from a template. A secret is entered by the customer or generated, and roles of the app
//! may or may not read it.

use serde_json::{Value, json};

use super::difference::finding;
use super::hole::Hole;
use super::secret_ids::{is_id, name_of_secret};
use crate::finding::Finding;
use crate::node::Node;

/// The prefix of the ids of parameters for secrets of the app.
const PREFIX: &str = "AppSecret";
/// The KMS key that encrypts a secret if roles of the app may read it.
const KEY_OF_THE_ACCOUNT: &str = "alias/aws/secretsmanager";

/// Returns whether a parameter asks the customer for a secret of the app.
pub(super) fn is_parameter(id: &str) -> bool {
    is_id(id, PREFIX)
}

/// Returns the findings about a parameter that asks for a secret.
pub(super) fn wrong(root: &Node, id: &str, node: &Node) -> Vec<Finding> {
    let mut wrong = Vec::new();
    if node.get("NoEcho").is_none() {
        wrong.push(finding(
            node.line,
            id,
            "everybody who may read the stack sees this secret: it has no `NoEcho`".into(),
        ));
    }
    if name_of_secret(root, id, PREFIX).is_none() {
        wrong.push(finding(node.line, id, "no secret of this template stores the value of this parameter".to_owned()));
    }
    wrong
}

/// Returns the secrets of the app in a template, in the form that the renderer expects.
pub(super) fn read(root: &Node) -> Vec<Value> {
    let resources = root.get("Resources").map(Node::entries).unwrap_or_default();
    let of_app = resources.iter().filter_map(|(resource, node)| {
        let id = resource.strip_prefix("Secret").filter(|id| is_parameter(id))?;
        let name = name_of_secret(root, id, PREFIX)?;
        let asked = root.at(&["Parameters", id]);
        let key = node.at(&["Properties", "KmsKeyId"]).and_then(Node::text);
        Some(json!({
            "id": id,
            "name": name,
            "description": Hole::AppSecretDescription.quoted(),
            "optional": asked.is_some_and(|asked| asked.get("Default").is_some()),
            "generated": asked.is_none(),
            "shared": key == Some(KEY_OF_THE_ACCOUNT),
        }))
    });
    of_app.collect()
}
