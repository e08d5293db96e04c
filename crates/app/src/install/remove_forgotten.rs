//! Removes everything that the tenant keeps about installs that are being forgotten. Every step may be repeated.

use std::sync::Arc;

use freehold_domain::install::Install;
use freehold_protocol::WorkflowId;
use freehold_protocol::order::AskedBy;
use serde_json::json;

use super::end::end_writes;
use super::forget::{remove_remaining, remove_workflows};
use super::report_shards::Shards;
use crate::AppError;
use crate::ports::{Callbacks, Clock, Expect, QueueAdmin, Store, Write};
use crate::table::{
    self, Decided, Forgetting, OpenWorkflow, Phase, Stored, TaskToken, forgetting_key, install_key, load, load_all,
    open_key, put, token_key,
};
use crate::workflow::put_back_messages::PutBackMessages;

/// The time for which rows stay after the install was closed, in seconds. A function that read the install before it was
/// marked has ended by then, so it writes no row after the removal: no function may run longer than a minute, except
/// `prune-artifacts`, which writes no row of an install. SQS needs the same time to delete a queue.
pub const QUIET_SECS: u64 = 90;

/// The use case that removes what the tenant keeps about forgotten installs, with its ports.
#[derive(Clone)]
pub struct RemoveForgotten {
    pub store: Arc<dyn Store>,
    pub queues: Arc<dyn QueueAdmin>,
    pub callbacks: Arc<dyn Callbacks>,
    /// Looks through the dead letters, also when no install is being forgotten.
    pub letters: PutBackMessages,
    pub clock: Arc<dyn Clock>,
}

/// The numbers of installs that one call handled, by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// The number of installs of which nothing is left.
    pub forgotten: u32,
    /// The number of installs that need another call.
    pub pending: u32,
    /// The number of installs that could not be handled; the next call tries them again.
    pub failed: u32,
    /// The number of installs, among the pending ones, that wait because a dead-letter queue has more messages than one
    /// call can look through.
    pub unseen: u32,
    /// The number of dead letters that returned to their queues.
    pub put_back: u32,
}

impl Removed {
    /// Counts the result for one install: whether nothing of it is left.
    fn note(&mut self, entry: &Forgetting, done: Result<bool, AppError>) {
        let id = &entry.install;
        match done {
            Ok(true) => {
                self.forgotten += 1;
                tracing::warn!(install.id = %id, "Install `{id}` is forgotten");
            }
            Ok(false) => self.pending += 1,
            Err(error) => {
                self.failed += 1;
                tracing::warn!(
                    install.id = %id,
                    "Could not forget install `{id}`; the next sweep tries again: {error}"
                );
            }
        }
    }
}

impl RemoveForgotten {
    /// Continues the removal of every install that is being forgotten, and puts dead letters back. A failure in one
    /// install does not stop the others.
    ///
    /// # Errors
    /// The store's errors when the list of these installs cannot be read, and the errors of the dead-letter queues.
    pub async fn remove(&self) -> Result<Removed, AppError> {
        let mut counts = Removed::default();
        let mut closed = Vec::new();
        for entry in load_all::<Forgetting>(&*self.store, "forgetting", "").await? {
            match self.close(&entry).await {
                Ok(true) => closed.push(entry),
                Ok(false) => counts.note(&entry, Ok(true)),
                Err(error) => counts.note(&entry, Err(error)),
            }
        }
        let installs = closed.iter().map(|entry| entry.install.clone()).collect();
        let seen = self.letters.put_back(&installs).await?;
        counts.put_back = seen.put_back;
        if !seen.all && !closed.is_empty() {
            counts.unseen = u32::try_from(closed.len()).unwrap_or(u32::MAX);
            tracing::error!(
                "A dead-letter queue has more messages than one sweep can look through, so no install is forgotten; \
                 delete the messages that functions refused"
            );
        }
        for entry in &closed {
            let done = if seen.all { self.continue_with(entry).await } else { Ok(false) };
            counts.note(entry, done);
        }
        Ok(counts)
    }

