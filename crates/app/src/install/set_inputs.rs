//! Changes the vendor's inputs of an install; the next deploy deploys the components that use them.

use std::collections::BTreeMap;
use std::sync::Arc;

use freehold_domain::inputs::{check_given, known_inputs, merged};
use freehold_domain::sealed_inputs::is_sealed;
use freehold_protocol::InstallId;
use freehold_protocol::api::{InstallInputs, SetInputsRequest};
use freehold_protocol::app_version::AppVersion;
use serde_json::Value;

use crate::AppError;
use crate::app_version::show_inputs;
use crate::app_version::versions::Versions;
use crate::install::settings_change::{Changed, change};
use crate::ports::{Clock, Store};

/// The use case that sets an install's inputs, with its ports.
#[derive(Clone)]
pub struct SetInputs {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub clock: Arc<dyn Clock>,
}

impl SetInputs {
    /// Merges the values of `request` into the values of the install; null removes a value. A repeated request changes
    /// nothing. Sensitive inputs may be given while the first deploy waits for them; `sweep` resumes it.
    ///
    /// # Errors
    /// Invalid with every wrong value at once, Conflict while a workflow runs in the install, or the ports' errors.
    pub async fn set(&self, id: &InstallId, request: &SetInputsRequest) -> Result<InstallInputs, AppError> {
        let set = change(&*self.store, &self.versions, (id, self.clock.now()), |version, install| {
            let known = known_inputs(version, &install.inputs);
            check_given(version, &known, &request.inputs, install.sealing())?;
            let next = merged(&install.inputs, &request.inputs);
            let changed = changed(version, &install.inputs, &next);
            install.inputs = next;
            Ok(changed)
        });
        let (install, changed) = set.await?;
        if changed {
            tracing::info!(install.id = %id, "Changed inputs of install `{id}`");
        }
        show_inputs::show_inputs(&self.versions, &install).await.map_err(AppError::after_change)
    }
}

/// Returns what differs between the values `old` and `new`.
fn changed(version: &AppVersion, old: &BTreeMap<String, Value>, new: &BTreeMap<String, Value>) -> Changed {
    let names: Vec<&String> = old.keys().chain(new.keys()).filter(|name| old.get(*name) != new.get(*name)).collect();
    let is_sensitive = |name: &str| version.inputs.iter().any(|input| input.name == name && is_sealed(input));
    match names.as_slice() {
        [] => Changed::Nothing,
        names if names.iter().all(|name| is_sensitive(name)) => Changed::SensitiveInputs,
        _ => Changed::Something,
    }
}
