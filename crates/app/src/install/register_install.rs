//! Creates an install's orders queue and allows its runner to send reports.

use std::sync::Arc;

use freehold_protocol::{AccountId, InstallId, WorkflowId};

use crate::ports::{Expect, QueueAdmin, Store};
use crate::table::{self, Decided, Forgetting, InstallEntry, TRIES, load_all, put};
use crate::{AppError, Kind};

/// The use case that registers an install, with its ports.
#[derive(Clone)]
pub struct RegisterInstall {
    pub store: Arc<dyn Store>,
    pub queues: Arc<dyn QueueAdmin>,
}

impl RegisterInstall {
    /// Creates the orders queue of the install that the workflow provisions, and writes the policy of the reports queue
    /// from the installs in the table.
    ///
    /// # Errors
    /// NotFound, or the errors of the store and the queue service.
    pub async fn register(&self, workflow: &WorkflowId) -> Result<(), AppError> {
        let workflow = table::workflow(&*self.store, workflow).await?.value;
        let registered = table::change(&*self.store, ("install", &workflow.install), || async {
            let stored = table::install(&*self.store, &workflow.install).await?;
            stored.value.check_kept()?;
            let url = self.queues.create_orders_queue(&stored.value.id, &stored.value.account).await?;
            if stored.value.orders_queue_url.as_ref() == Some(&url) {
                return Ok(Decided::Keep(()));
            }
            let mut install = stored.value;
            install.orders_queue_url = Some(url);
            Ok(Decided::Commit(vec![put(&install, Expect::Rev(stored.rev))?], ()))
        });
        registered.await?;
        self.admit().await
    }

    /// Writes the policy of the reports queue until it names exactly the installs that exist and are not being
    /// forgotten. One write is not enough: when two installs register at the same time, the later writer may have read
    /// the older list.
    pub(super) async fn admit(&self) -> Result<(), AppError> {
        let mut runners = self.runners().await?;
        for _ in 0..TRIES {
            self.queues.allow_reporters(&runners).await?;
            let now = self.runners().await?;
            if now == runners {
                return Ok(());
            }
            runners = now;
        }
        Err(AppError::new(
            Kind::Transient,
            "other installs are being created or forgotten at the same time, so the policy of the reports queue is not \
             complete; try again",
        ))
    }

    async fn runners(&self) -> Result<Vec<(InstallId, AccountId)>, AppError> {
        let going: Vec<Forgetting> = load_all(&*self.store, "forgetting", "").await?;
        let entries: Vec<InstallEntry> = load_all(&*self.store, "installs", "").await?;
        let kept = entries.into_iter().filter(|entry| !going.iter().any(|one| one.install == entry.install));
        Ok(kept.map(|entry| (entry.install, entry.account)).collect())
    }
}
