//! Orders: the messages in which the control plane asks one runner to run or to cancel a job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::app_version::{Input, Secret};
use crate::approval::{ApprovalRule, OrderApproval};
use crate::contract::OrderTerms;
use crate::envelope::{Delegated, Payload};
use crate::flag::is_false;
use crate::policy::OrderPolicy;
use crate::preflight::CheckInstall;
use crate::{
    ActionName, ComponentName, Digest, Envelope, Group, InstallId, JobId, KeyId, KeyUse, RoleKey, TenantName,
    Timestamp, WorkflowId, canonical,
};

mod asked_by;
mod build_artifact;
mod demands;
mod head;
pub mod health;
mod kept_outputs;
mod kubernetes;
pub mod leftovers;
mod retirement;
mod secrets;
pub mod upgrade;

use self::health::CheckHealth;
use self::leftovers::FindLeftovers;

pub use self::asked_by::{AskedBy, CallerArn, CallerArnError, Principal};
pub use self::build_artifact::BuildArtifact;
pub use self::demands::Demands;
pub use self::head::{CancelHead, OrderHead};
pub use self::kept_outputs::KeptOutputs;
pub use self::kubernetes::{ApplyManifest, ClusterOf, InstallChart, JobImage, RunKubernetesJob};
pub use self::retirement::Retired;
pub use self::secrets::{CopySecrets, SecretCopy};
pub use self::upgrade::{SignedSums, UpgradeRunner};

pub use crate::app_version::ActionStep;
pub use crate::artifact::{Artifact, Descriptor};
pub use crate::build::{
    CHART_CONFIG, CHART_LAYER, KUSTOMIZATION_ARTIFACT, KUSTOMIZATION_LAYER, MANIFEST_ARTIFACT, MANIFEST_LAYER,
    MODULE_ARTIFACT, MODULE_LAYER, PROGRAM_ARTIFACT, PROGRAM_LAYER, Package, Recipe, STEP_ARTIFACT, STEP_LAYER, Signer,
    Source, TEMPLATE_ARTIFACT, TEMPLATE_LAYER,
};
pub use crate::mode::Mode;

/// The signed message that asks for one try at a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub tenant: TenantName,
    pub install: InstallId,
    pub workflow: WorkflowId,
    pub job: JobId,
    /// The number of this dispatch of the job, from 1. It is the first part of the attempt's fence.
    pub dispatch: u32,
    /// The group of the job; also the SQS message group.
    pub group: Group,
    /// The serial: equal for all jobs of a workflow, and higher in each later workflow of the install. A runner refuses
    /// an order with a lower serial than it has accepted in the same group.
    pub serial: u64,
    pub issued_at: Timestamp,
    /// The time until which the order waits to be started. The runner gives a later one back, and the job gets a new order.
    /// An attempt that starts in time may use the whole `timeout_secs`. Absent in orders of earlier versions, which wait
    /// until `not_after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_by: Option<Timestamp>,
    /// The time when the order expires: the runner stops a running attempt, and starts none again.
    pub not_after: Timestamp,
    /// The time limit of one attempt, in seconds.
    pub timeout_secs: u32,
    pub mode: Mode,
    /// The named role that the job runs under, instead of the role of its mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleKey>,
    /// Who asked for the job's workflow, as the control plane says; absent in orders of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<AskedBy>,
    /// What was asked for and why, when the workflow was continued after it had ended: `asked_by` says by whom. As the
    /// control plane says; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_why: Option<String>,
    /// Whether who asked wants the work to start also while the customer's change windows are closed. The runner lets only
    /// those pass whom the customer names.
    #[serde(default, skip_serializing_if = "is_false")]
    pub now: bool,
    /// The key of the runner that the order was made for; absent in orders of earlier versions. A runner with another key
    /// takes the order only if the install's audit chain shows no attempt at it by this delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<KeyId>,
    pub redelivery: Redelivery,
    /// Whether the job ends after its plan when the plan changes nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub skip_noops: bool,
    pub work: Work,
    /// The `.nuon` tree: the values for the templates of the work. Only the runner adds the values of secrets.
    pub context: Value,
    /// The app's sensitive inputs, without their titles and descriptions. `context` does not contain the values that
    /// the customer or the vendor gave: the runner adds them. The runner must not show any value of a sensitive input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitive_inputs: Vec<Input>,
    /// The digests of the vendor's sealed values, by input. The values are attached to the message
    /// ([`crate::Envelope::attached`]), so that the order that is kept as a proof does not contain them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sealed_inputs: BTreeMap<String, Digest>,
    /// The app's secrets, without their titles and descriptions. The runner reads the values, adds them to the tree,
    /// and never shows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Secret>,
    /// The sensitive outputs of the parts that the templates of the work may read, and of the work's own part. The runner
    /// reads the values of the other parts, adds them to the tree, and never shows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_outputs: Vec<KeptOutputs>,
    /// The image whose root file system the programs of the work see; absent for that of the runner's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_image: Option<Box<ToolImage>>,
    /// The policies of the app version that guard the work. The runner asks them after the plan and before the apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<OrderPolicy>,
    /// Whether somebody at the vendor has to approve the plan; absent when nobody has to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRule>,
    /// The plan to apply, which the runner has made for an earlier order of the job, and who approved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Box<OrderApproval>>,
    /// What a runner has to know to do the order as it is meant ([`OrderHead`]).
    #[serde(default, skip_serializing_if = "Demands::is_empty")]
    pub must_understand: Demands,
    /// The terms of the app version that the work belongs to; absent for builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<Box<OrderTerms>>,
    /// The signed [`crate::audit::Receipt`] for the newest audit record that the control plane knows of; absent before the
    /// first one, and for builds. The runner stores it in the customer's bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Box<Envelope>>,
}

