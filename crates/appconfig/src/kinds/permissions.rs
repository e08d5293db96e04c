//! Keys of roles, and of the policies that judge what is done.

use crate::spec::Holds::{File, Flag, Table, Tables, Template, TemplateFile, Text, Texts, Word};
use crate::spec::{Key, may, must};

pub(super) const POLICY_OF_ROLE: &[Key] = &[
    may("name", Template),
    may("managed_policy_name", Text),
    may("contents", TemplateFile),
    may("gcp_predefined_role", Text),
];

pub(super) const ROLE: &[Key] = &[
    must("name", Template),
    must("description", Template),
    may("display_name", Template),
    may("policies", Tables(POLICY_OF_ROLE)),
    may("permissions_boundary", TemplateFile),
    may("enabled_in_stack", Flag),
    may("cloud_platform", Word(&["aws", "gcp", "azure"])),
];

pub(super) const TYPED_ROLE: &[Key] = &[
    must("type", Word(&["provision", "maintenance", "deprovision", "custom"])),
    must("name", Template),
    must("description", Template),
    may("display_name", Template),
    may("policies", Tables(POLICY_OF_ROLE)),
    may("permissions_boundary", TemplateFile),
    may("enabled_in_stack", Flag),
    may("cloud_platform", Word(&["aws", "gcp", "azure"])),
];

pub(super) const ROLE_FILE: &[Key] = TYPED_ROLE;

pub(super) const PERMISSIONS: &[Key] = &[
    may("provision_role", Table(ROLE)),
    may("maintenance_role", Table(ROLE)),
    may("deprovision_role", Table(ROLE)),
    may("roles", Tables(TYPED_ROLE)),
];

pub(super) const BREAK_GLASS: &[Key] = &[may("role", Tables(ROLE))];

pub(super) const OPERATION_ROLES: &[Key] = &[
    may("type", Word(&["matrix"])),
    may("rules", Tables(&[must("principal", Text), must("operation", Text), must("role", Text)])),
];

pub(super) const POLICIES: &[Key] = &[may(
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
