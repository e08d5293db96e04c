//! Cancels a run of a runbook: no further step starts, and the workflow of the running step is cancelled.

use std::sync::Arc;

use freehold_domain::runbook::{Next, Run};
use freehold_protocol::RunId;
use freehold_protocol::api::CancelWorkflowRequest;
use freehold_protocol::order::AskedBy;

use crate::AppError;
use crate::ports::Expect;
use crate::runbook::advance_run::AdvanceRun;
use crate::table::{self, Decided};
use crate::workflow::cancel_workflow::CancelWorkflow;

/// The use case that cancels a run.
#[derive(Clone)]
pub struct CancelRun {
    pub advance: AdvanceRun,
}

impl CancelRun {
    /// Cancels a run on request of `by`. A run that has ended is not changed.
    ///
    /// # Errors
    /// NotFound, or the store's errors.
    pub async fn cancel(&self, id: &RunId, by: &AskedBy) -> Result<Run, AppError> {
        let run = table::change(&*self.advance.store, ("run", id), || async {
            let stored = table::run(&*self.advance.store, id).await?;
            let next = stored.value.cancel(by, self.advance.clock.now());
            if next == stored.value {
                return Ok(Decided::Keep(next));
            }
            Ok(Decided::Commit(table::run_writes(&next, Expect::Rev(stored.rev))?, next))
        });
        let run = run.await?;
        let Next::Follow { workflow, .. } = run.next() else { return Ok(run) };
        if table::find_workflow(&*self.advance.store, &workflow).await?.is_some() {
            let cancel =
                CancelWorkflow { store: Arc::clone(&self.advance.store), clock: Arc::clone(&self.advance.clock) };
            cancel.cancel(&workflow, &CancelWorkflowRequest::default(), by).await?;
            return Ok(run);
        }
        self.advance.try_advance(id).await
    }
}
