//! Disables an install: it gets neither new workflows nor grants until it is enabled again.

use std::sync::Arc;

use freehold_domain::install::Install;
use freehold_protocol::InstallId;
use freehold_protocol::api::ReasonRequest;

use crate::AppError;
use crate::ports::{Expect, Store};
use crate::reason::reason;
use crate::table::{self, Decided, put};

/// The use case that disables an install, with its ports.
#[derive(Clone)]
pub struct DisableInstall {
    pub store: Arc<dyn Store>,
}

impl DisableInstall {
    /// Disables an install, or changes the reason if the install is disabled already.
    ///
    /// # Errors
    /// Invalid for a reason that is empty, too long or has several lines, NotFound, or the store's errors.
    pub async fn disable(&self, id: &InstallId, because: &ReasonRequest) -> Result<(), AppError> {
        set_disabled(&*self.store, id, Some(reason(because)?)).await
    }
}

/// Sets the reason why an install is disabled; `None` enables the install.
pub(super) async fn set_disabled(store: &dyn Store, id: &InstallId, disabled: Option<String>) -> Result<(), AppError> {
    let changed = table::change(store, ("install", id), || async {
        let stored = table::install(store, id).await?;
        if stored.value.disabled == disabled {
            return Ok(Decided::Keep(false));
        }
        let install = Install { disabled: disabled.clone(), ..stored.value };
        Ok(Decided::Commit(vec![put(&install, Expect::Rev(stored.rev))?], true))
    });
    match (changed.await?, &disabled) {
        (true, Some(why)) => tracing::warn!(install.id = %id, "Disabled install `{id}`: {why}"),
        (true, None) => tracing::info!(install.id = %id, "Enabled install `{id}`"),
        (false, _) => {}
    }
    Ok(())
}
