//! What each kind of file of an app config may say: tables, in the order of the public format's description.

use crate::spec::Holds::{
    Any, Duration, File, Flag, Scalars, Table, Tables, Template, TemplateFile, Text, Texts, Values, Whole, Word,
};
use crate::spec::{Key, may, must};

/// The longest build or deploy of a component, in seconds.
pub(crate) const MAX_COMPONENT_SECS: u32 = 60 * 60;
/// The longest run of an action, in seconds.
pub(crate) const MAX_ACTION_SECS: u32 = 30 * 60;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Metadata,
    /// `inputs.toml`: groups and inputs.
    Inputs,
    /// A file of `inputs/`: one input, or groups and inputs.
    Input,
    InputGroup,
    Secrets,
    Secret,
    /// `permissions.toml`: a role for each mode.
    Permissions,
    /// A file of `permissions/`: one role.
    Role,
    BreakGlass,
    OperationRoles,
    Sandbox,
    Runner,
    Stack,
    Policies,
    Installer,
    Branch,
    Triggers,
    Component,
    Action,
    Install,
    Runbook,
}

/// Root files by name.
pub(crate) const ROOT: [(&str, Kind); 14] = [
    ("metadata.toml", Kind::Metadata),
    ("inputs.toml", Kind::Inputs),
    ("secrets.toml", Kind::Secrets),
    ("permissions.toml", Kind::Permissions),
    ("break_glass.toml", Kind::BreakGlass),
    ("operation_roles.toml", Kind::OperationRoles),
    ("sandbox.toml", Kind::Sandbox),
    ("runner.toml", Kind::Runner),
    ("stack.toml", Kind::Stack),
    ("policies.toml", Kind::Policies),
    ("installer.toml", Kind::Installer),
    ("branch.toml", Kind::Branch),
    ("triggers.toml", Kind::Triggers),
    ("runbooks.toml", Kind::Runbook),
];

/// Folders whose TOML files are read, at any depth.
pub(crate) const FOLDERS: [(&str, Kind); 10] = [
    ("components", Kind::Component),
    ("actions", Kind::Action),
    ("installs", Kind::Install),
    ("permissions", Kind::Role),
    ("inputs", Kind::Input),
    ("input_groups", Kind::InputGroup),
    ("secrets", Kind::Secret),
    ("policies", Kind::Policies),
    ("break_glass", Kind::BreakGlass),
    ("runbooks", Kind::Runbook),
];

impl Kind {
    /// Returns the keys of a file of this kind; a component's depend on its `type` too.
    pub(crate) const fn keys(self) -> &'static [Key] {
        match self {
            Self::Metadata => METADATA,
            Self::Inputs => INPUTS,
            Self::Input => INPUT,
            Self::InputGroup => GROUP,
            Self::Secrets => SECRETS,
            Self::Secret => SECRET,
            Self::Permissions => PERMISSIONS,
            Self::Role => ROLE_FILE,
            Self::BreakGlass => BREAK_GLASS,
            Self::OperationRoles => OPERATION_ROLES,
            Self::Sandbox => SANDBOX,
            Self::Runner => RUNNER,
            Self::Stack => STACK,
            Self::Policies => POLICIES,
            Self::Installer | Self::Branch | Self::Triggers => &[],
            Self::Component => COMPONENT,
            Self::Action => ACTION,
            Self::Install => INSTALL,
            Self::Runbook => RUNBOOK,
        }
    }

    /// Whether keys beyond those of the table are accepted without a word.
    pub(crate) const fn is_open(self) -> bool {
        matches!(self, Self::Installer | Self::Branch | Self::Triggers)
    }
}

const METADATA: &[Key] = &[
    must("version", Text),
    may("display_name", Text),
    may("description", Text),
    may("slack_webhook_url", Text),
    may("readme", File),
    may("label_colors", Any),
    may("onboarding", Any),
    may("kubernetes_context", Tables(&[must("name", Text), must("component", Text)])),
];

const GROUP: &[Key] = &[must("name", Text), may("description", Text), may("display_name", Text)];

const INPUT_TYPES: &[&str] = &["string", "number", "list", "json", "bool", "yaml", "hcl"];

const INPUT: &[Key] = &[
    must("name", Text),
    must("display_name", Text),
    must("description", Text),
    must("group", Text),
    may("default", Any),
    may("required", Flag),
    may("sensitive", Flag),
    may("type", Word(INPUT_TYPES)),
    may("internal", Flag),
    may("user_configurable", Flag),
];

const INPUTS: &[Key] = &[may("group", Tables(GROUP)), may("input", Tables(INPUT)), may("sources", Any)];

