//! The input of the deploy planner, and its errors.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::{AppVersion, Component};
use freehold_protocol::{ActionName, ComponentName, Digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::teardown::{Standing, TeardownError};
use crate::build::Build;
use crate::deployability::Undeployable;
use crate::drift::Drift;
use crate::runs_as::{RoleNotAgreed, UnknownRole};
use crate::sandbox::SandboxReads;
use crate::sensitive_outputs::{SensitiveOutputs, with_digests};
use crate::suggestion::Known;
use crate::toggles::Dependent;

/// The state of a component, or of the sandbox, that is deployed or for which an unsuccessful deploy may have created
/// resources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deployed {
    pub component: ComponentName,
    pub fingerprint: Digest,
    pub artifact: Digest,
    pub version: Digest,
    pub job: freehold_protocol::JobId,
    pub at: freehold_protocol::Timestamp,
    /// The serial of the workflow that deployed the part; 0 in records of earlier versions.
    #[serde(default)]
    pub serial: u64,
    #[serde(default)]
    pub outputs: BTreeMap<String, Value>,
    /// The sensitive outputs, without their values; absent when the part has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitive: Option<SensitiveOutputs>,
    /// The digest of the sandbox outputs that the component read ([`SandboxReads::digest`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Digest>,
    /// Whether a later job of the part did not succeed and may have changed the part before it ended. Then the part may
    /// differ from this record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The job after which the part was first partial; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_by: Option<PartialBy>,
    /// Whether no deploy of the part has succeeded. The record then names the last deploy that may have created
    /// resources of the part, so that a teardown can remove it. A deploy treats such a part as not deployed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attempted: bool,
    /// The workflow that continued without the part, and who asked for it; absent once the part is deployed again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<SkippedBy>,
    /// The drift that checks found; absent before the first check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
}

/// The workflow that continued without a deployed part, because a person asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedBy {
    pub workflow: freehold_protocol::WorkflowId,
    pub by: freehold_protocol::order::AskedBy,
    pub reason: String,
    pub at: freehold_protocol::Timestamp,
}

impl Deployed {
    /// Returns the outputs by name, with the keyed digest in place of each sensitive value.
    pub fn outputs_with_digests(&self) -> BTreeMap<String, Value> {
        let none = BTreeMap::new();
        with_digests(&self.outputs, self.sensitive.as_ref().map_or(&none, |sensitive| &sensitive.digests))
    }
}

/// The job after which a deployed part may differ from its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialBy {
    pub workflow: freehold_protocol::WorkflowId,
    pub job: freehold_protocol::JobId,
    /// The time at which the job ended.
    pub at: freehold_protocol::Timestamp,
    /// Whether the job was to remove the part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removes: bool,
}

/// The reason why a workflow cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("{} has no artifact; run `freehold build {app}` and deploy again", part(.component))]
    NotBuilt { component: ComponentName, app: String },
    #[error(
        "action `{action}` has a step whose directory `{component}` has no artifact; run `freehold build {app}` with the \
         version that has this action, and try again"
    )]
    StepNotBuilt { app: String, action: ActionName, component: ComponentName },
    #[error("{0}")]
    SandboxLacks(String),
    #[error("app `{app}` has no component `{component}`; {}", .known.way_out("components"))]
    UnknownComponent { app: String, component: ComponentName, known: Known },
    #[error("app `{app}` has no action `{action}`; {}", .known.way_out("actions"))]
    UnknownAction { app: String, action: ActionName, known: Known },
    #[error(transparent)]
    UnknownRole(#[from] UnknownRole),
    #[error(transparent)]
    RoleNotAgreed(#[from] RoleNotAgreed),
    #[error("app `{app}` cannot be deployed yet: {}", list_undeployable(.found))]
    NotDeployable { app: String, found: Vec<Undeployable> },
    #[error("component `{0}` is switched off in this install; switch it on with `freehold install toggles`")]
    Off(ComponentName),
    #[error("{0}")]
    NeedsOff(Dependent),
    #[error(
        "component `{off}` is switched off and cannot be removed while component `{component}` of an earlier version \
         needs it; remove both with `freehold teardown --component {off}`"
    )]
    StillNeeded { component: ComponentName, off: ComponentName },
    #[error(transparent)]
    Removal(#[from] TeardownError),
    #[error("value cannot be written as JSON: {0}")]
    Unwritable(String),
}

fn part(name: &ComponentName) -> String {
    if name.is_sandbox() { "the sandbox".to_owned() } else { format!("component `{name}`") }
}

