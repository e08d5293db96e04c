//! The policies of a role as an install stack has them: a vendor's templates with the values of one install. An input
//! that the customer answers in the stack stays a reference to its parameter, which CloudFormation fills in.

use std::collections::BTreeMap;

use freehold_protocol::app_version::RolePolicy;
use freehold_protocol::{AccountId, AppName, InstallId, TenantName, names};
use freehold_template::Limits;
use serde_json::{Map, Value, json};

/// Placeholders for the `${` and `}` of a reference while a policy is rendered. No text contains these characters,
/// because they are in a private use area of Unicode.
const OPENS: char = '\u{f001}';
const CLOSES: char = '\u{f002}';

/// The policies of one role in one install's stack.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InStack {
    /// The inline policies, each with `PolicyName` and `PolicyDocument`.
    pub inline: Vec<Value>,
    /// The ARNs of managed policies of AWS, each once: CloudFormation refuses a role that lists one twice.
    pub managed: Vec<String>,
}

/// The install whose stack contains the policies.
#[derive(Debug, Clone, Copy)]
pub struct RolePlace<'a> {
    pub tenant: &'a TenantName,
    pub app: &'a AppName,
    pub install: &'a InstallId,
    pub account: &'a AccountId,
    pub region: &'a str,
}

/// The answers to the app's inputs that the templates of policies read.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    values: BTreeMap<String, Value>,
    /// The parameters of the stack to which a policy refers.
    parameters: Vec<String>,
}

impl Answers {
    /// Adds an input whose value is known.
    pub fn known(&mut self, name: &str, value: Value) {
        self.values.insert(name.to_owned(), value);
    }

    /// Adds an input that the customer answers in this parameter of the stack.
    pub fn asked(&mut self, name: &str, parameter: &str) {
        self.values.insert(name.to_owned(), Value::from(format!("{OPENS}{parameter}{CLOSES}")));
        self.parameters.push(parameter.to_owned());
    }
}

impl InStack {
    /// Returns the policies of a role as the stack of `place` has them.
    ///
    /// # Errors
    /// A sentence about the mistake in a policy.
    pub fn of(policies: &[RolePolicy], place: RolePlace<'_>, answers: &Answers) -> Result<Self, String> {
        let mut found = Self::default();
        for (at, policy) in policies.iter().enumerate() {
            match policy {
                RolePolicy::Managed(name) => {
                    let arn = format!("arn:aws:iam::aws:policy/{name}");
                    if !found.managed.contains(&arn) {
                        found.managed.push(arn);
                    }
                }
                RolePolicy::Inline { name, document } => found.inline.push(json!({
                    "PolicyName": policy_name(name, at),
                    "PolicyDocument": place.document(document, answers)?,
                })),
                RolePolicy::GcpPredefined(role) => {
                    return Err(format!("role `{role}` of Google Cloud cannot be in a stack of CloudFormation"));
                }
            }
        }
        Ok(found)
    }
}

impl RolePlace<'_> {
    /// Returns the outputs of the install stack that are known before the stack is launched.
    pub fn stack_outputs(&self) -> Value {
        let boundary = names::install_part(self.tenant, self.install, "boundary");
        json!({
            "account_id": self.account,
            "region": self.region,
            "boundary_arn": format!("arn:aws:iam::{}:policy/{boundary}", self.account),
            "prefix": names::app_prefix(self.tenant, self.install),
            "role_path": names::app_path(self.tenant, self.install),
        })
    }

    /// Returns the AWS account and the region of the install.
    pub fn cloud_account(&self) -> Value {
        json!({ "aws": { "account_id": self.account, "region": self.region } })
    }

    fn document(&self, text: &str, answers: &Answers) -> Result<Value, String> {
        let inputs = &answers.values;
        let tree = json!({ "nuon": {
            "org": { "id": self.tenant, "name": self.tenant },
            "app": { "id": self.app, "name": self.app },
            "install": { "id": self.install, "name": self.install, "inputs": inputs },
            "inputs": { "inputs": inputs },
            "install_stack": { "outputs": self.stack_outputs() },
            "cloud_account": self.cloud_account(),
        } });
        let rendered = freehold_template::render(text, &tree, &Limits::default()).map_err(|e| e.to_string())?;
        let document: Value = serde_json::from_str(&rendered).map_err(|e| format!("policy is not JSON: {e}"))?;
        referring(document, answers)
    }
}

/// Writes every text that contains a reference as a `Fn::Sub` of CloudFormation. IAM's own variables in such a text are
/// escaped and stay unchanged.
fn referring(value: Value, answers: &Answers) -> Result<Value, String> {
    match value {
        Value::String(text) if text.contains([OPENS, CLOSES]) => {
            let known = |name: &str| answers.parameters.iter().any(|parameter| parameter == name);
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
            let items = items.into_iter().map(|item| referring(item, answers));
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
                all.insert(key, referring(value, answers)?);
            }
            Ok(Value::Object(all))
        }
        other => Ok(other),
    }
}

fn policy_name(name: &str, at: usize) -> String {
    let kept: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "+=,.@_-".contains(*c)).take(100).collect();
    if kept.is_empty() { format!("policy-{at}") } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> Result<Value, String> {
        let (tenant, app, install) = ("acme".parse().unwrap(), "demo".parse().unwrap(), "globex".parse().unwrap());
        let account = "222222222222".parse().unwrap();
        let place = RolePlace { tenant: &tenant, app: &app, install: &install, account: &account, region: "eu-west-1" };
        let mut answers = Answers::default();
        answers.known("prefix", json!("demo"));
        answers.asked("cluster", "InputCluster");
        place.document(text, &answers)
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

        assert!(changed.starts_with("the template changes an input that"), "{changed}");
        assert!(key.contains("is a key of the policy"), "{key}");
        assert!(secret.contains("password"), "{secret}");
        assert!(text.contains("policy is not JSON"), "{text}");
    }
}
