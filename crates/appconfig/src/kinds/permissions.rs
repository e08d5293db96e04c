//! The keys of roles, of rules that choose a role for an operation, and of policies.

use crate::kinds::spec::Holds::{File, Flag, Table, Tables, Template, TemplateFile, Text, Texts, Word};
use crate::kinds::spec::{Key, may, must};

const POLICY_NAME: Key = may("name", Template).doc("The policy's name in the role; needed with `contents`");
const MANAGED: Key =
    may("managed_policy_name", Text).doc("An AWS managed policy by name or ARN, such as `ReadOnlyAccess`");
const CONTENTS: Key = may("contents", TemplateFile)
    .doc("A policy document in JSON: the text itself or `./path` of a file. Not with `managed_policy_name`");

pub(super) const POLICY_OF_ROLE: &[Key] = &[
    POLICY_NAME,
    MANAGED,
    CONTENTS,
    may("gcp_predefined_role", Text).doc("A predefined role of Google Cloud, such as `roles/editor`"),
    may("gcp_permissions", Texts)
        .doc("Single permissions of Google Cloud. They have no effect, because the roles of an install are in AWS"),
    may("azure_actions", Texts)
        .doc("Single actions of Azure. They have no effect, because the roles of an install are in AWS"),
    may("azure_built_in_roles", Texts)
        .doc("Built-in roles of Azure. They have no effect, because the roles of an install are in AWS"),
];

const NAME: Key =
    must("name", Template).filled().doc("The role's name; usually with the install's id in it. Unique in the app");
const DESCRIPTION: Key = must("description", Template).doc(
    "What the role is for; `freehold app show` shows it. The install stack shows it to the customer at the switch of a \
     custom or break-glass role; the switches of modes have texts of Freehold",
);
const DISPLAY_NAME: Key = may("display_name", Template)
    .doc("The role's name for people; `freehold app show` and the install stack show it where they show `description`");
const POLICIES: Key = may("policies", Tables(POLICY_OF_ROLE)).doc("What the role may do");
const NAMED_POLICIES: Key = may(
    "named_policies",
    Tables(&[must("name", Template).filled().doc("The `name` of a file of `permissions/policies/**/*.toml`")]),
)
.doc("Policies that the role has beside `policies`, each from a file of `permissions/policies/**/*.toml`");
const BOUNDARY: Key = may("permissions_boundary", TemplateFile).doc(
    "The permissions boundary of the role: a policy document in JSON, or `./path` of a file with it. The install \
     stack denies the role everything that this boundary does not allow. Empty for no boundary",
);
const ENABLED: Key = may("enabled_in_stack", Flag).doc(
    "Whether a custom role is switched on in a new install stack; default `true`. In a new install stack, the roles of \
     the modes `provision` and `maintenance` are always on, and that of `deprovision` and break-glass roles always off",
);
const PLATFORM: Key = may("cloud_platform", Word(&["aws", "gcp", "azure"]))
    .doc("The cloud that the role is for; default `aws`. It has to be the cloud of `stack.toml`");

pub(super) const ROLE: &[Key] =
    &[TYPE, NAME, DESCRIPTION, DISPLAY_NAME, POLICIES, NAMED_POLICIES, BOUNDARY, ENABLED, PLATFORM];

/// The key `type` of a role whose use is already known from the table or file that it is in.
const TYPE: Key = may("type", Word(ROLE_TYPES)).doc(
    "The operations that the role is used for. The table or file of the role decides this, so another type has no \
     effect",
);

const ROLE_TYPES: &[&str] = &["provision", "maintenance", "deprovision", "custom"];

pub(super) const TYPED_ROLE: &[Key] = &[
    must("type", Word(ROLE_TYPES)).doc(
        "The operations that the role is used for: those of the mode `provision`, `maintenance` or `deprovision`, \
            or with `custom` only the operations that name the role",
    ),
    NAME,
    DESCRIPTION,
    DISPLAY_NAME,
    POLICIES,
    NAMED_POLICIES,
    BOUNDARY,
    ENABLED,
    PLATFORM,
];

pub(super) const ROLE_FILE: &[Key] = TYPED_ROLE;

pub(super) const NAMED_POLICY: &[Key] = &[
    must("name", Template)
        .filled()
        .doc("The policy's name, by which roles name it and which it has in each of them; unique in the app"),
    may("display_name", Text).doc("The policy's name for people who read the file"),
    may("description", Template).doc("What the policy is for, for people who read the file"),
    must("contents", TemplateFile).doc("The policy document in JSON: the text itself or `./path` of a file"),
];

pub(super) const PERMISSIONS: &[Key] = &[
    may("provision_role", Table(ROLE))
        .doc("The role of mode `provision`: for the first deploy of an install, and for the sandbox in every deploy"),
    may("maintenance_role", Table(ROLE)).doc("The role of mode `maintenance`: for later deploys and for actions"),
    may("deprovision_role", Table(ROLE)).doc("The role of mode `deprovision`: for removals"),
    may("custom_roles", Tables(ROLE))
        .doc("Roles for single operations; an operation uses such a role if it names the role"),
    may("roles", Tables(TYPED_ROLE)).doc("Roles of any type, each with `type`"),
];

pub(super) const BREAK_GLASS: &[Key] =
    &[may("role", Tables(ROLE)).doc("Roles for emergencies; switched off until the customer switches them on")];

pub(super) const OPERATION_ROLES: &[Key] = &[
    may("type", Word(&["matrix"])).doc("The form of the rules; `matrix` is the only one"),
    may(
        "rules",
        Tables(&[
            must("principal", Text)
                .doc("Who acts: `nuon::component:<name>`, `nuon::action:<name>` (`*` for any) or `nuon::sandbox`"),
            must("operation", Text).doc(
                "The operation: `deploy`, `teardown` (component); `trigger` (action); `provision`, `reprovision`, \
                 `deprovision` (sandbox)",
            ),
            must("role", Template)
                .doc("The name of the role that the operation uses, as under `permissions` or `break_glass`"),
        ]),
    )
    .doc("Rules; the first rule that fits decides"),
];

pub(super) const POLICY_TYPES: &[&str] = &[
    "terraform_module",
    "helm_chart",
    "kubernetes_manifest",
    "container_image",
    "docker_build",
    "pulumi",
    "sandbox",
    "kubernetes_cluster",
    "runner_job_terraform_deploy",
    "runner_job_helm_deploy",
    "runner_job_action_workflow",
];

pub(super) const POLICIES_FILE: &[Key] = &[may(
    "policy",
    Tables(&[
        must("type", Word(POLICY_TYPES)).doc(
            "What the policy checks: a kind of component, the `sandbox`, or with `kubernetes_cluster` all objects",
        ),
        may("name", Text).doc("The policy's name in reports; by default the name of its file, or its type"),
        may("engine", Word(&["kyverno", "opa"]))
            .doc("What evaluates the policy: `opa` on the runner, or `kyverno` (default) in the app's cluster"),
        may("components", Texts)
            .doc("The components that a policy in Rego checks; when absent or `[\"*\"]`, every component of its type"),
        must("contents", File)
            .doc("Rego in package `nuon` or `freehold`, or a Kyverno policy: the text itself or `./path` of a file"),
    ]),
)
.doc("Policies that check plans, manifests and images")];
