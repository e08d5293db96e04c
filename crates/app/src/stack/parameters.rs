//! The part of the install stack that asks the customer: a parameter for each input that is the customer's, and a secret
//! for each sensitive one. Every text of the vendor goes into quotes here, and nowhere else into the template.

use std::collections::BTreeMap;

use freehold_protocol::app_version::{AppVersion, Input, InputKind};
use freehold_protocol::{InstallId, TenantName};
use serde_json::Value;

use crate::AppError;
use crate::stack::template::TEMPLATE;
use crate::stack::text::{DESCRIPTION_CHARS, TITLE_CHARS, quoted, shown};

/// The most parameters, and as many outputs, that a template has (AWS CloudFormation quotas).
const MOST: usize = 200;
/// The largest template that CloudFormation reads from S3, in bytes (AWS CloudFormation quotas, "Template body size in an
/// S3 object"). A request itself carries 51,200.
pub const MAX_TEMPLATE_BYTES: usize = 1_000_000;
/// The longest default of a parameter, in bytes (AWS CloudFormation quotas, "Parameter value size").
const MAX_VALUE_BYTES: usize = 4096;
/// A number, or nothing.
const OPTIONAL_NUMBER: &str = r"^([-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?)?$";

/// Refuses a template of more than CloudFormation takes.
///
/// # Errors
/// Invalid.
pub fn check_size(version: &AppVersion, bytes: usize) -> Result<(), AppError> {
    if bytes <= MAX_TEMPLATE_BYTES {
        return Ok(());
    }
    Err(AppError::invalid(format!(
        "install stack of app `{}` would have {bytes} bytes, more than the {MAX_TEMPLATE_BYTES} that CloudFormation takes; \
         make the customer's inputs fewer, or their texts and the roles' policies shorter",
        version.app
    )))
}

/// Returns what the template's `%{INPUT_...}` placeholders stand for. Each follows a comment on its line, and is empty
/// or begins a line of its own.
///
/// # Errors
/// Invalid for an input that cannot be a parameter, or for too many.
pub fn words(
    version: &AppVersion,
    tenant: &TenantName,
    install: &InstallId,
) -> Result<BTreeMap<String, String>, AppError> {
    let asked: Vec<&Input> = version.inputs.iter().filter(|input| input.customer).collect();
    check_count(version, &asked)?;
    let sensitive: Vec<&Input> = asked.iter().copied().filter(|input| input.sensitive).collect();
    let mut parameters = String::new();
    for input in &asked {
        parameters.push_str(&format!("\n  {}: {}", input.parameter(), parameter(input)?));
    }
    if let Some(input) = sensitive.iter().find(|input| !fits_secret_name(&input.name)) {
        return Err(AppError::invalid(format!(
            "input `{}` is sensitive and the customer's, so that its name is part of a secret's; use ASCII letters, \
             digits, `-` and `_`",
            input.name
        )));
    }
    let each = |inputs: &[&Input], line: &dyn Fn(&Input) -> String| inputs.iter().map(|input| line(input)).collect();
    let plain: Vec<&Input> = asked.iter().copied().filter(|input| !input.sensitive).collect();
    let optional: Vec<&Input> = sensitive.iter().copied().filter(|input| !input.required).collect();
    Ok(BTreeMap::from([
        ("INPUT_PARAMETERS".to_owned(), parameters),
        ("INPUT_GROUPS".to_owned(), groups(version, &asked)),
        (
            "INPUT_LABELS".to_owned(),
            each(&asked, &|input| {
                format!("\n      {}: {{default: {}}}", input.parameter(), quoted(&shown(title(input), TITLE_CHARS)))
            }),
        ),
        (
            "INPUT_CONDITIONS".to_owned(),
            each(&optional, &|input| {
                let id = input.parameter();
                format!("\n  Has{id}: !Not [!Equals [!Ref {id}, \"\"]]")
            }),
        ),
        ("INPUT_SECRETS".to_owned(), each(&sensitive, &|input| secret(input, version, tenant, install))),
        ("INPUT_SECRETS_READ".to_owned(), reading(&sensitive, install)),
        (
            "INPUT_OUTPUTS".to_owned(),
            each(&plain, &|input| {
                let id = input.parameter();
                format!("\n  {id}: {{Description: The customer's answer, Value: !Ref {id}}}")
            }),
        ),
    ]))
}

