//! Orders: what the control plane asks of one runner.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::app_version::{Input, Secret};
use crate::contract::OrderTerms;
use crate::envelope::Payload;
use crate::preflight::CheckInstall;
use crate::{ActionName, BuildId, ComponentName, Group, InstallId, JobId, RoleKey, TenantName, Timestamp, WorkflowId};

mod kubernetes;
mod secrets;

pub use self::kubernetes::{ApplyManifest, ClusterOf, InstallChart};
pub use self::secrets::{CopySecrets, SecretCopy};

pub use crate::app_version::ActionStep;
pub use crate::artifact::{Artifact, Descriptor};
pub use crate::build::{
    CHART_CONFIG, CHART_LAYER, KUSTOMIZATION_ARTIFACT, KUSTOMIZATION_LAYER, MANIFEST_ARTIFACT, MANIFEST_LAYER,
    MODULE_ARTIFACT, MODULE_LAYER, Package, Recipe, Signer, Source, TEMPLATE_ARTIFACT, TEMPLATE_LAYER,
};
pub use crate::mode::Mode;

/// The signed message that asks for one try at a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub tenant: TenantName,
    pub install: InstallId,
    pub workflow: WorkflowId,
    pub job: JobId,
    /// How many times the control plane has dispatched this job, from 1. First half of the attempt's fence.
    pub dispatch: u32,
    /// The thing being changed; also the SQS message group.
    pub group: Group,
    /// Rises with every job of the install; within a group a runner refuses one older than what it has accepted.
    pub serial: u64,
    pub issued_at: Timestamp,
    /// When the order expires: after this time it is not started, and a running attempt is stopped.
    pub not_after: Timestamp,
    /// The time limit of one attempt, in seconds.
    pub timeout_secs: u32,
    pub mode: Mode,
    /// The named role that is taken instead of the mode's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleKey>,
    pub redelivery: Redelivery,
    pub work: Work,
    /// The `.nuon` tree that the work's templates are rendered over; secrets are added on the runner only.
    pub context: Value,
    /// The app's sensitive inputs, without words for people. The values of the customer's are not in the tree: the
    /// runner adds them. None of their values may be shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitive_inputs: Vec<Input>,
    /// The app's secrets, without words for people. The runner reads their values, adds them to the tree, and shows none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Secret>,
    /// The terms of the version that the work belongs to; builds belong to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<Box<OrderTerms>>,
}

impl Payload for Order {
    const TYPE: &'static str = "application/vnd.freehold.order.v1+json";
}

/// Asks the runner that has a job to stop it, or a runner not to start it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    pub tenant: TenantName,
    pub install: InstallId,
    pub job: JobId,
    /// The dispatch to cancel; later dispatches are not affected.
    pub dispatch: u32,
    /// When set, only the attempt with this receive count is cancelled, such as a stale attempt, or the second of two
    /// attempts with the same fence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive: Option<u32>,
    /// When set, only this runner stops the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<crate::KeyId>,
    pub issued_at: Timestamp,
    pub not_after: Timestamp,
}

impl Payload for Cancel {
    const TYPE: &'static str = "application/vnd.freehold.cancel.v1+json";
}

/// What a second delivery means after the first attempt's runner died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Redelivery {
    /// Start again from refreshed state.
    Resume,
    /// Do not start again; report the job as interrupted.
    Interrupted,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Work {
    /// Copy an image into the install registry.
    ContainerImage(SyncImage),
    /// Plan and apply a Terraform module.
    TerraformModule(ApplyTerraform),
    /// Plan and apply the module of the sandbox, whose state is apart from the states of components.
    Sandbox(ApplyTerraform),
    /// Create or update a CloudFormation stack.
    CloudformationStack(DeployStack),
    /// Install or upgrade a Helm release.
    HelmChart(InstallChart),
    /// Apply Kubernetes objects.
    KubernetesManifest(ApplyManifest),
    /// Copy secrets into a cluster.
    CopySecrets(CopySecrets),
    /// Remove what another work made.
    Remove(RemovePart),
    /// Execute the steps of an action.
    Action(RunAction),
    /// Make an artifact; for the build runner only.
    Build(BuildArtifact),
    /// Look for problems that would stop the other jobs, before those jobs start.
    Preflight(CheckInstall),
}

