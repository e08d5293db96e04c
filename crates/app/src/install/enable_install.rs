//! Enables a disabled install again.

use std::sync::Arc;

use freehold_protocol::InstallId;

use super::disable_install::set_disabled;
use crate::AppError;
use crate::ports::Store;

/// The ports that enabling an install needs.
#[derive(Clone)]
pub struct EnableInstall {
    pub store: Arc<dyn Store>,
}

impl EnableInstall {
    /// Enables an install again; one that is not disabled stays as it is.
    ///
    /// # Errors
    /// NotFound, or the store's errors.
    pub async fn enable(&self, id: &InstallId) -> Result<(), AppError> {
        set_disabled(&*self.store, id, None).await
    }
}
