//! The work of a job, by kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::build_artifact::BuildArtifact;
use super::health::CheckHealth;
use super::kubernetes::{ApplyManifest, ClusterOf, InstallChart, RunKubernetesJob};
use super::leftovers::FindLeftovers;
use super::secrets::CopySecrets;
use super::upgrade::UpgradeRunner;
use crate::app_version::ActionStep;
use crate::artifact::Artifact;
use crate::preflight::CheckInstall;
use crate::{ActionName, ComponentName, Digest, canonical};

/// The behaviour of a runner that receives an order again because the runner of an earlier attempt died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Redelivery {
    /// Start again, after reading the current state of the resources.
    Resume,
    /// Do not start again; report the job as interrupted.
    Interrupted,
}

/// The work of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Work {
    /// Copy an image into the install registry.
    ContainerImage(SyncImage),
    /// Plan and apply a Terraform module.
    TerraformModule(ApplyTerraform),
    /// Plan and apply the module of the sandbox. Its Terraform state is separate from the states of components.
    Sandbox(ApplyTerraform),
    /// Preview and update a stack of a Pulumi program.
    Pulumi(RunPulumi),
    /// Preview and update the stack of the sandbox's Pulumi program.
    PulumiSandbox(RunPulumi),
    /// Create or update a CloudFormation stack.
    CloudformationStack(DeployStack),
    /// Install or upgrade a Helm release.
    HelmChart(InstallChart),
    /// Apply Kubernetes objects.
    KubernetesManifest(ApplyManifest),
    /// Run a program in a cluster to its end.
    KubernetesJob(RunKubernetesJob),
    /// Copy secrets into a cluster.
    CopySecrets(CopySecrets),
    /// Remove a component or the sandbox that another job deployed.
    Remove(RemovePart),
    /// Compare a component or the sandbox with what another job deployed.
    DetectDrift(DetectDrift),
    /// Execute the steps of an action.
    Action(RunAction),
    /// Build an artifact; only the build runner does this.
    Build(BuildArtifact),
    /// Look for problems that would stop the other jobs, before those jobs start.
    Preflight(CheckInstall),
    /// List what still exists of the app after a teardown.
    Leftovers(FindLeftovers),
    /// Check whether a component is healthy.
    Health(CheckHealth),
    /// Replace the runner's own program.
    Upgrade(UpgradeRunner),
}

