//! The rules that the schemas check between keys of one table: keys that exclude or need each other.

use serde_json::{Value, json};

use super::rule::{Case, How, Rule};
use crate::build::actions::{COMPONENT_TRIGGERS, TRIGGERS};

/// The tables for which a rule holds. Each is named by a kind or type and the keys below it, separated by dots.
type At = &'static [&'static str];

/// The pattern for names of inputs and secrets: some become parts of the names of secrets in AWS.
const NAME: &str = "^[A-Za-z0-9_-]{1,200}$";
const A_NAME: &str = "1 to 200 letters, digits, dashes or underscores";
/// The pattern for names of inputs of a run. The inputs of an action become environment variables.
const WORD: &str = "^[A-Za-z_][A-Za-z0-9_]{0,63}$";
const A_WORD: &str = "1 to 64 letters, digits or underscores, and does not start with a digit";
/// The pattern for names of components and actions (`ComponentName` and `ActionName` of the protocol).
const LABEL: &str = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$";
const A_LABEL: &str = "1 to 64 letters, digits, dashes or underscores, and starts with a letter or digit";

/// The pattern for a cron expression of five fields, or a template. Only the reader checks the numbers.
const CRON: &str = r"^\s*[-0-9A-Za-z*/,]+(\s+[-0-9A-Za-z*/,]+){4}\s*$|\{\{";
const CRON_OR_NONE: &str = r"^$|^\s*[-0-9A-Za-z*/,]+(\s+[-0-9A-Za-z*/,]+){4}\s*$|\{\{";
const A_CRON: &str = "a cron expression of five fields in UTC, such as `0 */6 * * *`";

const PRINCIPAL: &str = "^(nuon|freehold)::(sandbox:?|(component|action):.+)$";
const OWN_STACK: &str = r"^\s*\{\{\s*\.(nuon|freehold)\.install_stack\.outputs\.prefix\s*\}\}\s*\S";
const AN_OWN_STACK: &str = "a text that begins with `{{ .nuon.install_stack.outputs.prefix }}`";
const A_PRINCIPAL: &str = "`nuon::component:<name>`, `nuon::action:<name>` (`*` for any) or `nuon::sandbox`";

const POLICIES_OF_ROLES: At = &[
    "role.policies",
    "permissions.provision_role.policies",
    "permissions.maintenance_role.policies",
    "permissions.deprovision_role.policies",
    "permissions.custom_roles.policies",
    "permissions.roles.policies",
    "break_glass.role.policies",
];
const SECRET: At = &["secret", "secrets.secret"];
const OPERATIONS: &[&str] = &["provision", "reprovision", "deprovision", "deploy", "teardown", "trigger"];