impl Work {
    /// Returns the component kind, `sandbox`, `secrets`, `remove`, `action`, `build` or `preflight`, as tables and messages
    /// print it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::ContainerImage(_) => "container_image",
            Self::TerraformModule(_) => "terraform_module",
            Self::Sandbox(_) => "sandbox",
            Self::CloudformationStack(_) => "cloudformation_stack",
            Self::HelmChart(_) => "helm_chart",
            Self::KubernetesManifest(_) => "kubernetes_manifest",
            Self::CopySecrets(_) => "secrets",
            Self::Remove(_) => "remove",
            Self::Action(_) => "action",
            Self::Build(_) => "build",
            Self::Preflight(_) => "preflight",
        }
    }

    /// Returns what a redelivery of this work means.
    pub const fn redelivery(&self) -> Redelivery {
        match self {
            Self::ContainerImage(_)
            | Self::TerraformModule(_)
            | Self::Sandbox(_)
            | Self::CloudformationStack(_)
            | Self::HelmChart(_)
            | Self::KubernetesManifest(_)
            | Self::CopySecrets(_)
            | Self::Remove(_)
            | Self::Build(_)
            | Self::Preflight(_) => Redelivery::Resume,
            Self::Action(action) if action.idempotent => Redelivery::Resume,
            Self::Action(_) => Redelivery::Interrupted,
        }
    }

    /// Returns the component that the work is for, if it is for one; the sandbox under its name.
    pub fn component(&self) -> Option<&ComponentName> {
        match self {
            Self::ContainerImage(work) => Some(&work.component),
            Self::TerraformModule(work) | Self::Sandbox(work) => Some(&work.component),
            Self::CloudformationStack(work) => Some(&work.component),
            Self::HelmChart(work) => Some(&work.component),
            Self::KubernetesManifest(work) => Some(&work.component),
            Self::Remove(work) => work.what.component(),
            Self::Build(work) => Some(&work.component),
            Self::CopySecrets(_) | Self::Action(_) | Self::Preflight(_) => None,
        }
    }

    /// Returns the work that made what is to be removed; for all other work, the work itself.
    pub fn made_by(&self) -> &Self {
        match self {
            Self::Remove(work) => work.what.made_by(),
            other => other,
        }
    }

    /// Returns the artifact that the work needs in the install registry, if any.
    pub fn artifact(&self) -> Option<&Artifact> {
        match self {
            Self::ContainerImage(work) => Some(&work.artifact),
            Self::TerraformModule(work) | Self::Sandbox(work) => Some(&work.artifact),
            Self::CloudformationStack(work) => Some(&work.artifact),
            Self::HelmChart(work) => Some(&work.artifact),
            Self::KubernetesManifest(work) => Some(&work.artifact),
            Self::Remove(work) => work.what.artifact(),
            Self::CopySecrets(_) | Self::Action(_) | Self::Build(_) | Self::Preflight(_) => None,
        }
    }
}

/// Copies an image into the install registry; its outputs are `reference` (by digest), `repository`, `digest`,
/// and `image` with `repository`, `tag` and `digest`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncImage {
    pub component: ComponentName,
    pub artifact: Artifact,
}

/// Runs `terraform` or `tofu`: init, plan to a file, apply of that file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApplyTerraform {
    pub component: ComponentName,
    pub artifact: Artifact,
    pub terraform_version: String,
    /// Input variables; string values are templates.
    #[serde(default)]
    pub vars: BTreeMap<String, Value>,
    /// Environment of the program; values are templates.
    #[serde(default)]
    pub env_vars: BTreeMap<String, String>,
    /// Contents of `.tfvars` files, in order; each a template.
    #[serde(default)]
    pub var_files: Vec<String>,
}

/// Deploys a CloudFormation template through a change set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeployStack {
    pub component: ComponentName,
    pub artifact: Artifact,
    /// The stack's name in the customer's account; a template.
    pub stack_name: String,
    /// Stack parameters; values are templates.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// The capabilities that CloudFormation requires to be acknowledged, such as `CAPABILITY_NAMED_IAM`.
    #[serde(default)]
    pub capabilities: Vec<String>,
}

/// Removes a component or the sandbox: plans the removal, then does what was planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemovePart {
    /// The work that made it.
    pub what: Box<Work>,
    /// Whether resources that hold data may be destroyed.
    #[serde(default)]
    pub destroy_data: bool,
}

/// Executes steps in the job's sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunAction {
    pub action: ActionName,
    pub steps: Vec<ActionStep>,
    #[serde(default)]
    pub env_vars: BTreeMap<String, String>,
    /// Whether a second delivery may run the steps again.
    #[serde(default)]
    pub idempotent: bool,
    /// The cluster of which the steps get a kubeconfig; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterOf>,
}

/// Makes one artifact and pushes it to the tenant registry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BuildArtifact {
    pub build: BuildId,
    pub component: ComponentName,
    pub package: Package,
    pub source: Source,
    /// The app version's settings for the build, in addition to its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<Recipe>,
    /// The tenant registry's repository name.
    pub repository: String,
}
