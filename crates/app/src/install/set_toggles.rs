//! Switches components of an install on or off; the next deploy deploys or removes them.

use std::sync::Arc;

use freehold_domain::install::InstallError;
use freehold_domain::toggles::changed;
use freehold_protocol::InstallId;
use freehold_protocol::api::{InstallToggles, SetTogglesRequest};

use crate::AppError;
use crate::app_version::show_toggles;
use crate::app_version::versions::Versions;
use crate::ports::{Expect, Store};
use crate::table::{self, Decided, put};

/// The use case that sets an install's toggles, with its ports.
#[derive(Clone)]
pub struct SetToggles {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
}

impl SetToggles {
    /// Merges the choices of `request` into the choices of the install; null removes a choice. A repeated request
    /// changes nothing.
    ///
    /// # Errors
    /// NotFound for an unknown component; Invalid for a component that every install has, and when a component that
    /// stays on needs a component that is off; Conflict while a workflow runs in the install; or the ports' errors.
    pub async fn set(&self, id: &InstallId, request: &SetTogglesRequest) -> Result<InstallToggles, AppError> {
        let changed = table::change(&*self.store, ("install", id), || async {
            let stored = table::install(&*self.store, id).await?;
            let mut install = stored.value;
            let app = install
                .app()
                .ok_or_else(|| AppError::invalid(format!("`{id}` is the build runner, not an install of an app")))?;
            let version = self.versions.load(app, None).await?;
            let next = changed(&version.document, &install.toggles, &request.toggles)?;
            if next == install.toggles {
                return Ok(Decided::Keep((install, false)));
            }
            if let Some(live) = install.live.clone() {
                return Err(InstallError::Live { install: id.clone(), live }.into());
            }
            install.toggles = next;
            Ok(Decided::Commit(vec![put(&install, Expect::Rev(stored.rev))?], (install, true)))
        });
        let (install, changed) = changed.await?;
        if changed {
            tracing::info!(install.id = %id, "Changed toggles of install `{id}`");
        }
        show_toggles::show(&self.versions, &install).await
    }
}
