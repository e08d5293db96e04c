//! The part of the install stack with the customer's parameters: a parameter for each input that the customer answers
//! and for each secret that the customer enters. Each sensitive answer is stored in a secret.

use freehold_domain::inputs::{parameter_default, refused_default};
use freehold_protocol::app_version::{AppVersion, Input, InputKind};
use serde::Serialize;

use crate::AppError;
use crate::stack::app_secrets::{self, AppSecret};
use crate::stack::escape::{DESCRIPTION_CHARS, Quoted, TITLE_CHARS, one_line};
use crate::stack::parameter::Parameter;

/// The maximum number of parameters, and also of outputs, in a template (AWS CloudFormation quotas).
const MOST: usize = 200;
/// The maximum size of a template that CloudFormation reads from S3, in bytes (AWS CloudFormation quotas, "Template
/// body size in an S3 object"). A template in the request itself may have only 51,200 bytes.
const MAX_TEMPLATE_BYTES: usize = 1_000_000;
/// The pattern of a number that the customer may leave empty.
const OPTIONAL_NUMBER: &str = r"^([-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?)?$";

/// Refuses a template that is larger than CloudFormation accepts. `bytes` is the size of the template.
///
/// # Errors
/// Invalid for a template that is too large.
pub(crate) fn check_size(version: &AppVersion, bytes: usize) -> Result<(), AppError> {
    if bytes <= MAX_TEMPLATE_BYTES {
        return Ok(());
    }
    Err(AppError::invalid(format!(
        "install stack of app `{}` would have {bytes} bytes, more than the {MAX_TEMPLATE_BYTES} that CloudFormation \
         accepts; remove inputs of the customer, or shorten their texts and the roles' policies",
        version.app
    )))
}

/// The parameters for the customer's answers, in the form that the template reads.
#[derive(Serialize)]
pub(crate) struct Questions {
    groups: Vec<Group>,
    inputs: Vec<Parameter>,
    secrets: Vec<Secret>,
    app_secrets: Vec<AppSecret>,
    app_secret_names: Vec<String>,
}

#[derive(Serialize)]
struct Group {
    label: Quoted,
    /// The ids of the parameters in the group.
    parameters: Vec<String>,
}

/// The secret in Secrets Manager that stores a sensitive answer.
#[derive(Serialize)]
struct Secret {
    /// The id of the parameter for the answer.
    id: String,
    /// The last part of the secret's name; its characters need no quotes in YAML.
    name: String,
    description: Quoted,
    /// Whether the customer may leave the answer empty. The stack makes no secret from an empty answer.
    optional: bool,
}

/// Returns a parameter for each input that the customer answers and for each secret that the customer enters, and a
/// secret for each sensitive answer.
///
/// # Errors
/// Invalid for an input or a secret that cannot be a parameter.
pub(crate) fn questions(version: &AppVersion) -> Result<Questions, AppError> {
    let asked: Vec<&Input> = version.inputs.iter().filter(|input| input.customer).collect();
    let of_inputs = asked.iter().map(|input| parameter(input));
    let of_secrets = app_secrets::parameters(version);
    Ok(Questions {
        groups: groups(version, &asked),
        inputs: of_inputs.chain(of_secrets.map(Ok)).collect::<Result<_, _>>()?,
        secrets: asked.iter().filter(|input| input.sensitive).map(|input| secret(input)).collect::<Result<_, _>>()?,
        app_secrets: app_secrets::of(version)?,
        app_secret_names: version.secrets.iter().map(|secret| secret.name.clone()).collect(),
    })
}

/// Refuses a template that has more parameters or outputs than CloudFormation accepts.
///
/// # Errors
/// Invalid for a template with too many parameters or outputs.
pub(crate) fn check_count(version: &AppVersion, template: &str) -> Result<(), AppError> {
    let asked = version.inputs.iter().filter(|input| input.customer).count() + app_secrets::asked(version).count();
    let answers = version.inputs.iter().filter(|input| input.customer && !input.sensitive).count();
    let left = |section: &str, inputs: usize| (MOST + inputs).saturating_sub(keys_of(template, section));
    let room = left("Parameters:", asked).min(left("Outputs:", answers));
    if asked <= room {
        return Ok(());
    }
    Err(AppError::invalid(format!(
        "app `{}` has {asked} inputs and secrets that the customer answers, and an install stack has room for {room} \
         parameters; let the vendor answer some (`user_configurable = false`), or combine several inputs into one \
         input of type `json`",
        version.app,
    )))
}

/// Returns the number of keys in a top-level section of a YAML template.
fn keys_of(template: &str, section: &str) -> usize {
    let lines = template.lines().skip_while(|line| *line != section).skip(1);
    let inside = lines.take_while(|line| line.is_empty() || line.starts_with(' '));
    inside.filter(|line| line.strip_prefix("  ").is_some_and(|key| key.starts_with(char::is_alphabetic))).count()
}

