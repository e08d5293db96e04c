//! Changes the vendor's inputs of an install; the next deploy deploys the components that use them.

use std::sync::Arc;

use freehold_domain::inputs::{check_given, known_inputs, merged};
use freehold_domain::install::InstallError;
use freehold_protocol::InstallId;
use freehold_protocol::api::{InstallInputs, SetInputsRequest};

use crate::AppError;
use crate::app_version::show_inputs;
use crate::app_version::versions::Versions;
use crate::ports::{Expect, Store};
use crate::table::{self, Decided, put};

/// The use case that sets an install's inputs, with its ports.
#[derive(Clone)]
pub struct SetInputs {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
}

impl SetInputs {
    /// Merges the values of `request` into the values of the install; null removes a value. A repeated request changes
    /// nothing.
    ///
    /// # Errors
    /// Invalid with every wrong value at once, Conflict while a workflow runs in the install, or the ports' errors.
    pub async fn set(&self, id: &InstallId, request: &SetInputsRequest) -> Result<InstallInputs, AppError> {
        let changed = table::change(&*self.store, ("install", id), || async {
            let stored = table::install(&*self.store, id).await?;
            let mut install = stored.value;
            let app = install
                .app()
                .ok_or_else(|| AppError::invalid(format!("`{id}` is the build runner, not an install of an app")))?;
            let version = self.versions.load(app, None).await?;
            let known = known_inputs(&version.document, &install.inputs);
            check_given(&version.document, &merged(&known, &request.inputs))?;
            let next = merged(&install.inputs, &request.inputs);
            if next == install.inputs {
                return Ok(Decided::Keep((install, false)));
            }
            if let Some(live) = install.live.clone() {
                return Err(InstallError::Live { install: id.clone(), live }.into());
            }
            install.inputs = next;
            Ok(Decided::Commit(vec![put(&install, Expect::Rev(stored.rev))?], (install, true)))
        });
        let (install, changed) = changed.await?;
        if changed {
            tracing::info!(install.id = %id, "Changed inputs of install `{id}`");
        }
        show_inputs::show(&self.versions, &install).await
    }
}
