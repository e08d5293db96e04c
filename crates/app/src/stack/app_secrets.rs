//! The part of the install stack for the app's secrets: a stack parameter for each secret that the customer enters, and
//! a secret in Secrets Manager for every secret of the app.

use freehold_domain::contract::is_shared;
use freehold_protocol::app_version::{AppVersion, Secret, SecretFormat};
use serde::Serialize;

use crate::AppError;
use crate::stack::escape::{DESCRIPTION_CHARS, Quoted, TITLE_CHARS, one_line};
use crate::stack::parameter::Parameter;

/// A secret of the app, in the form that the install stack's template reads.
#[derive(Serialize)]
pub(crate) struct AppSecret {
    /// The id of the stack parameter and of the resource for this secret.
    id: String,
    /// The last part of the secret's name in Secrets Manager; its characters need no quotes in YAML.
    name: String,
    description: Quoted,
    /// Whether the customer may leave the secret empty. The stack makes no secret from an empty value.
    optional: bool,
    /// Whether Secrets Manager generates the value.
    generated: bool,
    /// Whether a template of the app reads the ARN of the secret. A role of the app then reads the secret itself.
    shared: bool,
}

/// Returns the secrets of the app.
///
/// # Errors
/// Invalid for a name that Secrets Manager does not accept.
pub(crate) fn of(version: &AppVersion) -> Result<Vec<AppSecret>, AppError> {
    version.secrets.iter().map(|secret| app_secret(version, secret)).collect()
}

/// Returns the secrets that the customer enters.
pub(crate) fn asked(version: &AppVersion) -> impl Iterator<Item = &Secret> {
    version.secrets.iter().filter(|secret| !secret.auto_generate)
}

/// Returns a parameter for each secret that the customer enters.
pub(crate) fn parameters(version: &AppVersion) -> impl Iterator<Item = Parameter> + '_ {
    asked(version).map(|secret| {
        let text = if secret.description.is_empty() { title(secret) } else { &secret.description };
        let hint = if secret.format == SecretFormat::Base64 { " (in base64)" } else { "" };
        Parameter {
            id: secret.parameter(),
            label: Quoted(one_line(title(secret), TITLE_CHARS)),
            of: "String",
            description: Quoted(format!("{}{hint}", one_line(text, DESCRIPTION_CHARS))),
            sensitive: true,
            allowed_pattern: None,
            allowed_values: Vec::new(),
            min_length: secret.required.then_some(1),
            default: (!secret.required).then(|| Quoted(String::new())),
            constraint: secret.required.then_some(Quoted("must not be empty")),
        }
    })
}

fn app_secret(version: &AppVersion, secret: &Secret) -> Result<AppSecret, AppError> {
    if !secret.has_usable_name() {
        return Err(AppError::invalid(format!(
            "the name of secret `{}` becomes part of the name of a secret in the customer's account; use at most 200 ASCII \
             letters, digits, `-` and `_`",
            secret.name
        )));
    }
    Ok(AppSecret {
        id: secret.parameter(),
        name: secret.name.clone(),
        description: Quoted(one_line(&format!("Secret of the app: {}", title(secret)), TITLE_CHARS)),
        optional: !secret.required && !secret.auto_generate,
        generated: secret.auto_generate,
        shared: is_shared(version, secret),
    })
}

fn title(secret: &Secret) -> &str {
    if secret.display_name.is_empty() { &secret.name } else { &secret.display_name }
}
