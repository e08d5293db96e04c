//! Orders: what the control plane asks of one runner.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::app_version::Input;
use crate::contract::OrderTerms;
use crate::envelope::Payload;
use crate::preflight::CheckInstall;
use crate::provenance::Provenance;
use crate::{
    ActionName, BuildId, ComponentName, Digest, Group, InstallId, JobId, RoleKey, TenantName, Timestamp, WorkflowId,
};

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
    /// When the order is worth nothing: it is not started, and a running attempt is stopped.
    pub not_after: Timestamp,
    /// The longest that one attempt may run, in seconds.
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
    /// The terms of the version that the work belongs to; builds belong to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<Box<OrderTerms>>,
}

impl Payload for Order {
    const TYPE: &'static str = "application/vnd.freehold.order.v1+json";
}

/// Asks the holder of a job to stop it, or a runner not to start it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    pub tenant: TenantName,
    pub install: InstallId,
    pub job: JobId,
    /// The dispatch that is meant; a later one is not touched.
    pub dispatch: u32,
    /// When set, only the attempt with this receive count is meant: the loser of two equal fences, or a stale one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive: Option<u32>,
    /// When set, only this runner is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<crate::KeyId>,
    pub issued_at: Timestamp,
    pub not_after: Timestamp,
}

impl Payload for Cancel {
    const TYPE: &'static str = "application/vnd.freehold.cancel.v1+json";
}

/// Which role a job runs under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Provision,
    Maintenance,
    Deprovision,
    BreakGlass,
}

impl Mode {
    /// Returns the word that role names, parameters and messages use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Maintenance => "maintenance",
            Self::Deprovision => "deprovision",
            Self::BreakGlass => "break_glass",
        }
    }
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
    /// Create or update a CloudFormation stack.
    CloudformationStack(DeployStack),
    /// Execute the steps of an action.
    Action(RunAction),
    /// Make an artifact; for the build runner only.
    Build(BuildArtifact),
    /// Look for what would stop the rest, before the rest.
    Preflight(CheckInstall),
}

impl Work {
    /// Returns the component kind, `action`, `build` or `preflight`, as tables and messages print it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::ContainerImage(_) => "container_image",
            Self::TerraformModule(_) => "terraform_module",
            Self::CloudformationStack(_) => "cloudformation_stack",
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
            | Self::CloudformationStack(_)
            | Self::Build(_)
            | Self::Preflight(_) => Redelivery::Resume,
            Self::Action(action) if action.idempotent => Redelivery::Resume,
            Self::Action(_) => Redelivery::Interrupted,
        }
    }

    /// Returns the component that the work is for, if it is for one.
    pub const fn component(&self) -> Option<&ComponentName> {
        match self {
            Self::ContainerImage(work) => Some(&work.component),
            Self::TerraformModule(work) => Some(&work.component),
            Self::CloudformationStack(work) => Some(&work.component),
            Self::Build(work) => Some(&work.component),
            Self::Action(_) | Self::Preflight(_) => None,
        }
    }

    /// Returns the artifact that the work needs in the install registry, if any.
    pub const fn artifact(&self) -> Option<&Artifact> {
        match self {
            Self::ContainerImage(work) => Some(&work.artifact),
            Self::TerraformModule(work) => Some(&work.artifact),
            Self::CloudformationStack(work) => Some(&work.artifact),
            Self::Action(_) | Self::Build(_) | Self::Preflight(_) => None,
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
    /// What CloudFormation asks to be acknowledged, such as `CAPABILITY_NAMED_IAM`.
    #[serde(default)]
    pub capabilities: Vec<String>,
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
}

/// One step of an action. Exactly one of `command` and `inline_contents` is not empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActionStep {
    pub name: String,
    /// A shell command line; a template.
    #[serde(default)]
    pub command: String,
    /// A script's text, run as a file; a template.
    #[serde(default)]
    pub inline_contents: String,
    /// Environment of the step; values are templates.
    #[serde(default)]
    pub env_vars: BTreeMap<String, String>,
}

/// Makes one artifact and pushes it to the tenant registry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BuildArtifact {
    pub build: BuildId,
    pub component: ComponentName,
    pub package: Package,
    pub source: Source,
    /// What the app version says of the build beside its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<Recipe>,
    /// The tenant registry's repository name.
    pub repository: String,
}

/// What a build follows beside its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Recipe {
    /// A Dockerfile of the source's directory.
    Dockerfile {
        /// Relative to the source's directory.
        dockerfile: String,
        /// Values of `ARG`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        args: BTreeMap<String, String>,
        /// A stage; empty for the last.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        target: String,
    },
    /// The text of a manifest, a template.
    Manifest { text: String },
    /// The same, gzipped and in base64: how an order carries a long one.
    PackedManifest { gzip: String },
    /// A directory that Kustomize makes a manifest from, and what it is told beside.
    Kustomization {
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        options: BTreeMap<String, Value>,
    },
    /// An image that one of these signed; with nobody in the list there is no such image.
    SignedImage { signers: Vec<Signer> },
}

/// Who may have signed an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Signer {
    /// Whoever holds the private half of a key.
    Key {
        /// In PEM form.
        public_key: String,
    },
    /// Whoever an issuer vouched for when he signed.
    Keyless {
        issuer: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        subject: String,
        /// A pattern, instead of the subject.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        subject_regexp: String,
    },
}

