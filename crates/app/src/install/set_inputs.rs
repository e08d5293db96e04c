//! Changes the vendor's inputs of an install; the next deploy deploys the components that use them.

use std::sync::Arc;

use freehold_domain::inputs::{check_given, known_inputs, merged};
use freehold_protocol::InstallId;
use freehold_protocol::api::{InstallInputs, SetInputsRequest};

use crate::AppError;
use crate::app_version::show_inputs;
use crate::app_version::versions::Versions;
use crate::install::change::change;
use crate::ports::Store;

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
        let set = change(&*self.store, &self.versions, id, |version, install| {
            let known = known_inputs(version, &install.inputs);
            check_given(version, &merged(&known, &request.inputs))?;
            let next = merged(&install.inputs, &request.inputs);
            let changes = next != install.inputs;
            install.inputs = next;
            Ok(changes)
        });
        let (install, changed) = set.await?;
        if changed {
            tracing::info!(install.id = %id, "Changed inputs of install `{id}`");
        }
        show_inputs::show_inputs(&self.versions, &install).await
    }
}
