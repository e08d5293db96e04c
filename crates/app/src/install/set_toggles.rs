//! Switches components of an install on or off; the next deploy deploys or removes them.

use std::sync::Arc;

use freehold_domain::toggles::changed;
use freehold_protocol::InstallId;
use freehold_protocol::api::{InstallToggles, SetTogglesRequest};

use crate::AppError;
use crate::app_version::show_toggles;
use crate::app_version::versions::Versions;
use crate::install::settings_change::{Changed, change};
use crate::ports::{Clock, Store};

/// The use case that sets an install's toggles, with its ports.
#[derive(Clone)]
pub struct SetToggles {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub clock: Arc<dyn Clock>,
}

impl SetToggles {
    /// Merges the choices of `request` into the choices of the install; null removes a choice. A repeated request
    /// changes nothing.
    ///
    /// # Errors
    /// NotFound for an unknown component; Invalid for a component that every install has, and when a component that
    /// stays on needs a component that is off; Conflict while a workflow runs in the install; or the ports' errors.
    pub async fn set(&self, id: &InstallId, request: &SetTogglesRequest) -> Result<InstallToggles, AppError> {
        let set = change(&*self.store, &self.versions, (id, self.clock.now()), |version, install| {
            let next = changed(version, &install.toggles, &request.toggles)?;
            let changes = next != install.toggles;
            install.toggles = next;
            Ok(if changes { Changed::Something } else { Changed::Nothing })
        });
        let (install, changed) = set.await?;
        if changed {
            tracing::info!(install.id = %id, "Changed toggles of install `{id}`");
        }
        show_toggles::show_toggles(&self.versions, &install).await.map_err(AppError::after_change)
    }
}