/// What form a build gives its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Package {
    /// An image copied as it is.
    Image,
    /// A Terraform module: one tarred layer of [`MODULE_LAYER`].
    TerraformModule,
    /// A CloudFormation template: one layer of [`TEMPLATE_LAYER`], the template's bytes.
    CloudformationTemplate,
    /// A Helm chart with its dependencies, as Helm itself stores it: a config of [`CHART_CONFIG`], `Chart.yaml` as JSON,
    /// and one layer of [`CHART_LAYER`].
    HelmChart,
    /// An image made by a Dockerfile.
    DockerImage,
    /// Kubernetes objects: one layer of [`MANIFEST_LAYER`], the template's text, or of [`KUSTOMIZATION_LAYER`].
    KubernetesManifest,
}

impl Package {
    /// Returns what it is, as messages say it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Image => "an image",
            Self::TerraformModule => "a Terraform module",
            Self::CloudformationTemplate => "a CloudFormation template",
            Self::HelmChart => "a Helm chart",
            Self::DockerImage => "an image of a Dockerfile",
            Self::KubernetesManifest => "a Kubernetes manifest",
        }
    }
}

/// Media type of a module layer: a gzipped tar with sorted entries, zero times and owners.
pub const MODULE_LAYER: &str = "application/vnd.freehold.terraform.module.v1.tar+gzip";
/// Media type of a template layer.
pub const TEMPLATE_LAYER: &str = "application/vnd.freehold.cloudformation.template.v1";
/// Artifact type of a module (OCI image manifest 1.1, `artifactType`).
pub const MODULE_ARTIFACT: &str = "application/vnd.freehold.terraform.module.v1";
/// Artifact type of a template.
pub const TEMPLATE_ARTIFACT: &str = "application/vnd.freehold.cloudformation.template.v1+artifact";
/// Media type of a chart's config (Helm, "Use OCI-based registries").
pub const CHART_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
/// Media type of a chart's layer: a gzipped tar with the chart below its name.
pub const CHART_LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
/// Media type of a manifest's layer: YAML, which is a template.
pub const MANIFEST_LAYER: &str = "application/vnd.freehold.kubernetes.manifest.v1+yaml";
/// Artifact type of a manifest.
pub const MANIFEST_ARTIFACT: &str = "application/vnd.freehold.kubernetes.manifest.v1";
/// Media type of a kustomization's layer, packed as a module is: `kustomization/` with the directory, and
/// `options.json` with what the config says beside it.
pub const KUSTOMIZATION_LAYER: &str = "application/vnd.freehold.kubernetes.kustomization.v1.tar+gzip";
/// Artifact type of a kustomization.
pub const KUSTOMIZATION_ARTIFACT: &str = "application/vnd.freehold.kubernetes.kustomization.v1";

/// Where a build takes its input from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Source {
    /// A directory of the vendor's machine, packed at sync: object `sources/<hex>.tar.gz` of the tenant bucket.
    Directory { digest: Digest },
    /// A git repository at a commit (40 hex digits); `directory` is where in it.
    Git {
        url: String,
        commit: String,
        #[serde(default)]
        directory: String,
        /// The branch or tag that was the commit's name at sync; empty when the config names the commit.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        branch: String,
    },
    /// An image in any OCI registry: `host/name:tag` or `host/name@sha256:...`.
    Image { reference: String },
    /// An image in a private ECR registry of the vendor, read with a role.
    EcrImage { reference: String, region: String, role_arn: String },
    /// A chart of a Helm chart repository; an empty version means the newest at build.
    Chart { repo_url: String, chart: String, version: String },
    /// Nothing but the app version itself, which holds all of it.
    Version,
}

impl Source {
    /// Returns what it is, as messages say it.
    pub const fn words(&self) -> &'static str {
        match self {
            Self::Directory { .. } => "a directory",
            Self::Git { .. } => "a git repository",
            Self::Image { .. } => "an image",
            Self::EcrImage { .. } => "an image of a private registry",
            Self::Chart { .. } => "a chart repository",
            Self::Version => "the app version itself",
        }
    }

    /// Returns the source without what its commit was called: the same input has the same pinned source.
    #[must_use]
    pub fn pinned(&self) -> Self {
        match self.clone() {
            Self::Git { url, commit, directory, branch: _ } => {
                Self::Git { url, commit, directory, branch: String::new() }
            }
            other => other,
        }
    }
}

/// An OCI object in the tenant registry, with all that a runner needs to know what it lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Artifact {
    /// The digest of its top manifest or index.
    pub digest: Digest,
    /// The media type of its top manifest or index.
    pub media_type: String,
    /// Manifests below an index, then the top one: the order in which they are pushed.
    pub manifests: Vec<Descriptor>,
    /// Every blob that the manifests name, configs included, each once.
    pub blobs: Vec<Descriptor>,
    /// Who made it, from what and when; a runner uses no artifact without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Value>"))]
    pub provenance: Option<Box<Provenance>>,
}

impl Artifact {
    /// Returns the bytes of all blobs together.
    pub fn blob_bytes(&self) -> u64 {
        self.blobs.iter().map(|blob| blob.size).sum()
    }
}

/// One content-addressed part of an artifact (OCI content descriptor).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    pub media_type: String,
    pub digest: Digest,
    /// In bytes.
    pub size: u64,
}