fn parameter(input: &Input) -> Result<Parameter, AppError> {
    let default = default(input)?;
    let needs_answer = input.required && default.is_none();
    let numeric = input.kind == InputKind::Number && (needs_answer || default.is_some()) && !input.sensitive;
    let text = if input.description.is_empty() { title(input) } else { &input.description };
    let description = format!("{}{}", one_line(text, DESCRIPTION_CHARS), hint(input.kind));
    let parameter = Parameter {
        id: input.parameter(),
        label: Quoted(one_line(title(input), TITLE_CHARS)),
        of: if numeric { "Number" } else { "String" },
        description: Quoted(description),
        sensitive: input.sensitive,
        allowed_pattern: None,
        allowed_values: Vec::new(),
        min_length: None,
        default: (!needs_answer).then(|| Quoted(default.clone().unwrap_or_default())),
        constraint: None,
    };
    let constraint = |text| Some(Quoted(text));
    Ok(match (input.kind, needs_answer) {
        _ if numeric => Parameter { constraint: constraint("must be a number"), ..parameter },
        (InputKind::Number, _) => Parameter {
            allowed_pattern: Some(Quoted(OPTIONAL_NUMBER)),
            constraint: constraint("must be a number, or empty"),
            ..parameter
        },
        (InputKind::Bool, _) => {
            let empty = (!needs_answer && default.is_none()).then_some("");
            Parameter {
                allowed_values: ["true", "false"].into_iter().chain(empty).map(Quoted).collect(),
                constraint: constraint("must be true or false"),
                ..parameter
            }
        }
        (InputKind::String | InputKind::List | InputKind::Json | InputKind::Yaml | InputKind::Hcl, true) => {
            Parameter { min_length: Some(1), constraint: constraint("must not be empty"), ..parameter }
        }
        (InputKind::String | InputKind::List | InputKind::Json | InputKind::Yaml | InputKind::Hcl, false) => parameter,
    })
}

/// Returns the end of a parameter's description, which explains the form of the answer.
fn hint(kind: InputKind) -> &'static str {
    match kind {
        InputKind::String => "",
        InputKind::Number => " (a number)",
        InputKind::Bool => " (true or false)",
        InputKind::List => " (words with commas between them, or a JSON list)",
        InputKind::Json => " (JSON)",
        InputKind::Yaml => " (YAML)",
        InputKind::Hcl => " (HCL)",
    }
}

/// Returns the default of an input's parameter, as text.
fn default(input: &Input) -> Result<Option<String>, AppError> {
    let refused = |why: String| AppError::invalid(format!("the default of input `{}` {why}", input.name));
    let text = parameter_default(input).map_err(|error| refused(format!("does not fit: {error}")))?;
    match text.as_deref().and_then(refused_default) {
        Some(why) => Err(refused(why)),
        None => Ok(text),
    }
}

/// Returns the parameter groups: the groups of the app in the app's order, then the parameters without a group, then
/// the app's secrets.
fn groups(version: &AppVersion, asked: &[&Input]) -> Vec<Group> {
    let known = |name: &str| version.input_groups.iter().any(|group| group.name == name);
    let of_app = version.input_groups.iter().map(|group| {
        let title = if group.display_name.is_empty() { &group.name } else { &group.display_name };
        let inputs: Vec<&&Input> = asked.iter().filter(|input| input.group == group.name).collect();
        (title.as_str(), inputs)
    });
    let rest: Vec<&&Input> = asked.iter().filter(|input| !known(&input.group)).collect();
    let title = if version.input_groups.is_empty() { "App" } else { "Other" };
    let groups = of_app.chain(std::iter::once((title, rest))).map(|(title, inputs)| Group {
        label: Quoted(one_line(title, TITLE_CHARS)),
        parameters: inputs.iter().map(|input| input.parameter()).collect(),
    });
    let secrets = Group {
        label: Quoted("Secrets of the app".to_owned()),
        parameters: app_secrets::asked(version).map(freehold_protocol::app_version::Secret::parameter).collect(),
    };
    groups.chain(std::iter::once(secrets)).filter(|group| !group.parameters.is_empty()).collect()
}

fn secret(input: &Input) -> Result<Secret, AppError> {
    if !fits_secret_name(&input.name) {
        return Err(AppError::invalid(format!(
            "the name of input `{}` becomes part of the name of a secret, because the customer answers it and it is \
             sensitive; use ASCII letters, digits, `-` and `_`",
            input.name
        )));
    }
    Ok(Secret {
        id: input.parameter(),
        name: input.name.clone(),
        description: Quoted(one_line(&format!("Answer to {}", title(input)), TITLE_CHARS)),
        optional: !input.required,
    })
}

fn fits_secret_name(name: &str) -> bool {
    (1..=200).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

fn title(input: &Input) -> &str {
    if input.display_name.is_empty() { &input.name } else { &input.display_name }
}