impl Payload for Order {
    const TYPE: &'static str = "application/vnd.freehold.order.v1+json";
}

impl Delegated for Order {
    const USE: KeyUse = KeyUse::Orders;
}

/// The signed message that asks a runner to stop a job, or not to start it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    pub tenant: TenantName,
    pub install: InstallId,
    pub job: JobId,
    /// The number of the dispatch to cancel. Later dispatches of the job are not affected.
    pub dispatch: u32,
    /// When present, only the attempt with this receive count is cancelled, such as a stale attempt, or the second of
    /// two attempts with the same fence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive: Option<u32>,
    /// When present, only this runner stops the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<KeyId>,
    /// Who asked for the cancel, as the control plane says; absent when nobody did, and in messages of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<AskedBy>,
    /// Why, in the words of who asked; absent without a reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_why: Option<String>,
    pub issued_at: Timestamp,
    pub not_after: Timestamp,
}

impl Payload for Cancel {
    const TYPE: &'static str = "application/vnd.freehold.cancel.v1+json";
}

impl Delegated for Cancel {
    const USE: KeyUse = KeyUse::Cancels;
}

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
    /// Execute the steps of an action.
    Action(RunAction),
    /// Build an artifact; only the build runner does this.
    Build(BuildArtifact),
    /// Look for problems that would stop the other jobs, before those jobs start.
    Preflight(CheckInstall),
    /// List what still exists of the app after a teardown.
    Leftovers(FindLeftovers),
    /// Ask whether a component is healthy.
    Health(CheckHealth),
    /// Replace the runner's own program.
    Upgrade(UpgradeRunner),
}

impl Work {
    /// Returns the name of the kind in tables and messages: the kind of component, `sandbox`, `secrets`, `remove`,
    /// `action`, `build`, `preflight`, `leftovers`, `health` or `upgrade`.
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
            Self::Build(work) => Some(&work.component),
            Self::Health(work) => Some(&work.component),
            Self::CopySecrets(_) | Self::Action(_) | Self::Preflight(_) | Self::Leftovers(_) | Self::Upgrade(_) => None,
        }
    }

    /// Returns the name of the thing that the work changes, which the group of its order has ([`Group::thing`]).
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
            // INVARIANT: the work that made a part is not a removal.
            Self::Remove(_) => String::new(),
        }
    }

    /// Returns the work itself; for a removal, the work that deployed the part to remove.
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
            Self::Pulumi(work) | Self::PulumiSandbox(work) => Some(&work.artifact),
            Self::CloudformationStack(work) => Some(&work.artifact),
            Self::HelmChart(work) => Some(&work.artifact),
            Self::KubernetesManifest(work) => Some(&work.artifact),
            Self::KubernetesJob(work) => Some(&work.artifact),
            Self::Remove(work) => work.what.artifact(),
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

/// The image of a component, in which a job runs its programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolImage {
    pub component: ComponentName,
    pub artifact: Artifact,
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
    /// The version of Pulumi that the config asks for; empty for any.
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

/// What an action executes, as its terms name it by digest: the parts of [`RunAction`] that a release decides, without
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
