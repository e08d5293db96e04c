//! Keys of where an app lives: sandbox, runner, stack.

use crate::spec::Holds::{Any, Flag, Scalars, Table, Tables, Template, Text, Values, Whole, Word};
use crate::spec::{Key, may, must};

use super::components::{REPO, VAR_FILE};

pub(super) const SANDBOX: &[Key] = &[
    may("type", Word(&["terraform", "pulumi"])),
    may("runtime", Word(&["go", "nodejs", "python"])),
    may("pulumi_version", Text),
    may("pulumi_config", Values),
    may("terraform_version", Text),
    may("public_repo", Table(REPO)),
    may("connected_repo", Table(REPO)),
    may("vars", Values),
    may("env_vars", Scalars),
    may("var_file", Tables(VAR_FILE)),
    may("drift_schedule", Text),
    may("operation_roles", Any),
    may("max_auto_retries", Whole),
    may("skip_noops", Flag),
    may("auto_approve_on_policies_passing", Flag),
];

pub(super) const RUNNER: &[Key] = &[
    must("runner_type", Text),
    may("env_vars", Scalars),
    may("helm_driver", Word(&["secret", "configmap", "nuon"])),
    may("init_script_url", Text),
    may("instance_type", Text),
];

pub(super) const STACK: &[Key] = &[
    must("type", Word(&["aws-cloudformation", "azure-bicep", "gcp-terraform"])),
    must("name", Template),
    must("description", Template),
    may("vpc_nested_template_url", Text),
    may("runner_nested_template_url", Text),
    may(
        "custom_nested_stacks",
        Tables(&[must("name", Text), must("template_url", Text), may("index", Whole), may("parameters", Values)]),
    ),
    may("deployment_scope", Text),
];
