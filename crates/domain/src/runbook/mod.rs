//! Runs of runbooks. Each step starts a workflow, one step after the other. The first step that does not succeed ends the run,
//! and a person may resume the run at this step.

mod inputs;

use std::collections::BTreeMap;

use freehold_protocol::app_version::{Runbook, RunbookStep, StepKind};
use freehold_protocol::limits::MAX_RUNBOOK_STEPS;
use freehold_protocol::order::AskedBy;
use freehold_protocol::{AppName, Digest, InstallId, RunId, RunbookName, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use inputs::{RunInputsError, action_inputs, inputs_of_run, inputs_of_step, runbook_inputs, with_defaults};

use crate::suggestion::Known;
use crate::workflow::WorkflowState;

/// The maximum size of a run when it begins, in bytes of JSON. Later, its row grows by the reasons of failed steps and of
/// resumes, and a row has at most 400 KB.
pub const MAX_RUN_BYTES: usize = 128 * 1024;
/// The part of [`MAX_RUN_BYTES`] that every run may use for other things than its steps and inputs, such as names and ids.
const RUN_HEAD_BYTES: usize = 8 * 1024;
/// The maximum length of a step's reason in the run, in characters.
const REASON_CHARS: usize = 1000;
/// The maximum number of times that one run may be resumed, so that its row stays small.
pub const MAX_RESUMES: usize = 50;

/// A run of a runbook in one install.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    pub install: InstallId,
    pub app: AppName,
    pub runbook: RunbookName,
    /// The version that has the runbook, and that its steps deploy.
    pub version: Digest,
    pub number: u64,
    pub inputs: BTreeMap<String, String>,
    /// The digest of the request, by which another request with the same idempotency key is recognized.
    pub request_digest: Digest,
    /// Who asked for the run, or for the deploy after which it began.
    pub asked_by: AskedBy,
    /// The deploy after which the run began by itself; absent for a run that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<AfterDeploy>,
    /// Whether the steps also start while the customer's change windows are closed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
    pub created_at: Timestamp,
    pub steps: Vec<Step>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<Resumed>,
    /// Who cancelled the run, or asked to cancel it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<AskedBy>,
    pub state: RunState,
    /// The fields that only a later version of Freehold knows. They stay in the row.
    #[serde(flatten)]
    pub later_fields: BTreeMap<String, Value>,
}

/// The place of a run among the runs that begin by themselves after one deploy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfterDeploy {
    /// The deploy.
    pub workflow: WorkflowId,
    /// The index of the runbook in the deploy's list.
    pub at: u32,
    /// The serial of the last exclusive workflow of the install on which the run may build: the deploy, or a step of one
    /// of its runs. After a resume, it is the last one that had begun before.
    pub last_exclusive: u64,
}

impl AfterDeploy {
    /// Returns the cause from which the id of the run is derived. It contains a space, which no idempotency key contains,
    /// so the id differs from those of runs that callers start.
    pub fn cause(&self) -> String {
        format!("after-deploy {} {}", self.workflow, self.at)
    }
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub step: RunbookStep,
    /// The number of workflows that were started for the step.
    #[serde(default)]
    pub tries: u32,
    pub state: StepState,
}

/// The state of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum StepState {
    Waiting,
    /// The step's workflow has not ended. It may not have been started yet: its id is stored first.
    Running {
        workflow: WorkflowId,
    },
    /// The workflow succeeded. If there is none, the step had nothing to remove.
    Succeeded {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workflow: Option<WorkflowId>,
    },
    /// The workflow failed. If there is none, its start was refused.
    Failed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workflow: Option<WorkflowId>,
        reason: String,
    },
    Cancelled {
        workflow: WorkflowId,
    },
}

impl Step {
    /// Returns a step that was not started yet.
    pub const fn waiting(step: RunbookStep) -> Self {
        Self { step, tries: 0, state: StepState::Waiting }
    }
}

impl StepState {
    /// Returns the state's name.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running { .. } => "running",
            Self::Succeeded { .. } => "succeeded",
            Self::Failed { .. } => "failed",
            Self::Cancelled { .. } => "cancelled",
        }
    }

    /// Returns the workflow of the step's latest try.
    pub const fn workflow(&self) -> Option<&WorkflowId> {
        match self {
            Self::Waiting => None,
            Self::Running { workflow } | Self::Cancelled { workflow } => Some(workflow),
            Self::Succeeded { workflow } | Self::Failed { workflow, .. } => workflow.as_ref(),
        }
    }

    /// Returns why the step failed, or why it succeeded without a workflow. Empty for other states.
    pub fn reason(&self) -> &str {
        match self {
            Self::Failed { reason, .. } => reason,
            Self::Succeeded { workflow: None } => "nothing was left to remove",
            Self::Succeeded { workflow: Some(_) } | Self::Waiting | Self::Running { .. } | Self::Cancelled { .. } => "",
        }
    }
}

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RunState {
    Running,
    Succeeded { ended_at: Timestamp },
    Failed { ended_at: Timestamp },
    Cancelled { ended_at: Timestamp },
}

