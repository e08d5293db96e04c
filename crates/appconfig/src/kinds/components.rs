//! Keys of components of every kind.

use crate::spec::Holds::{
    Any, Duration, Flag, Scalars, Table, Tables, Template, TemplateFile, Text, Texts, Values, Whole, Word,
};
use crate::spec::{Key, may, must};

use super::MAX_COMPONENT_SECS;

pub(super) const REPO: &[Key] = &[must("repo", Text), may("directory", Text), may("branch", Text)];

pub(super) const VAR_FILE: &[Key] = &[must("contents", TemplateFile)];

/// Keys of every component.
pub(super) const COMPONENT: &[Key] = &[
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

pub(super) const TERRAFORM_MODULE: &[Key] = &[
    must("terraform_version", Text),
    may("public_repo", Table(REPO)),
    may("connected_repo", Table(REPO)),
    // Ours: a directory beside the config.
    may("source", Text),
    may("vars", Values),
    may("env_vars", Scalars),
    may("var_file", Tables(VAR_FILE)),
];

pub(super) const IMAGE: &[Key] = &[must("image_url", Text), must("tag", Text)];

pub(super) const ECR_IMAGE: &[Key] =
    &[must("iam_role_arn", Text), must("region", Text), must("image_url", Text), must("tag", Text)];

pub(super) const CONTAINER_IMAGE: &[Key] = &[
    may("public", Table(IMAGE)),
    may("aws_ecr", Table(ECR_IMAGE)),
    may("gcp_gar", Any),
    // Ours: an OCI image layout beside the config.
    may("oci_layout", Table(&[must("path", Text)])),
    may("verification", Any),
];

/// Ours: a template that the runner deploys with the AWS API alone.
pub(super) const CLOUDFORMATION_STACK: &[Key] = &[
    may("template", Text),
    may("source", Text),
    may("stack_name", Template),
    may("parameters", Scalars),
    may("capabilities", Texts),
];

pub(super) const HELM_CHART: &[Key] = &[
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

pub(super) const KUBERNETES_MANIFEST: &[Key] = &[
    may("manifest", TemplateFile),
    must("namespace", Template),
    may("kustomize", Any),
    may("public_repo", Table(REPO)),
    may("connected_repo", Table(REPO)),
];

pub(super) const DOCKER_BUILD: &[Key] = &[
    must("dockerfile", Text),
    may("env_vars", Scalars),
    may("public_repo", Table(REPO)),
    may("connected_repo", Table(REPO)),
];

pub(super) const JOB: &[Key] = &[
    must("image_url", Template),
    must("tag", Template),
    may("cmd", Texts),
    may("args", Texts),
    may("env_vars", Scalars),
];

pub(super) const PULUMI: &[Key] = &[
    must("runtime", Word(&["go", "nodejs", "python"])),
    may("pulumi_version", Text),
    may("public_repo", Table(REPO)),
    may("connected_repo", Table(REPO)),
    may("config", Values),
    may("env_vars", Scalars),
];
