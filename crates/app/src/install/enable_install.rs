//! Enables a disabled install again.

use std::sync::Arc;

use freehold_protocol::InstallId;

use super::disable_install::set_disabled;
use crate::AppError;
use crate::ports::Store;

/// The use case that enables an install, with its ports.
#[derive(Clone)]
pub struct EnableInstall {
    pub store: Arc<dyn Store>,
}

impl EnableInstall {
    /// Enables an install. An install that is not disabled is not changed.
    ///
    /// # Errors
    /// NotFound, or the store's errors.
    pub async fn enable(&self, id: &InstallId) -> Result<(), AppError> {
        set_disabled(&*self.store, id, None).await
    }
}