impl RunState {
    /// Returns the state's name.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded { .. } => "succeeded",
            Self::Failed { .. } => "failed",
            Self::Cancelled { .. } => "cancelled",
        }
    }

    /// Returns the time at which the run ended.
    pub const fn ended_at(&self) -> Option<Timestamp> {
        match self {
            Self::Running => None,
            Self::Succeeded { ended_at } | Self::Failed { ended_at } | Self::Cancelled { ended_at } => Some(*ended_at),
        }
    }
}

/// One resume of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    pub at: Timestamp,
    pub by: AskedBy,
    pub reason: String,
    /// The idempotency key of the request.
    pub cause: String,
    /// Why the run had stopped; empty after a cancel.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub after: String,
}

/// The next thing that the control plane has to do for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// The id of the next step's workflow has to be stored ([`Run::begin`]).
    Begin,
    /// The workflow of this step has to be started if it does not exist, and its end has to be recorded.
    Follow { step: usize, workflow: WorkflowId },
    /// The run has ended.
    Nothing,
}

/// The reason why a run cannot be started or resumed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunbookError {
    #[error("app `{app}` has no runbook `{runbook}` in version {number}; {}", .known.way_out("runbooks"))]
    Unknown { app: AppName, runbook: RunbookName, number: u64, known: Known },
    #[error("runbook `{0}` has no steps; add one to its file and sync the app")]
    Empty(RunbookName),
    #[error("runbook `{runbook}` has {steps} steps, more than the maximum of {MAX_RUNBOOK_STEPS}; split it")]
    LongRunbook { runbook: RunbookName, steps: usize },
    #[error(transparent)]
    Inputs(#[from] RunInputsError),
    #[error("runbook `{runbook}` makes a run of {bytes} bytes, more than the maximum of {MAX_RUN_BYTES}; split it")]
    LargeRun { runbook: RunbookName, bytes: usize },
    #[error("run `{0}` has not ended; wait for it, or cancel it with `freehold runbook cancel {0}`")]
    Open(RunId),
    #[error("run `{0}` has succeeded; start a new run with `freehold runbook run`")]
    Succeeded(RunId),
    #[error("run `{run}` was resumed {MAX_RESUMES} times already; start a new run with `freehold runbook run`")]
    ResumedTooOften { run: RunId },
}

/// Refuses a runbook that cannot be run.
///
/// # Errors
/// [`RunbookError`] for a runbook without steps, or with too many.
pub fn check_steps(runbook: &Runbook) -> Result<(), RunbookError> {
    match runbook.steps.len() {
        0 => Err(RunbookError::Empty(runbook.name.clone())),
        steps if steps > MAX_RUNBOOK_STEPS => Err(RunbookError::LongRunbook { runbook: runbook.name.clone(), steps }),
        _ => Ok(()),
    }
}

/// Refuses a runbook whose run with these inputs could begin with more than [`MAX_RUN_BYTES`], in whichever install.
///
/// # Errors
/// [`RunbookError::LargeRun`].
pub fn check_run_size(runbook: &Runbook, inputs: &BTreeMap<String, String>) -> Result<(), RunbookError> {
    let steps: Vec<Step> = runbook.steps.iter().cloned().map(Step::waiting).collect();
    let bytes = serde_json::to_vec(&(steps, inputs)).map_or(usize::MAX, |json| json.len());
    let bytes = bytes.saturating_add(RUN_HEAD_BYTES);
    if bytes > MAX_RUN_BYTES {
        return Err(RunbookError::LargeRun { runbook: runbook.name.clone(), bytes });
    }
    Ok(())
}

