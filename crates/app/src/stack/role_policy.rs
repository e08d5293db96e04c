//! Renders the policies of a role for the install stack. An input that the customer answers becomes a reference to its
//! stack parameter, which CloudFormation fills in.

use freehold_domain::inputs::known_inputs;
use freehold_domain::install::Install;
use freehold_permissions::{Answers, InStack};
use freehold_protocol::TenantName;
use freehold_protocol::app_version::{AppVersion, Input, RolePolicy};
use freehold_protocol::sealing::SealedValue;
use serde::Serialize;
use serde_json::Value;

use crate::AppError;
use crate::stack::escape::Quoted;
use crate::stack::nuon_tree;

/// The permissions of a role, for the install template.
#[derive(Serialize)]
pub(crate) struct Granted {
    inline: Quoted<Vec<Value>>,
    /// The ARNs of managed policies.
    managed: Vec<Quoted>,
}

/// Returns a role's policies within `boundary`, which is the boundary in the vendor's config. `of` names the role in
/// errors, such as "role `provision`".
///
/// # Errors
/// Invalid for a policy that cannot be rendered.
pub(crate) fn granted(
    policies: &[RolePolicy],
    boundary: Option<&str>,
    of: &str,
    tenant: &TenantName,
    version: &AppVersion,
    install: &Install,
) -> Result<Granted, AppError> {
    let place = nuon_tree::role_place(tenant, install, &version.app);
    let InStack { mut inline, managed } = InStack::of(policies, boundary, place, &answers(version, install))
        .map_err(|reason| AppError::invalid(format!("{of} of app `{}`: {reason}", version.app)))?;
    // The same template in each build, whether or not objects keep the order of their keys there.
    inline.iter_mut().for_each(Value::sort_all_objects);
    Ok(Granted { inline: Quoted(inline), managed: managed.into_iter().map(Quoted).collect() })
}

/// Returns the vendor's value, or else the default; for an input that the customer answers, a reference. Sensitive inputs
/// and sealed values are left out: many people can read a policy.
fn answers(version: &AppVersion, install: &Install) -> Answers {
    let given = known_inputs(version, &install.inputs);
    let mut answers = Answers::default();
    let is_sealed = |input: &Input| given.get(&input.name).and_then(SealedValue::of).is_some();
    for input in version.inputs.iter().filter(|input| !input.sensitive && !is_sealed(input)) {
        if input.customer {
            answers.asked(&input.name, &input.parameter());
        } else if let Some(value) = given.get(&input.name).or(input.default.as_ref()) {
            answers.known(&input.name, value.clone());
        }
    }
    answers
}

#[cfg(test)]
mod tests {

    use freehold_domain::install::Serves;
    use freehold_protocol::Timestamp;
    use serde_json::json;

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
        Install::new(id, serves, account, "eu-west-1".to_owned(), Timestamp::default())
    }

    fn rendered(text: &str) -> Result<Value, String> {
        let policies = [RolePolicy::Inline { name: "own".to_owned(), document: text.to_owned() }];
        let found = granted(&policies, None, "role `provision`", &"acme".parse().unwrap(), &version(), &install());
        found.map(|found| found.inline.0[0]["PolicyDocument"].clone()).map_err(|error| error.message)
    }

    #[test]
    fn the_vendors_answers_are_written_and_the_customers_are_references() {
        let found =
            rendered(r#"{ "Resource": ["{{ .nuon.inputs.inputs.prefix }}", "{{ .nuon.inputs.inputs.cluster }}"] }"#);

        assert_eq!(found, Ok(json!({ "Resource": ["demo", { "Fn::Sub": "${InputCluster}" }] })));
    }

    #[test]
    fn what_the_vendors_boundary_does_not_allow_is_denied() {
        let boundary = r#"{ "Statement": [
            { "Effect": "Allow", "Action": ["ec2:*", "s3:*", "ecr:*", "kms:*"], "Resource": "*" },
            { "Effect": "Allow", "Action": "iam:PassRole", "Resource": "*",
              "Condition": { "StringEquals": { "aws:ResourceTag/of": "{{ .nuon.install.id }}" } } }
        ] }"#;
        let policies = [RolePolicy::Managed("AdministratorAccess".to_owned())];
        let tenant = "acme".parse().unwrap();

        let found = granted(&policies, Some(boundary), "role `provision`", &tenant, &version(), &install()).unwrap();

        assert_eq!(found.inline.0.len(), 1);
        assert_eq!(found.inline.0[0]["PolicyName"], "freehold-boundary");
        let statements = found.inline.0[0]["PolicyDocument"]["Statement"].as_array().unwrap();
        assert!(statements[0]["NotAction"].as_array().unwrap().contains(&json!("ec2:*")), "{statements:?}");
        assert_eq!(
            statements[1],
            json!({ "Effect": "Deny", "Action": ["iam:PassRole"], "Resource": "*",
                    "Condition": { "StringNotEquals": { "aws:ResourceTag/of": "globex" } } })
        );
        assert_eq!(statements.len(), 2);
    }

    #[test]
    fn a_boundary_that_an_answer_of_the_customers_could_loosen_is_refused() {
        let boundary = r#"{ "Statement": { "Effect": "Allow", "Action": "ec2:*",
            "Resource": "arn:aws:ec2:*:*:{{ .nuon.inputs.inputs.cluster }}" } }"#;
        let tenant = "acme".parse().unwrap();

        let refused = granted(&[], Some(boundary), "role `provision`", &tenant, &version(), &install());

        let message = refused.err().unwrap().message;
        assert!(message.contains("the permissions boundary: a `Deny` statement contains an input"), "{message}");
    }

    #[test]
    fn an_error_names_the_role_and_the_app_and_a_sensitive_input_is_not_there() {
        let changed = rendered(r#"{ "Resource": "{{ .nuon.inputs.inputs.cluster | upper }}" }"#).unwrap_err();
        let secret = rendered(r#"{ "Resource": "{{ .nuon.inputs.inputs.password }}" }"#).unwrap_err();

        assert!(
            changed.starts_with("role `provision` of app `demo`: policy `own`: the template changes an input"),
            "{changed}"
        );
        assert!(secret.contains("password"), "{secret}");
    }
}
