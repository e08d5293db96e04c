//! Renders the policies of a role for the install stack. An input that the customer answers becomes a reference to its
//! stack parameter, which CloudFormation fills in.

use std::collections::BTreeMap;

use freehold_domain::inputs::known_inputs;
use freehold_domain::install::Install;
use freehold_protocol::TenantName;
use freehold_protocol::app_version::{AppVersion, Input, RolePolicy};
use freehold_template::Limits;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::AppError;
use crate::stack::nuon_tree;
use crate::stack::text::Quoted;

/// Placeholders for the `${` and `}` of a reference while a policy is rendered. No text contains these characters,
/// because they are in a private use area of Unicode.
const OPENS: char = '\u{f001}';
const CLOSES: char = '\u{f002}';

/// Returns a policy document with the install's values. `of` names the owner of the policy in errors, such as "role
/// `provision`".
///
/// # Errors
/// Invalid, with the reason why the policy cannot be rendered.
fn render_document(
    text: &str,
    of: &str,
    tenant: &TenantName,
    version: &AppVersion,
    install: &Install,
) -> Result<Value, AppError> {
    let wrong = |reason: String| AppError::invalid(format!("{of} of app `{}`: {reason}", version.app));
    let inputs = inputs(version, install);
    let tree = json!({ "nuon": {
        "org": { "id": tenant, "name": tenant },
        "app": { "id": version.app, "name": version.app },
        "install": { "id": install.id, "name": install.id, "inputs": inputs },
        "inputs": { "inputs": inputs },
        "install_stack": { "outputs": nuon_tree::stack_outputs(tenant, install) },
        "cloud_account": nuon_tree::cloud_account(install),
    } });
    let rendered = freehold_template::render(text, &tree, &Limits::default()).map_err(|e| wrong(e.to_string()))?;
    let document: Value = serde_json::from_str(&rendered).map_err(|e| wrong(format!("policy is not JSON: {e}")))?;
    referring(document, version).map_err(wrong)
}

/// Returns the values of the inputs by name: the vendor's value or the default. The value of an input that the customer
/// answers is a reference; a sensitive input of the customer has no value.
fn inputs(version: &AppVersion, install: &Install) -> BTreeMap<String, Value> {
    let given = known_inputs(version, &install.inputs);
    let value = |input: &Input| {
        if input.customer {
            return (!input.sensitive).then(|| Value::from(format!("{OPENS}{}{CLOSES}", input.parameter())));
        }
        given.get(&input.name).or(input.default.as_ref()).cloned()
    };
    version.inputs.iter().filter_map(|input| Some((input.name.clone(), value(input)?))).collect()
}

/// Writes every text that contains a reference as a `Fn::Sub` of CloudFormation. IAM's own variables in such a text are
/// escaped and stay unchanged.
fn referring(value: Value, version: &AppVersion) -> Result<Value, String> {
    match value {
        Value::String(text) if text.contains([OPENS, CLOSES]) => {
            let known = |name: &str| version.inputs.iter().any(|input| input.customer && input.parameter() == name);
            let mut pieces = text.split(OPENS);
            let mut sub = pieces.next().unwrap_or_default().replace("${", "${!");
            for piece in pieces {
                let (name, rest) =
                    piece.split_once(CLOSES).filter(|(name, rest)| known(name) && !rest.contains(CLOSES)).ok_or(
                        "the template changes an input that the customer answers; use the input unchanged, or let \
                     the vendor answer it",
                    )?;
                sub.push_str(&format!("${{{name}}}"));
                sub.push_str(&rest.replace("${", "${!"));
            }
            Ok(json!({ "Fn::Sub": sub }))
        }
        Value::Array(items) => {
            let items = items.into_iter().map(|item| referring(item, version));
            items.collect::<Result<_, _>>().map(Value::Array)
        }
        Value::Object(entries) => {
            let mut all = Map::new();
            for (key, value) in entries {
                if key.contains([OPENS, CLOSES]) {
                    return Err(
                        "an input that the customer answers is a key of the policy; such an input can only be a value"
                            .to_owned(),
                    );
                }
                all.insert(key, referring(value, version)?);
            }
            Ok(Value::Object(all))
        }
        other => Ok(other),
    }
}

/// The permissions of a role, for the install template.
#[derive(Serialize)]
pub(crate) struct Granted {
    inline: Quoted<Vec<Value>>,
    /// The ARNs of managed policies.
    managed: Vec<Quoted>,
}