const SECRET: &[Key] = &[
    must("name", Text),
    may("display_name", Text),
    must("description", Text),
    may("required", Flag),
    may("auto_generate", Flag),
    may("format", Word(&["", "base64"])),
    may("default", Text),
    may("user_configurable", Flag),
    may("kubernetes_sync", Flag),
    may("kubernetes_secret_namespace", Template),
    may("kubernetes_secret_name", Template),
];

const SECRETS: &[Key] = &[may("secret", Tables(SECRET))];

const POLICY_OF_ROLE: &[Key] = &[
    may("name", Template),
    may("managed_policy_name", Text),
    may("contents", TemplateFile),
    may("gcp_predefined_role", Text),
];

const ROLE: &[Key] = &[
    must("name", Template),
    must("description", Template),
    may("display_name", Template),
    may("policies", Tables(POLICY_OF_ROLE)),
    may("permissions_boundary", TemplateFile),
    may("enabled_in_stack", Flag),
    may("cloud_platform", Word(&["aws", "gcp", "azure"])),
];

const TYPED_ROLE: &[Key] = &[
    must("type", Word(&["provision", "maintenance", "deprovision", "custom"])),
    must("name", Template),
    must("description", Template),
    may("display_name", Template),
    may("policies", Tables(POLICY_OF_ROLE)),
    may("permissions_boundary", TemplateFile),
    may("enabled_in_stack", Flag),
    may("cloud_platform", Word(&["aws", "gcp", "azure"])),
];

const ROLE_FILE: &[Key] = TYPED_ROLE;

const PERMISSIONS: &[Key] = &[
    may("provision_role", Table(ROLE)),
    may("maintenance_role", Table(ROLE)),
    may("deprovision_role", Table(ROLE)),
    may("roles", Tables(TYPED_ROLE)),
];

const BREAK_GLASS: &[Key] = &[may("role", Tables(ROLE))];

const OPERATION_ROLES: &[Key] = &[
    may("type", Word(&["matrix"])),
    may("rules", Tables(&[must("principal", Text), must("operation", Text), must("role", Text)])),
];

const REPO: &[Key] = &[must("repo", Text), may("directory", Text), may("branch", Text)];

const VAR_FILE: &[Key] = &[must("contents", TemplateFile)];

