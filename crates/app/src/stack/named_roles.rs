//! The part of the install stack for the roles that an app names itself: custom ones, and those of break-glass, which end at
//! a moment that the customer sets.

use std::collections::BTreeMap;

use freehold_domain::install::Install;
use freehold_protocol::RoleKey;
use freehold_protocol::app_version::{AppVersion, NamedRole};

use crate::AppError;
use crate::stack::role_policy::granted;
use crate::stack::template::fill;
use crate::stack::text::{DESCRIPTION_CHARS, TITLE_CHARS, quoted, shown};

/// One such role, with `%{...}` placeholders.
const ROLE: &str = include_str!("../../../../infra/install.role.yaml");
/// The parameter for the end of break-glass; its default is long past, so that nothing is open by accident.
const UNTIL: &str = r#"
  BreakGlassUntil:
    Type: String
    Description: >-
      A moment in UTC, such as 2026-11-30T18:00:00Z. From then on the break-glass roles may do nothing, whatever their switch.
    Default: "1970-01-01T00:00:00Z"
    AllowedPattern: ^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$
    ConstraintDescription: must be a moment in UTC, such as 2026-11-30T18:00:00Z"#;

/// Returns what the template's `%{NAMED_...}` placeholders stand for. Each follows a comment on its line, or a list's last
/// word, and is empty or continues there.
///
/// # Errors
/// Invalid for two roles of one key, or for a policy that cannot be rendered.
pub(crate) fn words(
    version: &AppVersion,
    install: &Install,
    about: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, AppError> {
    let roles: Vec<(&NamedRole, RoleKey)> = version.named_roles.iter().map(|role| (role, role.key())).collect();
    check_names(&roles, version)?;
    let glass = roles.iter().any(|(role, _)| role.break_glass);
    let each = |line: &dyn Fn(&NamedRole, &RoleKey) -> String| -> String {
        roles.iter().map(|(role, key)| line(role, key)).collect()
    };
    let mut blocks = String::new();
    for (role, key) in &roles {
        blocks.push_str(&block(role, key, version, install, about)?);
    }
    let until = |text: &str| if glass { text.to_owned() } else { String::new() };
    Ok(BTreeMap::from([
        ("NAMED_ROLES".to_owned(), blocks),
        ("NAMED_SWITCHES".to_owned(), each(&|_, key| format!(", {}", key.switch())) + &until(", BreakGlassUntil")),
        (
            "NAMED_LABELS".to_owned(),
            each(&|role, key| {
                let label = quoted(&shown(title(role, key), TITLE_CHARS));
                format!("\n      {}: {{default: {label}}}", key.switch())
            }) + &until("\n      BreakGlassUntil: {default: Break-glass is over from}"),
        ),
        ("NAMED_PARAMETERS".to_owned(), each(&switch) + &until(UNTIL)),
        (
            "NAMED_CONDITIONS".to_owned(),
            each(&|_, key| format!("\n  {}Enabled: !Equals [!Ref {}, \"true\"]", key.camel(), key.switch())),
        ),
        (
            "NAMED_TAKEN".to_owned(),
            each(&|_, key| {
                let arn = "!Sub arn:${AWS::Partition}:iam::${AWS::AccountId}:role";
                format!("\n                  - {arn}/fh-{}-{key}", install.id)
            }),
        ),
        ("NAMED_ALL".to_owned(), each(&|_, key| format!("\n        - !Ref {}Role", key.camel()))),
        (
            "NAMED_BASE".to_owned(),
            each(&|_, key| format!("\n        - !If [{0}Enabled, !Ref {0}Role, !Ref AWS::NoValue]", key.camel())),
        ),
        ("NAMED_LIMITS".to_owned(), each(&|_, key| limit(key)) + &until(&over(&roles))),
        ("NAMED_RULES".to_owned(), each(&|role, key| if role.break_glass { rule(key) } else { String::new() })),
        (
            "NAMED_OUTPUTS".to_owned(),
            each(&|_, key| {
                format!("\n  {0}RoleArn: {{Description: Role {key}, Value: !GetAtt {0}Role.Arn}}", key.camel())
            }),
        ),
    ]))
}

fn check_names(roles: &[(&NamedRole, RoleKey)], version: &AppVersion) -> Result<(), AppError> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (role, key) in roles {
        if let Some(first) = seen.insert(key.camel().to_ascii_lowercase(), &role.name) {
            return Err(AppError::invalid(format!(
                "roles `{first}` and `{}` of app `{}` would both be called `{key}` in the install stack; rename one",
                role.name, version.app
            )));
        }
    }
    Ok(())
}

