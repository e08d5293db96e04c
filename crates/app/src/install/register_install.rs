//! Creates an install's orders queue and allows its runner to send reports.

use std::sync::Arc;

use freehold_protocol::WorkflowId;

use super::report_shards::Shards;
use crate::AppError;
use crate::ports::{Expect, QueueAdmin, Store};
use crate::table::{self, Decided, put};

/// The use case that registers an install, with its ports.
#[derive(Clone)]
pub struct RegisterInstall {
    pub store: Arc<dyn Store>,
    pub queues: Arc<dyn QueueAdmin>,
}

impl RegisterInstall {
    /// Creates the orders queue of the install that the workflow provisions, gives the install a reports queue, and
    /// writes the policy of that queue.
    ///
    /// # Errors
    /// NotFound, or the errors of the store and the queue service.
    pub async fn register(&self, workflow: &WorkflowId) -> Result<(), AppError> {
        let workflow = table::workflow(&*self.store, workflow).await?.value;
        let shards = Shards { store: Arc::clone(&self.store), queues: Arc::clone(&self.queues) };
        let shard = shards.assign(&workflow.install).await?;
        let reports_queue_url = self.queues.create_reports_queue(shard).await?;
        let registered = table::change(&*self.store, ("install", &workflow.install), || async {
            let stored = table::install(&*self.store, &workflow.install).await?;
            stored.value.check_kept()?;
            let mut install = stored.value.clone();
            let url = self.queues.create_orders_queue(&install.id, &install.account).await?;
            install.orders_queue_url = Some(url);
            install.reports_queue_url = Some(reports_queue_url.clone());
            if install == stored.value {
                return Ok(Decided::Keep(()));
            }
            Ok(Decided::Commit(vec![put(&install, Expect::Rev(stored.rev))?], ()))
        });
        registered.await?;
        shards.admit(shard).await
    }
}
