//! The end of the chain as this machine knows it, for the reports that name it.

use std::sync::{Arc, Mutex, PoisonError};

use freehold_protocol::audit::ChainHead;

/// The last record that this machine knows to be in the customer's bucket. All clones share it.
#[derive(Debug, Clone, Default)]
pub struct LatestHead(Arc<Mutex<Option<ChainHead>>>);

impl LatestHead {
    /// Returns the record; `None` before the first one, and for a runner without a bucket.
    pub fn get(&self) -> Option<ChainHead> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, head: Option<ChainHead>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = head;
    }
}