fn block(
    role: &NamedRole,
    key: &RoleKey,
    version: &AppVersion,
    install: &Install,
    about: &BTreeMap<String, String>,
) -> Result<String, AppError> {
    let (policies, managed) = granted(&role.policies, &format!("role `{}`", role.name), version, install)?;
    let mut words = about.clone();
    words.extend([
        ("ABOUT".to_owned(), shown(title(role, key), TITLE_CHARS)),
        ("NAME".to_owned(), key.camel()),
        ("KEY".to_owned(), key.to_string()),
        ("POLICIES".to_owned(), policies),
        ("MANAGED".to_owned(), managed),
        (
            "UNTIL".to_owned(),
            if role.break_glass { ", DateLessThan: {aws:CurrentTime: !Ref BreakGlassUntil}" } else { "" }.to_owned(),
        ),
    ]);
    fill(ROLE, &words)
}

fn title<'a>(role: &'a NamedRole, key: &'a RoleKey) -> &'a str {
    if role.display_name.is_empty() { key.as_str() } else { &role.display_name }
}

/// Returns the parameter that switches a role on. One of break-glass is off until the customer says otherwise, whatever the
/// app says.
fn switch(role: &NamedRole, key: &RoleKey) -> String {
    let text = if role.description.is_empty() { title(role, key) } else { &role.description };
    let on = role.enabled && !role.break_glass;
    format!(
        "\n  {}: {{Type: String, Description: {}, Default: \"{on}\", AllowedValues: [\"true\", \"false\"]}}",
        key.switch(),
        quoted(&shown(text, DESCRIPTION_CHARS))
    )
}

/// Returns the statement that takes everything from a role that is switched off.
fn limit(key: &RoleKey) -> String {
    let name = key.camel();
    format!(
        "\n          - !If\n            - {name}Enabled\n            - !Ref AWS::NoValue\n            - Sid: {name}IsOff\n              \
         Effect: Deny\n              Action: \"*\"\n              Resource: \"*\"\n              \
         Condition: {{ArnEquals: {{aws:PrincipalArn: !GetAtt {name}Role.Arn}}}}"
    )
}

/// Returns the rule by which nobody opens break-glass without saying when it ends.
fn rule(key: &RoleKey) -> String {
    format!(
        "\n  {}NeedsItsEnd:\n    RuleCondition: !Equals [!Ref {}, \"true\"]\n    Assertions:\n      \
         - {{Assert: !Not [!Equals [!Ref BreakGlassUntil, \"1970-01-01T00:00:00Z\"]], \
         AssertDescription: BreakGlassUntil has to say when break-glass ends}}",
        key.camel(),
        key.switch()
    )
}

/// Returns the statement that ends break-glass.
fn over(roles: &[(&NamedRole, RoleKey)]) -> String {
    let glass = roles.iter().filter(|(role, _)| role.break_glass);
    let arns: Vec<String> = glass.map(|(_, key)| format!("!GetAtt {}Role.Arn", key.camel())).collect();
    format!(
        "\n          - Sid: BreakGlassIsOver\n            Effect: Deny\n            Action: \"*\"\n            \
         Resource: \"*\"\n            Condition:\n              ArnEquals: {{aws:PrincipalArn: [{}]}}\n              \
         DateGreaterThanEquals: {{aws:CurrentTime: !Ref BreakGlassUntil}}",
        arns.join(", ")
    )
}