/// Returns a role's policies. `of` names the role in errors, such as "role `provision`".
///
/// # Errors
/// Invalid for a policy that cannot be rendered.
pub(crate) fn granted(
    policies: &[RolePolicy],
    of: &str,
    tenant: &TenantName,
    version: &AppVersion,
    install: &Install,
) -> Result<Granted, AppError> {
    let (mut inline, mut managed) = (Vec::new(), Vec::new());
    for (at, policy) in policies.iter().enumerate() {
        match policy {
            RolePolicy::Managed(name) => {
                let arn = Quoted(format!("arn:aws:iam::aws:policy/{name}"));
                // CloudFormation refuses a role that lists a policy twice.
                if !managed.contains(&arn) {
                    managed.push(arn);
                }
            }
            RolePolicy::Inline { name, document } => inline.push(json!({
                "PolicyName": policy_name(name, at),
                "PolicyDocument": render_document(document, of, tenant, version, install)?,
            })),
            // INVARIANT: an app with a Google Cloud role cannot be installed (`deployable`).
            RolePolicy::GcpPredefined(role) => {
                return Err(AppError::internal(format!("role `{role}` of Google Cloud cannot be rendered")));
            }
        }
    }
    Ok(Granted { inline: Quoted(inline), managed })
}

fn policy_name(name: &str, at: usize) -> String {
    let kept: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "+=,.@_-".contains(*c)).take(100).collect();
    if kept.is_empty() { format!("policy-{at}") } else { kept }
}

#[cfg(test)]
mod tests {

    use freehold_domain::install::Serves;
    use freehold_protocol::Timestamp;

    use super::*;

    fn version() -> AppVersion {
        serde_json::from_value(json!({
            "format": 1,
            "app": "demo",
            "inputs": [
                { "name": "cluster", "type": "string", "required": true, "customer": true },
                { "name": "password", "type": "string", "sensitive": true, "customer": true },
                { "name": "prefix", "type": "string", "default": "demo" },
            ],
        }))
        .unwrap()
    }

    fn install() -> Install {
        let serves = Serves::App { app: "demo".parse().unwrap(), version: None };
        let (id, account) = ("globex".parse().unwrap(), "222222222222".parse().unwrap());
        let key = ed25519_dalek::SigningKey::from_bytes(&[1; 32]).verifying_key().into();
        Install::new(id, serves, account, "eu-west-1".to_owned(), Timestamp::default(), key)
    }

    fn rendered(text: &str) -> Result<Value, String> {
        let tenant = "acme".parse().unwrap();
        super::render_document(text, "role `provision`", &tenant, &version(), &install()).map_err(|error| error.message)
    }

    #[test]
    fn what_is_known_is_written_and_what_the_customer_answers_is_a_reference() {
        let found = rendered(
            r#"{ "Resource": [
                "arn:aws:s3:::{{ .nuon.inputs.inputs.prefix }}-{{ .nuon.cloud_account.aws.region }}",
                "arn:aws:eks:*:*:cluster/{{ .nuon.inputs.inputs.cluster }}/${aws:username}",
                "arn:aws:iam::*:user/${aws:username}",
                "arn:aws:iam::*:role/{{ .nuon.install_stack.outputs.prefix }}*"
            ], "Boundary": "{{ .nuon.install_stack.outputs.boundary_arn }}" }"#,
        );

        let expected = json!({
            "Resource": [
                "arn:aws:s3:::demo-eu-west-1",
                { "Fn::Sub": "arn:aws:eks:*:*:cluster/${InputCluster}/${!aws:username}" },
                "arn:aws:iam::*:user/${aws:username}",
                "arn:aws:iam::*:role/acme--globex--*",
            ],
            "Boundary": "arn:aws:iam::222222222222:policy/fh-acme--globex--boundary",
        });
        assert_eq!(found, Ok(expected));
    }

    #[test]
    fn what_cannot_stay_a_reference_is_refused() {
        let changed = rendered(r#"{ "Resource": "{{ .nuon.inputs.inputs.cluster | upper }}" }"#).unwrap_err();
        let key = rendered(r#"{ "{{ .nuon.inputs.inputs.cluster }}": "x" }"#).unwrap_err();
        let secret = rendered(r#"{ "Resource": "{{ .nuon.inputs.inputs.password }}" }"#).unwrap_err();
        let text = rendered("Version: 2012").unwrap_err();

        assert!(changed.starts_with("role `provision` of app `demo`: the template changes an input that"), "{changed}");
        assert!(key.contains("is a key of the policy"), "{key}");
        assert!(secret.contains("password"), "{secret}");
        assert!(text.contains("policy is not JSON"), "{text}");
    }
}
