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
use crate::{
    ComponentName, Digest, Envelope, Group, InstallId, JobId, KeyId, KeyUse, RoleKey, TenantName, Timestamp, WorkflowId,
};

mod approval_subject;
mod build_artifact;
mod demands;
pub mod drift;
mod head;
pub mod health;
mod kept_outputs;
mod kubernetes;
pub mod leftovers;
pub mod policy_scope;
mod retirement;
mod secrets;
pub mod tags;
pub mod upgrade;
mod work;

pub use self::approval_subject::ApprovalSubject;
pub use self::build_artifact::BuildArtifact;
pub use self::demands::Demands;
pub use self::head::{CancelHead, OrderHead};
pub use self::kept_outputs::KeptOutputs;
pub use self::kubernetes::{ApplyManifest, ClusterOf, InstallChart, JobImage, RunKubernetesJob};
pub use self::retirement::Retired;
pub use self::secrets::{CopySecrets, SecretCopy};
pub use self::upgrade::{SignedSums, UpgradeRunner};
pub use self::work::{
    ApplyTerraform, DeployStack, DetectDrift, Executed, Redelivery, RemovePart, RunAction, RunPulumi, StepDirectory,
    SyncImage, Work,
};

pub use crate::app_version::ActionStep;
pub use crate::approval::{AskedBy, CallerArn, CallerArnError, Principal};
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
    /// The time until which the order waits to be started. After this time, the runner gives the order back, and the
    /// job gets a new order. An attempt that starts in time may use the whole `timeout_secs`. Absent in orders of
    /// earlier versions, which wait until `not_after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_by: Option<Timestamp>,
    /// The time when the order expires: the runner stops a running attempt, and starts no further attempt.
    pub not_after: Timestamp,
    /// The time limit of one attempt, in seconds.
    pub timeout_secs: u32,
    pub mode: Mode,
    /// The named role that the job runs under, instead of the role of its mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleKey>,
    /// Who asked for the job's workflow, as the control plane states; absent in orders of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<AskedBy>,
    /// Who asked, instead of `asked_by`, if a member or a pipeline did ([`AskedBy::in_fields`]): a runner of the version
    /// before ignores the field, and states that nobody is known to have asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<AskedBy>,
    /// The continuation of the workflow after it had ended, and the reason for it, as the control plane states:
    /// `asked_by` is the person or program that asked for it. Absent for a workflow that was not continued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_why: Option<String>,
    /// Whether the caller asked to start the work also while the customer's change windows are closed. The runner
    /// permits this only to callers whom the customer names.
    #[serde(default, skip_serializing_if = "is_false")]
    pub now: bool,
    /// The key of the runner that the order was made for; absent in orders of earlier versions. A runner with another key
    /// takes the order only if the install's audit chain does not show that another runner handled the same delivery,
    /// or a later order or a cancel of the job.
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
    /// ([`crate::Envelope::attached`]), so that the order that is stored as a proof does not contain them.
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
    /// The policies of the app version that guard the work. The runner evaluates them after the plan and before the
    /// apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<OrderPolicy>,
    /// Whether somebody at the vendor has to approve the plan; absent when nobody has to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRule>,
    /// The plan to apply, which the runner has made for an earlier order of the job, and who approved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Box<OrderApproval>>,
    /// The features that a runner has to know to execute the order correctly ([`OrderHead`]).
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

impl Order {
    /// Returns who asked for the job's workflow, whichever field has it.
    pub fn asked_by(&self) -> Option<&AskedBy> {
        self.asker.as_ref().or(self.asked_by.as_ref())
    }
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
    /// The runner that has the attempt, as far as the control plane knows; absent when it knows of none. Another runner
    /// leaves the message in the queue for this one. If `receive` is present, it does nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<KeyId>,
    /// Who asked for the cancel, as the control plane states; absent when nobody did, and in messages of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<AskedBy>,
    /// Who asked, instead of `asked_by`, as in [`Order::asker`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<AskedBy>,
    /// The reason, in the words of the person who asked; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_why: Option<String>,
    pub issued_at: Timestamp,
    pub not_after: Timestamp,
}

impl Cancel {
    /// Returns who asked for the cancel, whichever field has it.
    pub fn asked_by(&self) -> Option<&AskedBy> {
        self.asker.as_ref().or(self.asked_by.as_ref())
    }
}

impl Payload for Cancel {
    const TYPE: &'static str = "application/vnd.freehold.cancel.v1+json";
}

impl Delegated for Cancel {
    const USE: KeyUse = KeyUse::Cancels;
}

/// The image of a component, in which a job runs its programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolImage {
    pub component: ComponentName,
    pub artifact: Artifact,
}
