//! The state to restore after a failed deploy: the former inputs if the deploy changed nothing, and everything that ran
//! before if the deploy was verified.

use std::collections::BTreeMap;

use freehold_protocol::WorkflowId;
use serde_json::Value;

use super::verification::{Before, MAX_REASON_CHARS, RollBack, RolledBack};
use super::{NodeState, Request, Workflow, WorkflowState};

impl Workflow {
    /// Returns what ran before a verified deploy, if it has to be deployed again: the deploy failed after it had
    /// started a job, nobody cancelled it, and its roll back was neither started nor refused.
    pub fn to_roll_back(&self) -> Option<&Before> {
        let has_failed = matches!(self.state, WorkflowState::Failed { .. }) && !self.never_started();
        match &self.roll_back {
            RollBack::Verified { before, followed: None } if has_failed && self.cancel_requested.is_none() => {
                Some(before)
            }
            RollBack::Verified { .. } | RollBack::None | RollBack::Of { .. } => None,
        }
    }

    /// Returns the id of the workflow that rolls this one back. The cause of the id contains a space, which no
    /// idempotency key contains, so the id differs from those of workflows that callers start.
    pub fn roll_back_id(&self) -> WorkflowId {
        WorkflowId::derive(self.install.as_str(), &format!("roll-back {}", self.id))
    }

    /// Returns the field `roll_back` of the workflow that rolls this one back.
    pub fn rolled_back_as(&self) -> RollBack {
        let reason = match &self.state {
            WorkflowState::Failed { reason, .. } => reason.chars().take(MAX_REASON_CHARS).collect(),
            WorkflowState::Pending
            | WorkflowState::Running { .. }
            | WorkflowState::Succeeded { .. }
            | WorkflowState::Cancelled { .. } => String::new(),
        };
        RollBack::Of { workflow: self.id.clone(), reason }
    }

    /// Returns the verified deploy after something followed its failure. Nothing needs the former inputs any more.
    #[must_use]
    pub fn followed_by(&self, what: RolledBack) -> Self {
        let mut next = self.clone();
        if let RollBack::Verified { before, followed } = &mut next.roll_back {
            *followed = Some(what);
            before.inputs.clear();
        }
        next
    }

    /// Returns why the jobs of the workflow run, if a person continued it or if it is a roll back.
    pub fn why(&self) -> Option<String> {
        if let Some(again) = self.again.last() {
            return Some(again.why());
        }
        match &self.roll_back {
            RollBack::Of { workflow, reason } => Some(format!("roll back of {workflow}: {reason}")),
            RollBack::None | RollBack::Verified { .. } => None,
        }
    }

    /// Returns whether no node of the workflow has started a job.
    pub fn never_started(&self) -> bool {
        self.nodes.iter().all(|node| matches!(node.state, NodeState::Waiting | NodeState::Skipped { .. }))
    }

    /// Returns the former values of the inputs that the install has to get back, because the workflow ended before its
    /// first job.
    pub fn inputs_to_restore(&self) -> Option<&BTreeMap<String, Value>> {
        match (&self.request, &self.state) {
            (Request::Deploy { former_inputs, .. }, WorkflowState::Failed { .. } | WorkflowState::Cancelled { .. })
                if !former_inputs.is_empty() && self.never_started() =>
            {
                Some(former_inputs)
            }
            (
                Request::Deploy { .. }
                | Request::Action { .. }
                | Request::Teardown { .. }
                | Request::Upgrade { .. }
                | Request::DetectDrift { .. }
                | Request::CheckHealth { .. }
                | Request::Build { .. },
                _,
            ) => None,
        }
    }

    /// Returns the workflow without the former values of inputs that nothing needs after the workflow's end. A verified deploy
    /// that did not succeed may still be rolled back, or continued.
    #[must_use]
    pub fn without_former_inputs(&self) -> Self {
        let mut next = self.clone();
        if let (RollBack::Verified { before, .. }, WorkflowState::Succeeded { .. }) = (&mut next.roll_back, &self.state)
        {
            before.inputs.clear();
        }
        if let Request::Deploy { former_inputs, .. } = &mut next.request {
            former_inputs.clear();
        }
        next
    }
}

#[cfg(test)]
mod tests;