fn check_count(version: &AppVersion, asked: &[&Input]) -> Result<(), AppError> {
    let outputs = asked.iter().filter(|input| !input.sensitive).count();
    // A switch and an output for each role that the app names itself, and one end for all of break-glass.
    let named = version.named_roles.len() + usize::from(version.named_roles.iter().any(|role| role.break_glass));
    let left = |section: &str| MOST.saturating_sub(keys_of(section) + named);
    let room = left("Parameters:").min(left("Outputs:"));
    if asked.len() <= room && outputs <= room {
        return Ok(());
    }
    Err(AppError::invalid(format!(
        "app `{}` has {} inputs that the customer answers, and an install stack has room for {room} parameters; leave some \
         to the vendor (`user_configurable = false`), or put several into one of type `json`",
        version.app,
        asked.len()
    )))
}

/// Returns how many keys a section of the template has without the app's own.
fn keys_of(section: &str) -> usize {
    let lines = TEMPLATE.lines().skip_while(|line| *line != section).skip(1);
    let inside = lines.take_while(|line| line.is_empty() || line.starts_with(' '));
    inside.filter(|line| line.strip_prefix("  ").is_some_and(|key| key.starts_with(char::is_alphabetic))).count()
}

/// Returns a parameter's properties.
fn parameter(input: &Input) -> Result<String, AppError> {
    let default = default(input)?;
    let needs_answer = input.required && default.is_none();
    let mut properties = Vec::new();
    let mut says = |key: &str, value: String| properties.push(format!("{key}: {value}"));
    let hint = match input.kind {
        InputKind::String => "",
        InputKind::Number => " (a number)",
        InputKind::Bool => " (true or false)",
        InputKind::List => " (words with commas between them, or a JSON list)",
        InputKind::Json => " (JSON)",
        InputKind::Yaml => " (YAML)",
        InputKind::Hcl => " (HCL)",
    };
    let text = if input.description.is_empty() { title(input) } else { &input.description };
    let description = format!("{}{hint}", shown(text, DESCRIPTION_CHARS));
    let numeric = input.kind == InputKind::Number && (needs_answer || default.is_some()) && !input.sensitive;
    says("Type", if numeric { "Number" } else { "String" }.to_owned());
    says("Description", quoted(&description));
    if input.sensitive {
        says("NoEcho", "true".to_owned());
    }
    let constraint = match (input.kind, needs_answer) {
        _ if numeric => Some("must be a number"),
        (InputKind::Number, _) => {
            says("AllowedPattern", quoted(OPTIONAL_NUMBER));
            Some("must be a number, or empty")
        }
        (InputKind::Bool, true) => {
            says("AllowedValues", r#"["true", "false"]"#.to_owned());
            Some("must be true or false")
        }
        (InputKind::Bool, false) => {
            let empty = if default.is_none() { r#", """# } else { "" };
            says("AllowedValues", format!(r#"["true", "false"{empty}]"#));
            Some("must be true or false")
        }
        (InputKind::String | InputKind::List | InputKind::Json | InputKind::Yaml | InputKind::Hcl, true) => {
            says("MinLength", "1".to_owned());
            Some("must not be empty")
        }
        (InputKind::String | InputKind::List | InputKind::Json | InputKind::Yaml | InputKind::Hcl, false) => None,
    };
    if !needs_answer {
        says("Default", quoted(default.as_deref().unwrap_or_default()));
    }
    if let Some(constraint) = constraint {
        says("ConstraintDescription", quoted(constraint));
    }
    Ok(format!("{{{}}}", properties.join(", ")))
}

/// Returns the text that a parameter has unless the customer gives another; a secret has none that others can read.
fn default(input: &Input) -> Result<Option<String>, AppError> {
    let Some(default) = input.usable_default().filter(|_| !input.sensitive) else {
        return Ok(None);
    };
    let refused = |why: String| AppError::invalid(format!("the default of input `{}` {why}", input.name));
    let value = input.accept(default).map_err(|error| refused(format!("does not fit: {error}")))?;
    let words = |items: &[Value]| -> Option<String> {
        let plain = |text: &&str| !text.is_empty() && !text.contains(',') && text.trim() == *text;
        let texts: Option<Vec<&str>> = items.iter().map(|item| item.as_str().filter(plain)).collect();
        texts.map(|texts| texts.join(",")).filter(|text| !text.starts_with('['))
    };
    let text = match (&value, input.kind) {
        // A text that is the JSON itself keeps its quotes; the empty one stands for no answer.
        (Value::String(text), kind) if kind != InputKind::Json || text.is_empty() => text.clone(),
        (Value::Array(items), InputKind::List) => words(items).unwrap_or_else(|| value.to_string()),
        (value, _) => value.to_string(),
    };
    if text.len() > MAX_VALUE_BYTES {
        return Err(refused(format!(
            "has {} bytes, more than the {MAX_VALUE_BYTES} of a stack parameter; make it shorter",
            text.len()
        )));
    }
    // CloudFormation would put a parameter or secret of the customer's account in its place.
    if text.contains("{{resolve:") {
        return Err(refused("must not hold a dynamic reference (`{{resolve:`); leave it out".to_owned()));
    }
    if text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err(refused("holds a control character; leave it out".to_owned()));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Returns the parameter groups: those of the app in its order, then what has no group.
fn groups(version: &AppVersion, asked: &[&Input]) -> String {
    let known = |name: &str| version.input_groups.iter().any(|group| group.name == name);
    let of_app = version.input_groups.iter().map(|group| {
        let title = if group.display_name.is_empty() { &group.name } else { &group.display_name };
        let inputs: Vec<&&Input> = asked.iter().filter(|input| input.group == group.name).collect();
        (title.as_str(), inputs)
    });
    let rest: Vec<&&Input> = asked.iter().filter(|input| !known(&input.group)).collect();
    let title = if version.input_groups.is_empty() { "App" } else { "Other" };
    let line = |(title, inputs): (&str, Vec<&&Input>)| {
        let ids: Vec<String> = inputs.iter().map(|input| input.parameter()).collect();
        let label = quoted(&shown(title, TITLE_CHARS));
        (!ids.is_empty())
            .then(|| format!("\n      - {{Label: {{default: {label}}}, Parameters: [{}]}}", ids.join(", ")))
    };
    of_app.chain(std::iter::once((title, rest))).filter_map(line).collect()
}

/// Returns the secret that keeps a sensitive answer; an empty answer makes none.
fn secret(input: &Input, version: &AppVersion, tenant: &TenantName, install: &InstallId) -> String {
    let id = input.parameter();
    let condition = if input.required { String::new() } else { format!("\n    Condition: Has{id}") };
    let description = quoted(&shown(&format!("Answer to {}", title(input)), TITLE_CHARS));
    format!(
        "\n\n  Secret{id}:\n    Type: AWS::SecretsManager::Secret{condition}\n    Properties:\n      \
         Name: fh-{install}/input/{}\n      Description: {description}\n      SecretString: !Ref {id}\n      \
         KmsKeyId: !Ref Key\n      Tags:\n        - {{Key: freehold:tenant, Value: \"{tenant}\"}}\n        \
         - {{Key: freehold:app, Value: \"{}\"}}\n        - {{Key: freehold:install, Value: \"{install}\"}}",
        input.name, version.app
    )
}

/// Returns the statement that lets the runner read exactly these secrets.
fn reading(sensitive: &[&Input], install: &InstallId) -> String {
    if sensitive.is_empty() {
        return String::new();
    }
    let arn = |name: &str| {
        format!(
            "\n                  - !Sub arn:${{AWS::Partition}}:secretsmanager:${{AWS::Region}}:${{AWS::AccountId}}:secret:\
             fh-{install}/input/{name}"
        )
    };
    let arns = sensitive.iter().map(|input| {
        // Secrets Manager adds six characters to a name; one that was left open has no secret, and is told apart from
        // a forbidden one by the name alone.
        let open = if input.required { String::new() } else { arn(&input.name) };
        format!("{}-??????{open}", arn(&input.name))
    });
    format!(
        "\n              - Sid: ReadSensitiveAnswers\n                Effect: Allow\n                \
         Action: secretsmanager:GetSecretValue\n                Resource:{}",
        arns.collect::<String>()
    )
}

fn fits_secret_name(name: &str) -> bool {
    (1..=200).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

fn title(input: &Input) -> &str {
    if input.display_name.is_empty() { &input.name } else { &input.display_name }
}
