//! Closes the orders queue of an install whose runner reported that it lost its access, and opens the queue when the
//! runner has announced itself again.

use std::sync::Arc;

use freehold_domain::install::Install;
use freehold_protocol::InstallId;

use crate::AppError;
use crate::ports::{QueueAdmin, Store, Write};
use crate::table::{Contact, QUEUE_TURNS, QueueTurn, Record as _, Stored, contact_key, install_key, load, parse};

/// The maximum number of queues that one call handles.
const AT_ONCE: u32 = 100;

/// The use case that closes and opens orders queues, with its ports.
#[derive(Clone)]
pub struct TurnQueues {
    pub store: Arc<dyn Store>,
    pub queues: Arc<dyn QueueAdmin>,
}

impl TurnQueues {
    /// Closes or opens the queues of the installs whose contact has changed. Returns the number of these queues. The
    /// next call retries a queue that cannot be set now.
    ///
    /// # Errors
    /// The store's errors when the list of these installs cannot be read.
    pub async fn turn(&self) -> Result<u32, AppError> {
        let mut turned = 0;
        for row in self.store.query(QUEUE_TURNS, "", None, AT_ONCE).await? {
            let Stored { value: QueueTurn { install }, rev } = parse(&row)?;
            match self.turn_one(&install, rev).await {
                Ok(()) => turned += 1,
                Err(error) => tracing::warn!(
                    install.id = %install,
                    "Could not set the policy of the orders queue of `{install}`; the next sweep tries again: {error}"
                ),
            }
        }
        Ok(turned)
    }

    /// Sets the policy that the current contact requires, and removes the row if the contact has not changed meanwhile.
    async fn turn_one(&self, id: &InstallId, rev: u64) -> Result<(), AppError> {
        let install = load::<Install>(&*self.store, &install_key(id)).await?;
        if let Some(install) = install.filter(|install| install.value.forgetting.is_none()) {
            let contact = load::<Contact>(&*self.store, &contact_key(id)).await?;
            let open = !contact.is_some_and(|found| found.value.contact.is_cut_off());
            self.queues.turn_orders_queue(id, &install.value.account, open).await?;
            match open {
                true => tracing::info!(install.id = %id, "The runner of `{id}` takes orders again"),
                false => tracing::warn!(
                    install.id = %id,
                    "Closed the orders queue of `{id}`: its runner has lost its access; nothing is deprovisioned"
                ),
            }
        }
        let key = QueueTurn { install: id.clone() }.key();
        let _ = self.store.commit(vec![Write::DeleteAt { key, rev }]).await?;
        Ok(())
    }
}
