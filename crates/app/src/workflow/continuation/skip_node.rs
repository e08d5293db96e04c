//! Lets a workflow that has ended continue without one of its failed nodes.

use std::sync::Arc;

use freehold_domain::workflow::{Act, Workflow};
use freehold_protocol::WorkflowId;
use freehold_protocol::api::SkipNodeRequest;

use super::Continuation;
use crate::AppError;
use crate::app_version::versions::Versions;
use crate::new_workflow::Asked;
use crate::ports::{Clock, Machines};
use crate::reason::line;

/// The use case that skips a node, with its ports.
#[derive(Clone)]
pub struct SkipNode {
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    pub clock: Arc<dyn Clock>,
}

impl SkipNode {
    /// Counts a failed node as skipped and runs the nodes that were not reached because of it, in another execution of the
    /// workflow. Other failed nodes stay as they are. A repeated call with the same cause returns the same workflow.
    ///
    /// # Errors
    /// As [`ResumeWorkflow::resume`](super::resume_workflow::ResumeWorkflow::resume), NotFound for an unknown node, and
    /// Conflict for a node that did not fail, or that other nodes need.
    pub async fn skip(
        &self,
        id: &WorkflowId,
        request: &SkipNodeRequest,
        asked: Asked<'_>,
    ) -> Result<Workflow, AppError> {
        let reason = line(&request.reason)?;
        let (machines, clock) = (&*self.machines, &*self.clock);
        let act = Act::Skip { node: request.node.clone() };
        Continuation { versions: &self.versions, machines, clock }.run(id, (&act, &reason), asked).await
    }
}