impl Work {
    /// Returns the name of the kind in tables and messages: the kind of component, `sandbox`, `secrets`, `remove`,
    /// `detect_drift`, `action`, `build`, `preflight`, `leftovers`, `health` or `upgrade`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::ContainerImage(_) => "container_image",
            Self::TerraformModule(_) => "terraform_module",
            Self::Sandbox(_) | Self::PulumiSandbox(_) => "sandbox",
            Self::Pulumi(_) => "pulumi",
            Self::CloudformationStack(_) => "cloudformation_stack",
            Self::HelmChart(_) => "helm_chart",
            Self::KubernetesManifest(_) => "kubernetes_manifest",
            Self::KubernetesJob(_) => "job",
            Self::CopySecrets(_) => "secrets",
            Self::Remove(_) => "remove",
            Self::DetectDrift(_) => "detect_drift",
            Self::Action(_) => "action",
            Self::Build(_) => "build",
            Self::Preflight(_) => "preflight",
            Self::Leftovers(_) => "leftovers",
            Self::Health(_) => "health",
            Self::Upgrade(_) => "upgrade",
        }
    }

    /// Returns what a runner must do when the order is delivered again.
    pub const fn redelivery(&self) -> Redelivery {
        match self {
            Self::ContainerImage(_)
            | Self::TerraformModule(_)
            | Self::Sandbox(_)
            | Self::Pulumi(_)
            | Self::PulumiSandbox(_)
            | Self::CloudformationStack(_)
            | Self::HelmChart(_)
            | Self::KubernetesManifest(_)
            | Self::KubernetesJob(_)
            | Self::CopySecrets(_)
            | Self::Remove(_)
            | Self::DetectDrift(_)
            | Self::Build(_)
            | Self::Preflight(_)
            | Self::Leftovers(_)
            | Self::Health(_)
            | Self::Upgrade(_) => Redelivery::Resume,
            Self::Action(action) if action.idempotent => Redelivery::Resume,
            Self::Action(_) => Redelivery::Interrupted,
        }
    }

    /// Returns the component that the work is for, if any. The sandbox has the name `sandbox`.
    pub fn component(&self) -> Option<&ComponentName> {
        match self {
            Self::ContainerImage(work) => Some(&work.component),
            Self::TerraformModule(work) | Self::Sandbox(work) => Some(&work.component),
            Self::Pulumi(work) | Self::PulumiSandbox(work) => Some(&work.component),
            Self::CloudformationStack(work) => Some(&work.component),
            Self::HelmChart(work) => Some(&work.component),
            Self::KubernetesManifest(work) => Some(&work.component),
            Self::KubernetesJob(work) => Some(&work.component),
            Self::Remove(work) => work.what.component(),
            Self::DetectDrift(work) => work.what.component(),
            Self::Build(work) => Some(&work.component),
            Self::Health(work) => Some(&work.component),
            Self::CopySecrets(_) | Self::Action(_) | Self::Preflight(_) | Self::Leftovers(_) | Self::Upgrade(_) => None,
        }
    }

    /// Returns the name of the thing that the work changes, which the group of its order has ([`Group::thing`](crate::Group::thing)).
    pub fn changes(&self) -> String {
        match self.made_by() {
            Self::Sandbox(_) | Self::PulumiSandbox(_) => "sandbox".to_owned(),
            Self::CopySecrets(_) => "secrets".to_owned(),
            Self::Action(work) => format!("action:{}", work.action),
            Self::Build(work) => format!("build:{}", work.build),
            Self::Preflight(_) => "preflight".to_owned(),
            Self::Leftovers(_) => "leftovers".to_owned(),
            Self::Health(work) => format!("health:{}", work.component),
            Self::Upgrade(_) => "runner".to_owned(),
            Self::ContainerImage(SyncImage { component, .. })
            | Self::TerraformModule(ApplyTerraform { component, .. })
            | Self::Pulumi(RunPulumi { component, .. })
            | Self::CloudformationStack(DeployStack { component, .. })
            | Self::HelmChart(InstallChart { component, .. })
            | Self::KubernetesManifest(ApplyManifest { component, .. })
            | Self::KubernetesJob(RunKubernetesJob { component, .. }) => format!("component:{component}"),
            // INVARIANT: the work that made a part is neither a removal nor a drift check.
            Self::Remove(_) | Self::DetectDrift(_) => String::new(),
        }
    }

    /// Returns the work itself; for a removal or a drift check, the work that deployed the part.
    pub fn made_by(&self) -> &Self {
        match self {
            Self::Remove(work) => work.what.made_by(),
            Self::DetectDrift(work) => work.what.made_by(),
            other => other,
        }
    }

    /// Returns the artifact that the work needs in the install registry, if any.
    pub fn artifact(&self) -> Option<&Artifact> {
        match self {
            Self::ContainerImage(work) => Some(&work.artifact),
            Self::TerraformModule(work) | Self::Sandbox(work) => Some(&work.artifact),
            Self::Pulumi(work) | Self::PulumiSandbox(work) => Some(&work.artifact),
            Self::CloudformationStack(work) => Some(&work.artifact),
            Self::HelmChart(work) => Some(&work.artifact),
            Self::KubernetesManifest(work) => Some(&work.artifact),
            Self::KubernetesJob(work) => Some(&work.artifact),
            Self::Remove(work) => work.what.artifact(),
            Self::DetectDrift(work) => work.what.artifact(),
            Self::CopySecrets(_)
            | Self::Action(_)
            | Self::Build(_)
            | Self::Preflight(_)
            | Self::Leftovers(_)
            | Self::Health(_)
            | Self::Upgrade(_) => None,
        }
    }

    /// Returns the artifact with the name `component` that the work needs in the install registry: of the component, or
    /// of a directory that steps of the action run in.
    pub fn artifact_of(&self, component: &ComponentName) -> Option<&Artifact> {
        if let Self::Action(action) = self {
            return action.directories.iter().find(|one| one.component == *component).map(|one| &one.artifact);
        }
        self.artifact().filter(|_| self.component() == Some(component))
    }
}

/// Copies an image into the install registry. The outputs are `reference` (by digest), `repository`, `digest`, and
/// `image` with `repository`, `tag` and `digest`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncImage {
    pub component: ComponentName,
    pub artifact: Artifact,
}

