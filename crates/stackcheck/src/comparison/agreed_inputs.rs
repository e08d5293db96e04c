//! Compares the inputs and the secrets of a template with the inputs and the secrets of the terms that the customer
//! agreed to.

use std::collections::BTreeMap;

use freehold_protocol::app_version::parameter_id;
use freehold_protocol::contract::Terms;
use serde_json::Value;

use super::difference::{OTHER_CONTRACT, finding};
use super::inputs::Inputs;
use super::place::shown;
use crate::finding::Finding;
use crate::node::Node;

/// The origin of a value of the customer's account, and who can read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The answer to an input. It is sent to the vendor.
    Sent,
    /// The answer to a sensitive input.
    Kept,
    /// A secret of the app.
    Secret { generated: bool, shared: bool },
}

impl Origin {
    fn describe(self) -> String {
        match self {
            Self::Sent => "an input whose answer is sent to the vendor".to_owned(),
            Self::Kept => "an input whose answer stays in the account as a secret".to_owned(),
            Self::Secret { generated, shared } => {
                let origin = if generated { "that the stack generates" } else { "that the customer enters" };
                let readers = if shared { "roles of the app can read" } else { "only the runner can read" };
                format!("a secret {origin} and {readers}")
            }
        }
    }
}

/// Finds inputs and secrets that only the template or only the terms have, or whose origins differ.
pub(super) fn differences(root: &Node, inputs: &Inputs, terms: &Terms) -> Vec<Finding> {
    let agreed = of_terms(terms);
    let found = of_template(inputs);
    let line = |id: &str| {
        let secret = || root.at(&["Resources", &format!("Secret{id}")]);
        root.at(&["Parameters", id]).or_else(secret).map_or(root.line, |node| node.line)
    };
    let other = found.iter().filter_map(|(id, origin)| {
        let reason = match agreed.get(id) {
            None => format!("`{id}` is {}, and the contract does not have it", origin.describe()),
            Some((name, known)) if known != origin => format!(
                "`{id}` is {}, and in the contract `{}` is {}",
                origin.describe(),
                shown(name),
                known.describe()
            ),
            Some(_) => return None,
        };
        Some(finding(line(id), id, reason).or(OTHER_CONTRACT))
    });
    let missing = agreed.iter().filter(|(id, _)| !found.contains_key(*id)).map(|(id, (name, origin))| {
        let reason =
            format!("the contract has `{}`, {}, and the template has no `{id}`", shown(name), origin.describe());
        finding(root.line, id, reason).or(OTHER_CONTRACT)
    });
    other.chain(missing).collect()
}

/// Returns the origin of each input and secret of the template, by the id of its parameter or secret.
fn of_template(inputs: &Inputs) -> BTreeMap<String, Origin> {
    let id = |secret: &Value| secret.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is = |secret: &Value, key: &str| secret.get(key) == Some(&Value::Bool(true));
    let sent = inputs.plain().iter().map(|id| (id.clone(), Origin::Sent));
    let kept = inputs.secrets.iter().map(|secret| (id(secret), Origin::Kept));
    let of_app = inputs.app_secrets.iter().map(|secret| {
        (id(secret), Origin::Secret { generated: is(secret, "generated"), shared: is(secret, "shared") })
    });
    sent.chain(kept).chain(of_app).collect()
}

/// Returns the name and the origin of each input and secret of the terms, by the id of its parameter or secret.
fn of_terms(terms: &Terms) -> BTreeMap<String, (&str, Origin)> {
    let inputs = terms.customer_inputs.iter().map(|(name, input)| {
        let origin = if input.sensitive { Origin::Kept } else { Origin::Sent };
        (parameter_id("Input", name), (name.as_str(), origin))
    });
    let secrets = terms.secrets.iter().map(|(name, secret)| {
        let origin = Origin::Secret { generated: secret.generated, shared: secret.shared };
        (parameter_id("AppSecret", name), (name.as_str(), origin))
    });
    inputs.chain(secrets).collect()
}