pub(super) const RULES: &[(At, Rule)] = &[
    (&["input", "inputs.input"], Rule::Default),
    (&["input", "inputs.input"], Rule::Form("name", NAME, A_NAME)),
    (SECRET, Rule::AtMostOneGiven(&["required", "auto_generate", "default"])),
    (SECRET, Rule::Needs("kubernetes_sync", &["kubernetes_secret_namespace", "kubernetes_secret_name"])),
    (SECRET, Rule::Form("name", NAME, A_NAME)),
    (POLICIES_OF_ROLES, Rule::AtMostOneGiven(&["managed_policy_name", "contents", "gcp_predefined_role"])),
    (POLICIES_OF_ROLES, Rule::Needs("contents", &["name"])),
    (&["operation_roles.rules"], Rule::Form("principal", PRINCIPAL, A_PRINCIPAL)),
    (&["operation_roles.rules"], Rule::Words("operation", &[OPERATIONS])),
    (&["sandbox"], Rule::ExactlyOne(&["public_repo", "connected_repo"])),
    (
        &["sandbox"],
        Rule::ByWord(
            "type",
            true,
            &[
                Case { words: &["terraform"], needs: &["terraform_version"], how: How::All },
                Case { words: &["pulumi"], needs: &["runtime"], how: How::All },
            ],
        ),
    ),
    (&["sandbox"], Rule::Form("drift_schedule", CRON_OR_NONE, A_CRON)),
    (&["sandbox"], Rule::Holds("operation_roles", roles_of_operations, "a table of roles by operation")),
    (&["install"], Rule::Holds("inputs", answers, "a table of strings by input name, or a list of such tables")),
    (&["install"], Rule::Holds("component_toggles", toggles, "a table of `true` and `false` by component")),
    (&["branch.install_groups"], Rule::Excludes("label_selector", &["install_ids", "install_names"])),
    (&["branch.preview"], Rule::AtMostOneGiven(&["install_id", "install_name", "label_selector"])),
    (
        &["branch.preview"],
        Rule::SomeGivenUnless(&["install_id", "install_name", "label_selector"], "mode", "build-only"),
    ),
    (&["component"], Rule::Form("name", LABEL, A_LABEL)),
    (&["action"], Rule::Form("name", LABEL, A_LABEL)),
    (&["runbook"], Rule::Form("name", LABEL, A_LABEL)),
    (&["action.inputs"], Rule::Form("name", WORD, A_WORD)),
    (&["runbook.inputs", "runbook.input"], Rule::Form("name", WORD, A_WORD)),
    (&["component"], Rule::Form("drift_schedule", CRON_OR_NONE, A_CRON)),
    (&["component.health"], Rule::Form("schedule", CRON_OR_NONE, A_CRON)),
    (
        &["component.health.probes"],
        Rule::ByWord(
            "type",
            false,
            &[
                Case { words: &["http", "tcp"], needs: &["url"], how: How::All },
                Case { words: &["exec"], needs: &["command"], how: How::All },
            ],
        ),
    ),
    (&["terraform_module"], Rule::ExactlyOne(&["source", "public_repo", "connected_repo"])),
    (&["container_image"], Rule::ExactlyOne(&["public", "aws_ecr", "gcp_gar", "azure_acr", "oci_layout"])),
    (&["container_image.verification"], Rule::Needs("require_signature", &["authorities"])),
    (&["container_image.verification.authorities"], Rule::Signature),
    (&["cloudformation_stack"], Rule::ExactlyOne(&["template", "source"])),
    (&["cloudformation_stack"], Rule::Form("stack_name", OWN_STACK, AN_OWN_STACK)),
    (&["helm_chart"], Rule::ExactlyOne(&["public_repo", "connected_repo", "helm_repo", "source"])),
    (&["helm_chart.values_file"], Rule::ExactlyOne(&["contents", "path", "source"])),
    (&["kubernetes_manifest"], Rule::ExactlyOne(&["manifest", "kustomize"])),
    (&["kubernetes_manifest"], Rule::Excludes("manifest", &["public_repo", "connected_repo"])),
    (&["docker_build", "pulumi"], Rule::ExactlyOne(&["source", "public_repo", "connected_repo"])),
    (&["action.steps"], Rule::OneGiven(&["command", "inline_contents"])),
    (&["action.steps"], Rule::AtMostOne(&["public_repo", "connected_repo"])),
    (&["action.steps"], Rule::Excludes("inline_contents", &["public_repo", "connected_repo"])),
    (&["action.triggers"], Rule::Words("type", &[&TRIGGERS, &COMPONENT_TRIGGERS])),
    (&["action.triggers"], Rule::Form("cron_schedule", CRON, A_CRON)),
    (
        &["action.triggers"],
        Rule::ByWord(
            "type",
            false,
            &[
                Case { words: &["cron"], needs: &["cron_schedule"], how: How::All },
                Case { words: &COMPONENT_TRIGGERS, needs: &["component_name"], how: How::All },
            ],
        ),
    ),
    (
        &["runbook.steps"],
        Rule::ByWord(
            "type",
            false,
            &[
                Case {
                    words: &["component_deploy", "deploy", "component_tear_down"],
                    needs: &["component_name"],
                    how: How::All,
                },
                Case { words: &["action"], needs: &["action_name", "command", "inline_contents"], how: How::One },
                Case { words: &["command"], needs: &["command", "inline_contents"], how: How::One },
            ],
        ),
    ),
];

/// Returns the rules for the table at `path`.
pub(super) fn at(path: &str) -> impl Iterator<Item = &'static Rule> {
    RULES.iter().filter(move |(places, _)| places.contains(&path)).map(|(_, rule)| rule)
}

/// Returns the schema for the values of an install's inputs.
fn answers() -> Value {
    let table = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    json!({ "type": ["object", "array"], "additionalProperties": { "type": "string" }, "items": table })
}

/// Returns the schema for the components that an install switches on and off.
fn toggles() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "boolean" } })
}

/// Returns the schema for the roles that an entity, such as a component, sets for its own operations: a table, or a
/// list of tables.
fn roles_of_operations() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "type": ["object", "array"],
        "additionalProperties": text,
        "items": {
            "type": "object",
            "required": ["operation", "role"],
            "properties": { "operation": text, "role": text },
        },
    })
}