/// Returns what a step does, as a phrase.
pub fn phrase(step: &RunbookStep) -> String {
    match &step.does {
        StepKind::ComponentDeploy { component } if step.deploy_dependencies => {
            format!("deploy component {component} and what it depends on")
        }
        StepKind::ComponentDeploy { component } => format!("deploy component {component}"),
        StepKind::ComponentTearDown { component } => format!("remove component {component} and its dependents"),
        StepKind::Action { action } => format!("run action {action}"),
        StepKind::SandboxProvision {} | StepKind::SandboxReprovision {} if step.skip_component_deploys => {
            "deploy only the sandbox".to_owned()
        }
        StepKind::SandboxProvision {} | StepKind::SandboxReprovision {} => {
            "deploy the sandbox and the components that read its outputs".to_owned()
        }
        StepKind::SandboxDeprovision {} => "remove the sandbox".to_owned(),
    }
}

impl Run {
    /// Returns what the control plane has to do next for the run.
    pub fn next(&self) -> Next {
        if self.state != RunState::Running {
            return Next::Nothing;
        }
        let running = self.steps.iter().enumerate().find_map(|(at, step)| match &step.state {
            StepState::Running { workflow } => Some(Next::Follow { step: at, workflow: workflow.clone() }),
            StepState::Waiting
            | StepState::Succeeded { .. }
            | StepState::Failed { .. }
            | StepState::Cancelled { .. } => None,
        });
        running.unwrap_or(Next::Begin)
    }

    /// Returns the run with the id of the next step's workflow. The id is derived from the run, the step and the number of the
    /// try, so that repeated calls start one workflow.
    #[must_use]
    pub fn begin(&self) -> Self {
        let mut next = self.clone();
        let waiting = next.steps.iter_mut().enumerate().find(|(_, step)| step.state == StepState::Waiting);
        if let Some((at, step)) = waiting {
            step.tries += 1;
            let workflow = WorkflowId::derive(self.install.as_str(), &cause(&self.id, at, step.tries));
            step.state = StepState::Running { workflow };
        }
        next
    }

    /// Returns the cause from which the workflow of a step is derived.
    pub fn cause(&self, step: usize) -> String {
        cause(&self.id, step, self.steps.get(step).map_or(0, |step| step.tries))
    }

    /// Returns the run after the workflow of its running step has ended in `state`. Another workflow does not change the run.
    #[must_use]
    pub fn on_end(&self, workflow: &WorkflowId, state: &WorkflowState, now: Timestamp) -> Self {
        let ended = match state {
            WorkflowState::Pending | WorkflowState::Running { .. } => return self.clone(),
            WorkflowState::Succeeded { .. } => StepState::Succeeded { workflow: Some(workflow.clone()) },
            WorkflowState::Failed { reason, .. } => {
                StepState::Failed { workflow: Some(workflow.clone()), reason: shortened(reason) }
            }
            WorkflowState::Cancelled { .. } => StepState::Cancelled { workflow: workflow.clone() },
        };
        self.settled(workflow, ended, now)
    }

    /// Returns the run after the workflow of its running step could not be started, for `reason`.
    #[must_use]
    pub fn on_refusal(&self, workflow: &WorkflowId, reason: &str, now: Timestamp) -> Self {
        self.settled(workflow, StepState::Failed { workflow: None, reason: shortened(reason) }, now)
    }

    /// Returns the run after its running step had nothing to remove.
    #[must_use]
    pub fn on_nothing(&self, workflow: &WorkflowId, now: Timestamp) -> Self {
        self.settled(workflow, StepState::Succeeded { workflow: None }, now)
    }

    /// Returns who asks for the steps that start now, and whether these steps may start while the change windows are
    /// closed. Before a resume, this is whoever started the run. After a resume, this is whoever resumed the run last,
    /// and closed windows apply.
    pub fn asker(&self) -> (&AskedBy, bool) {
        self.resumed.last().map_or((&self.asked_by, self.now), |last| (&last.by, false))
    }

    /// Returns the run that may build on the exclusive workflow with this serial. Changes nothing in a run that was asked for.
    #[must_use]
    pub fn building_on(mut self, last_exclusive: u64) -> Self {
        if let Some(after) = &mut self.after {
            after.last_exclusive = last_exclusive;
        }
        self
    }

    /// Returns whether the request with this idempotency key has resumed the run.
    pub fn was_resumed_by(&self, cause: &str) -> bool {
        self.resumed.iter().any(|one| one.cause == cause)
    }