fn list_undeployable(found: &[Undeployable]) -> String {
    const SHOWN: usize = 5;
    let mut shown: Vec<String> = found.iter().take(SHOWN).map(ToString::to_string).collect();
    if found.len() > SHOWN {
        shown.push(format!("and {} more", found.len() - SHOWN));
    }
    shown.join(", ")
}

/// The input of the deploy planner.
#[derive(Debug, Clone, Copy)]
pub struct DeployInput<'a> {
    pub version: &'a AppVersion,
    pub builds: &'a BTreeMap<ComponentName, Build>,
    /// The resolved values of the inputs, by name.
    pub inputs: &'a BTreeMap<String, Value>,
    pub secrets: SecretsState<'a>,
    pub deployed: &'a BTreeMap<ComponentName, Deployed>,
    /// The components that a check found healthy after their last deploy. Only components with a gate matter here.
    pub healthy: &'a BTreeSet<ComponentName>,
    pub toggles: TogglesState<'a>,
    /// The sandbox outputs that the templates of each component need to be rendered. The caller finds them by parsing
    /// the templates.
    pub required: &'a BTreeMap<ComponentName, BTreeSet<String>>,
    /// The serial of the install's licence; `None` without a licence.
    pub licence: Option<u64>,
    pub serial: u64,
}

impl DeployInput<'_> {
    /// Returns the sandbox outputs that a component reads.
    pub(super) fn reads(&self, component: &Component) -> SandboxReads {
        let required = self.required.get(&component.name).cloned().unwrap_or_default();
        SandboxReads { outputs: component.sandbox_reads(), required }
    }

    /// Returns whether deploying a part again would change something.
    pub(super) fn is_changed(&self, component: &Component, fingerprint: &Digest) -> Result<bool, PlanError> {
        let Some(live) = self.deployed.get(&component.name) else { return Ok(true) };
        let sandbox = self.deployed.get(&ComponentName::sandbox());
        let outputs = sandbox.map(Deployed::outputs_with_digests).unwrap_or_default();
        let read = self.reads(component).digest(&outputs).map_err(|error| PlanError::Unwritable(error.to_string()))?;
        let is_behind = live.partial || live.skipped.is_some() || self.is_behind(component, live);
        Ok(live.fingerprint != *fingerprint || live.sandbox != read || is_behind)
    }

    /// Returns whether a dependency was deployed by a later workflow than the component. Then the component failed in
    /// that workflow, or the workflow did not reach it.
    fn is_behind(&self, component: &Component, live: &Deployed) -> bool {
        let mut dependencies = component.dependencies.iter().filter_map(|name| self.deployed.get(name));
        dependencies.any(|dependency| dependency.serial > live.serial)
    }
}

/// The control plane's knowledge about the secrets of an install: digests, never values.
#[derive(Debug, Clone, Copy)]
pub struct SecretsState<'a> {
    /// The keyed digest of each secret that has a value, as the runner last reported it.
    pub digests: &'a BTreeMap<String, Digest>,
    /// The copies in the cluster; `None` before secrets were copied.
    pub copied: Option<Copied<'a>>,
}

/// The copies of secrets in a cluster.
#[derive(Debug, Clone, Copy)]
pub struct Copied<'a> {
    /// The fingerprint of the copies that the last deploy asked for.
    pub fingerprint: &'a Digest,
    /// Whether the cluster may have copies that the last deploy did not ask for.
    pub others: bool,
}

impl SecretsState<'static> {
    /// Returns the state of an install without secrets.
    pub const fn none() -> Self {
        static NONE: BTreeMap<String, Digest> = BTreeMap::new();
        Self { digests: &NONE, copied: None }
    }
}

/// The toggles of an install, and the deployed parts.
#[derive(Debug, Clone, Copy)]
pub struct TogglesState<'a> {
    /// The components of the version that the install leaves out.
    pub off: &'a BTreeSet<ComponentName>,
    /// The components that the vendor switched on. A component that is on by default is not among them.
    pub on: &'a BTreeSet<ComponentName>,
    /// All parts of the install, also those that were only attempted. May be empty if no component of `off` is there.
    pub there: &'a [Standing<'a>],
}

impl TogglesState<'static> {
    /// Returns the state of an install that has all components.
    pub const fn none() -> Self {
        static NONE: BTreeSet<ComponentName> = BTreeSet::new();
        Self { off: &NONE, on: &NONE, there: &[] }
    }
}
