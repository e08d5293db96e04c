//! Ends a workflow truthfully: by what became of its nodes, or by the error of its state machine.

use std::sync::Arc;

use freehold_domain::workflow::{Request, Workflow, WorkflowState};
use freehold_protocol::WorkflowId;

use crate::AppError;
use crate::messages::DispatchMessage;
use crate::ports::{Clock, Committed, Expect, Outbox, Store, Write};
use crate::table::{self, open_key, put};
use crate::workflow::advance;
use crate::workflow::cancel::Cancel;

/// How often a commit that met another writer is decided anew.
const TRIES: u32 = 8;

/// What finishing needs.
#[derive(Clone)]
pub struct FinishWorkflow {
    pub store: Arc<dyn Store>,
    pub outbox: Arc<dyn Outbox>,
    pub clock: Arc<dyn Clock>,
}

impl FinishWorkflow {
    /// Ends the workflow and lets go of its install; answers the word of the state in which it ended. Jobs that are
    /// still under way are cancelled. Finishing again answers the same.
    ///
    /// # Errors
    /// NotFound, or the store's and the queue's.
    pub async fn finish(&self, id: &WorkflowId, error: Option<&str>) -> Result<&'static str, AppError> {
        for _ in 0..TRIES {
            let stored = table::workflow(&*self.store, id).await?;
            let advance = stored.value.finish(error, self.clock.now());
            let workflow = advance.workflow;
            for job in workflow.active_jobs() {
                let job = self.cancel().job(job).await?;
                advance::dispatch_cancel(&*self.outbox, &job).await?;
            }
            if !advance.changed {
                self.ask_for_contract(&workflow).await?;
                return Ok(workflow.state.word());
            }
            let install = table::install(&*self.store, &workflow.install).await?;
            let deployed = match (&workflow.state, &workflow.request) {
                // A deploy of some components leaves the others at their version.
                (WorkflowState::Succeeded { .. }, Request::Deploy { only, .. }) if only.is_empty() => {
                    workflow.version.as_ref()
                }
                _ => None,
            };
            let released = install.value.release(id, deployed);
            let mut writes = vec![put(&workflow, Expect::Rev(stored.rev))?];
            // While a job is under way `sweep` must find the workflow: it ends the job should nobody else.
            if workflow.active_jobs().next().is_none() {
                writes.push(Write::Delete { key: open_key(id) });
            }
            if released != install.value {
                writes.push(put(&released, Expect::Rev(install.rev))?);
            }
            if self.store.commit(writes).await? == Committed::Done {
                self.ask_for_contract(&workflow).await?;
                let word = workflow.state.word();
                tracing::info!(workflow.id = %id, install.id = %workflow.install, "Workflow `{id}` {word}");
                return Ok(word);
            }
        }
        Err(AppError::new(crate::Kind::Transient, format!("workflow `{id}` is being changed by others; try again")))
    }

    /// Has the contract of a version signed whose artifacts are all there now.
    async fn ask_for_contract(&self, workflow: &Workflow) -> Result<(), AppError> {
        if let (WorkflowState::Succeeded { .. }, Request::Build { app, version: Some(version), .. }) =
            (&workflow.state, &workflow.request)
        {
            let message = DispatchMessage::Contract { app: app.clone(), version: version.clone() };
            self.outbox.dispatch(&[message]).await?;
        }
        Ok(())
    }

    fn cancel(&self) -> Cancel {
        Cancel { store: Arc::clone(&self.store), clock: Arc::clone(&self.clock) }
    }
}