    /// Removes the rows of a closed install that has no dead letters, once it was closed for long enough. Returns whether
    /// nothing of the install is left.
    async fn continue_with(&self, entry: &Forgetting) -> Result<bool, AppError> {
        let Some(closed_at) = entry.closed_at else {
            self.note_closed(entry).await?;
            return Ok(false);
        };
        if self.clock.now().since(closed_at) < QUIET_SECS * 1000 {
            return Ok(false);
        }
        if !remove_workflows(&*self.store, &entry.install).await? {
            return Ok(false);
        }
        remove_remaining(&*self.store, &entry.install).await?;
        self.end(entry).await?;
        Ok(true)
    }

    /// Ends all traffic with the install: removes its orders queue and its runner's permission to report, and ends its
    /// open workflows. Returns false if another call has removed the install since the list was read. Its name may
    /// already belong to a new install.
    async fn close(&self, entry: &Forgetting) -> Result<bool, AppError> {
        let found = load::<Install>(&*self.store, &install_key(&entry.install)).await?;
        let Some(install) = found.filter(|found| found.value.forgetting == Some(entry.since)) else {
            return Ok(false);
        };
        let install = install.value;
        self.queues.remove_orders_queue(&install.id).await?;
        Shards { store: Arc::clone(&self.store), queues: Arc::clone(&self.queues) }.leave(&install).await?;
        let open: Vec<OpenWorkflow> = load_all(&*self.store, "open", "").await?;
        for open in open.into_iter().filter(|open| open.install == install.id) {
            self.end_workflow(&open.workflow).await?;
        }
        Ok(true)
    }

    /// Stores when the install was closed. The waiting time starts then, because a removal may begin long after the
    /// request.
    async fn note_closed(&self, entry: &Forgetting) -> Result<(), AppError> {
        table::change(&*self.store, ("install", &entry.install), || async {
            let found = load::<Forgetting>(&*self.store, &forgetting_key(&entry.install)).await?;
            // Another call has stored the time, or has removed the install.
            let Some(stored) = found.filter(|found| found.value == *entry) else { return Ok(Decided::Keep(())) };
            let closed = Forgetting { closed_at: Some(self.clock.now()), ..stored.value };
            Ok(Decided::Commit(vec![put(&closed, Expect::Rev(stored.rev))?], ()))
        })
        .await
    }

    /// Ends a workflow and its execution. Nothing waits for its jobs, because every report of the install is refused.
    async fn end_workflow(&self, id: &WorkflowId) -> Result<(), AppError> {
        let ended = table::change(&*self.store, ("workflow", id), || async {
            let Some(found) = table::find_workflow(&*self.store, id).await? else { return Ok(Decided::Keep(())) };
            let now = self.clock.now();
            let ended = found.value.cancel(&AskedBy::Sweep, now).workflow.finish(None, now);
            if !ended.changed {
                return Ok(Decided::Keep(()));
            }
            Ok(Decided::Commit(vec![table::put_workflow(&ended.workflow, Expect::Rev(found.rev))?], ()))
        });
        ended.await?;
        for phase in [Phase::AwaitRunner, Phase::Run] {
            let token: Option<Stored<TaskToken>> = load(&*self.store, &token_key(id, phase)).await?;
            if let Some(token) = token {
                self.callbacks.succeed(&token.value.token, &json!({ "result": "forgotten" })).await?;
            }
        }
        let open: Option<Stored<OpenWorkflow>> = load(&*self.store, &open_key(id)).await?;
        let keys = open.map(|open| open.value.keys()).unwrap_or_default();
        let _ = self.store.commit(keys.into_iter().map(|key| Write::Delete { key }).collect()).await?;
        Ok(())
    }

    /// Removes the last rows in one commit, among them the entry in the list of forgotten installs. If the removal is
    /// stopped before this commit, the next call still finds the entry and continues.
    async fn end(&self, entry: &Forgetting) -> Result<(), AppError> {
        let id = &entry.install;
        table::change(&*self.store, ("install", id), || async {
            let found: Option<Stored<Install>> = load(&*self.store, &install_key(id)).await?;
            let is_its = |found: &Stored<Install>| found.value.forgetting == Some(entry.since);
            let Some(stored) = found.filter(is_its) else { return Ok(Decided::Keep(())) };
            let mut writes = end_writes(&*self.store, &stored).await?;
            writes.push(Write::Delete { key: forgetting_key(id) });
            Ok(Decided::Commit(writes, ()))
        })
        .await
    }
}