const SANDBOX: &[Key] = &[
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

const RUNNER: &[Key] = &[
    must("runner_type", Text),
    may("env_vars", Scalars),
    may("helm_driver", Word(&["secret", "configmap", "nuon"])),
    may("init_script_url", Text),
    may("instance_type", Text),
];

const STACK: &[Key] = &[
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

const POLICIES: &[Key] = &[may(
    "policy",
    Tables(&[
        must(
            "type",
            Word(&[
                "terraform_module",
                "helm_chart",
                "kubernetes_manifest",
                "container_image",
                "pulumi",
                "sandbox",
                "kubernetes_cluster",
                "runner_job_terraform_deploy",
                "runner_job_helm_deploy",
                "runner_job_action_workflow",
            ]),
        ),
        may("name", Text),
        may("engine", Word(&["kyverno", "opa"])),
        may("components", Texts),
        must("contents", File),
    ]),
)];

/// Keys of every component.
const COMPONENT: &[Key] = &[
    must("name", Text),
    must("type", Word(COMPONENT_TYPES)),
    may("var_name", Text),
    may("dependencies", Texts),
    may("labels", Any),
    may("operation_roles", Any),
    may("kubernetes_context", Text),
    may("toggleable", Flag),
    may("default_enabled", Flag),
    may("build_timeout", Duration(MAX_COMPONENT_SECS)),
    may("deploy_timeout", Duration(MAX_COMPONENT_SECS)),
    may("max_auto_retries", Whole),
    may("skip_noops", Flag),
    may("auto_approve_on_policies_passing", Flag),
    may("health", Any),
    may("drift_schedule", Text),
];

pub(crate) const COMPONENT_TYPES: &[&str] = &[
    "terraform_module",
    "container_image",
    "cloudformation_stack",
    "helm_chart",
    "kubernetes_manifest",
    "docker_build",
    "job",
    "pulumi",
    "external_image",
];

/// Returns the keys that components of type `word` have besides those of every component.
pub(crate) fn component_keys(word: &str) -> &'static [Key] {
    match word {
        "terraform_module" => TERRAFORM_MODULE,
        "container_image" | "external_image" => CONTAINER_IMAGE,
        "cloudformation_stack" => CLOUDFORMATION_STACK,
        "helm_chart" => HELM_CHART,
        "kubernetes_manifest" => KUBERNETES_MANIFEST,
        "docker_build" => DOCKER_BUILD,
        "job" => JOB,
        "pulumi" => PULUMI,
        _ => &[],
    }
}

const TERRAFORM_MODULE: &[Key] = &[
    must("terraform_version", Text),
    may("public_repo", Table(REPO)),
    may("connected_repo", Table(REPO)),
    // Ours: a directory beside the config.
    may("source", Text),
    may("vars", Values),
    may("env_vars", Scalars),
    may("var_file", Tables(VAR_FILE)),
];

const IMAGE: &[Key] = &[must("image_url", Text), must("tag", Text)];

const ECR_IMAGE: &[Key] =
    &[must("iam_role_arn", Text), must("region", Text), must("image_url", Text), must("tag", Text)];

const CONTAINER_IMAGE: &[Key] = &[
    may("public", Table(IMAGE)),
    may("aws_ecr", Table(ECR_IMAGE)),
    may("gcp_gar", Any),
    // Ours: an OCI image layout beside the config.
    may("oci_layout", Table(&[must("path", Text)])),
    may("verification", Any),
];

/// Ours: a template that the runner deploys with the AWS API alone.
const CLOUDFORMATION_STACK: &[Key] = &[
    may("template", Text),
    may("source", Text),
    may("stack_name", Template),
    may("parameters", Scalars),
    may("capabilities", Texts),
];

const HELM_CHART: &[Key] = &[
    must("chart_name", Template),
    may("namespace", Template),
    may("storage_driver", Word(&["secret", "configmap", "nuon"])),
    may("take_ownership", Flag),
    may("values", Values),
    may("values_file", Tables(VAR_FILE)),
    may("public_repo", Table(REPO)),
    may("connected_repo", Table(REPO)),
    may("helm_repo", Table(&[must("repo_url", Text), must("chart", Text), may("version", Text)])),
];

const KUBERNETES_MANIFEST: &[Key] = &[
    may("manifest", TemplateFile),
    must("namespace", Template),
    may("kustomize", Any),
    may("public_repo", Table(REPO)),
    may("connected_repo", Table(REPO)),
];

const DOCKER_BUILD: &[Key] = &[
    must("dockerfile", Text),
    may("env_vars", Scalars),
    may("public_repo", Table(REPO)),
    may("connected_repo", Table(REPO)),
];

const JOB: &[Key] = &[
    must("image_url", Template),
    must("tag", Template),
    may("cmd", Texts),
    may("args", Texts),
    may("env_vars", Scalars),
];

const PULUMI: &[Key] = &[
    must("runtime", Word(&["go", "nodejs", "python"])),
    may("pulumi_version", Text),
    may("public_repo", Table(REPO)),
    may("connected_repo", Table(REPO)),
    may("config", Values),
    may("env_vars", Scalars),
];

const ACTION: &[Key] = &[
    must("name", Text),
    may("description", Text),
    may("timeout", Duration(MAX_ACTION_SECS)),
    // Ours: a second delivery may run the steps again.
    may("idempotent", Flag),
    may("dependencies", Texts),
    may("break_glass_role", Text),
    may("role", Text),
    may("enable_kube_config", Flag),
    may("image", Any),
    may("labels", Any),
    may("inputs", Any),
    may("env_vars", Scalars),
    may(
        "triggers",
        Tables(&[must("type", Text), may("index", Whole), may("cron_schedule", Text), may("component_name", Text)]),
    ),
    must(
        "steps",
        Tables(&[
            must("name", Text),
            may("command", Template),
            may("inline_contents", TemplateFile),
            may("env_vars", Scalars),
            may("enable_kube_config", Flag),
            may("public_repo", Table(REPO)),
            may("connected_repo", Table(REPO)),
        ]),
    ),
];

const INSTALL: &[Key] = &[
    must("name", Text),
    may("approval_option", Word(&["approve-all", "prompt"])),
    may("aws_account", Any),
    may("azure_account", Any),
    may("gcp_account", Any),
    may("inputs", Any),
    may("component_toggles", Any),
];

const RUNBOOK: &[Key] = &[
    must("name", Text),
    may("description", Text),
    may("readme", File),
    may("labels", Any),
    may("inputs", Any),
    may(
        "steps",
        Tables(&[
            may("name", Text),
            must("type", Text),
            may("action_name", Text),
            may("component_name", Text),
            may("command", Template),
            may("timeout", Duration(MAX_ACTION_SECS)),
            may("env_vars", Scalars),
        ]),
    ),
];