/// Runs `terraform` or `tofu`: init, plan into a file, apply that file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApplyTerraform {
    pub component: ComponentName,
    pub artifact: Artifact,
    pub terraform_version: String,
    /// Input variables; string values are templates.
    #[serde(default)]
    pub vars: BTreeMap<String, Value>,
    /// The environment of the program; values are templates.
    #[serde(default)]
    pub env_vars: BTreeMap<String, String>,
    /// The contents of `.tfvars` files, in order. Each is a template.
    #[serde(default)]
    pub var_files: Vec<String>,
}

/// Runs `pulumi`: a preview that saves its plan, then an update that is constrained by that plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunPulumi {
    pub component: ComponentName,
    pub artifact: Artifact,
    /// The version of Pulumi that the config requires; empty for any version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pulumi_version: String,
    /// The configuration of the stack, by key. A key without a namespace belongs to the program's project. String values
    /// are templates.
    #[serde(default)]
    pub config: BTreeMap<String, Value>,
    /// The environment of the program; values are templates.
    #[serde(default)]
    pub env_vars: BTreeMap<String, String>,
}

/// Deploys a CloudFormation template through a change set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeployStack {
    pub component: ComponentName,
    pub artifact: Artifact,
    /// The name of the stack in the customer's account, as a template.
    pub stack_name: String,
    /// The parameters of the stack; values are templates.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// The capabilities that CloudFormation asks a caller to acknowledge, such as `CAPABILITY_NAMED_IAM`.
    #[serde(default)]
    pub capabilities: Vec<String>,
}

/// Removes a component or the sandbox: plans the removal, then executes the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemovePart {
    /// The work that deployed the component or the sandbox.
    pub what: Box<Work>,
    /// Whether resources that contain data may be destroyed.
    #[serde(default)]
    pub destroy_data: bool,
    /// Whether the app's Kyverno policies are removed from the cluster of the component, because everything that the app
    /// has deployed is removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removes_policies: bool,
}

/// The work of a drift check. It makes the plan of a deploy that deploys the part again, and applies nothing. The job has
/// the output [`super::drift::OUTPUT`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DetectDrift {
    /// The work that deployed the part.
    pub what: Box<Work>,
}

/// Executes steps in the job's box.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunAction {
    pub action: ActionName,
    pub steps: Vec<ActionStep>,
    /// The directories that steps run in. A step without one runs in the empty workspace of the job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<StepDirectory>,
    #[serde(default)]
    pub env_vars: BTreeMap<String, String>,
    /// Whether a runner may execute the steps again when the order is delivered again.
    #[serde(default)]
    pub idempotent: bool,
    /// The cluster for which the steps get a kubeconfig; absent when they get none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterOf>,
    /// The image that the steps run in, by digest in the install registry; a template; empty for the order's tool
    /// image.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
}

/// The work of an action that its terms name by digest: the parts of [`RunAction`] that a release decides, without
/// artifacts, which change with every release.
#[derive(Debug, Serialize)]
pub struct Executed<'a> {
    pub steps: &'a [ActionStep],
    /// The steps that run in a directory, by the name of the directory.
    pub directories: BTreeMap<&'a ComponentName, &'a [u32]>,
    pub env_vars: &'a BTreeMap<String, String>,
    pub idempotent: bool,
}

impl Executed<'_> {
    /// Returns the digest by which terms name what the action executes. Templates are not rendered.
    ///
    /// # Errors
    /// As [`canonical::digest`].
    pub fn digest(&self) -> Result<Digest, serde_json::Error> {
        canonical::digest(self)
    }
}

impl RunAction {
    /// Returns what the action executes.
    pub fn executed(&self) -> Executed<'_> {
        let directories = self.directories.iter().map(|one| (&one.component, one.steps.as_slice()));
        Executed {
            steps: &self.steps,
            directories: directories.collect(),
            env_vars: &self.env_vars,
            idempotent: self.idempotent,
        }
    }
}

/// The directory of a repository, or of the config, that steps run in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepDirectory {
    /// The indexes of the steps, from 0. Each of them gets a copy of the directory.
    pub steps: Vec<u32>,
    /// The component name under which the directory was built.
    pub component: ComponentName,
    pub artifact: Artifact,
}