    fn settled(&self, workflow: &WorkflowId, ended: StepState, now: Timestamp) -> Self {
        let mut next = self.clone();
        let running = StepState::Running { workflow: workflow.clone() };
        let Some(step) = next.steps.iter_mut().find(|step| step.state == running) else { return next };
        step.state = ended;
        let (last, is_cancelled) = (step.state.clone(), next.cancelled_by.is_some());
        let is_done = next.steps.iter().all(|step| matches!(step.state, StepState::Succeeded { .. }));
        next.state = match last {
            StepState::Succeeded { .. } if is_done => RunState::Succeeded { ended_at: now },
            StepState::Succeeded { .. } if is_cancelled => RunState::Cancelled { ended_at: now },
            StepState::Succeeded { .. } | StepState::Waiting | StepState::Running { .. } => RunState::Running,
            StepState::Failed { .. } if is_cancelled => RunState::Cancelled { ended_at: now },
            StepState::Failed { .. } => RunState::Failed { ended_at: now },
            StepState::Cancelled { .. } => RunState::Cancelled { ended_at: now },
        };
        next
    }

    /// Returns the run after a request to cancel it. No further step starts. While a step runs, its workflow has to be
    /// cancelled too, and the run ends with it.
    #[must_use]
    pub fn cancel(&self, by: &AskedBy, now: Timestamp) -> Self {
        let mut next = self.clone();
        if self.state != RunState::Running || self.cancelled_by.is_some() {
            return next;
        }
        next.cancelled_by = Some(by.clone());
        if !self.steps.iter().any(|step| matches!(step.state, StepState::Running { .. })) {
            next.state = RunState::Cancelled { ended_at: now };
        }
        next
    }

    /// Returns the run with the present `state` of the workflow of its step that failed or was cancelled. If somebody
    /// has continued that workflow, and it has succeeded since, the step counts as succeeded.
    #[must_use]
    pub fn noticing(&self, workflow: &WorkflowId, state: &WorkflowState) -> Self {
        let mut next = self.clone();
        let stopped = |step: &&mut Step| {
            matches!(step.state, StepState::Failed { .. } | StepState::Cancelled { .. })
                && step.state.workflow() == Some(workflow)
        };
        if let (WorkflowState::Succeeded { .. }, Some(step)) = (state, next.steps.iter_mut().find(stopped)) {
            step.state = StepState::Succeeded { workflow: Some(workflow.clone()) };
        }
        next
    }

    /// Returns the workflow of the step at which the run stopped, if that step has one.
    pub fn stopped_by(&self) -> Option<&WorkflowId> {
        let stopped = |step: &&Step| matches!(step.state, StepState::Failed { .. } | StepState::Cancelled { .. });
        self.steps.iter().find(stopped)?.state.workflow()
    }

    /// Returns the run that continues at the first step that has not succeeded.
    ///
    /// # Errors
    /// [`RunbookError`] for a run that has not ended, has succeeded, or was resumed too often.
    pub fn resume(&self, resumed: Resumed) -> Result<Self, RunbookError> {
        match self.state {
            RunState::Running => return Err(RunbookError::Open(self.id.clone())),
            RunState::Succeeded { .. } => return Err(RunbookError::Succeeded(self.id.clone())),
            RunState::Failed { .. } | RunState::Cancelled { .. } if self.resumed.len() >= MAX_RESUMES => {
                return Err(RunbookError::ResumedTooOften { run: self.id.clone() });
            }
            RunState::Failed { .. } | RunState::Cancelled { .. } => {}
        }
        let mut next = self.clone();
        for step in &mut next.steps {
            if !matches!(step.state, StepState::Succeeded { .. }) {
                step.state = StepState::Waiting;
            }
        }
        let is_done = next.steps.iter().all(|step| matches!(step.state, StepState::Succeeded { .. }));
        let ended_at = resumed.at;
        next.resumed.push(Resumed { after: shortened(&self.failure()), ..resumed });
        next.cancelled_by = None;
        next.state = if is_done { RunState::Succeeded { ended_at } } else { RunState::Running };
        Ok(next)
    }

    /// Returns the step that failed or was refused, and its reason. Empty when there is none.
    pub fn failure(&self) -> String {
        let failed = self.steps.iter().enumerate().find_map(|(at, step)| {
            let is_failed = matches!(step.state, StepState::Failed { .. });
            is_failed.then(|| format!("step {} ({}): {}", at + 1, phrase(&step.step), step.state.reason()))
        });
        failed.unwrap_or_default()
    }
}

fn shortened(reason: &str) -> String {
    reason.chars().take(REASON_CHARS).collect()
}

fn cause(run: &RunId, step: usize, tries: u32) -> String {
    format!("runbook {run} {step} {tries}")
}

#[cfg(test)]
mod tests;
