//! Sets and removes labels that an install itself has.

use std::sync::Arc;

use freehold_domain::install::{Install, labels};
use freehold_protocol::InstallId;
use freehold_protocol::api::SetLabelsRequest;
use freehold_protocol::order::AskedBy;

use crate::AppError;
use crate::ports::{Expect, Store};
use crate::table::{self, Decided, put};

/// The use case that sets the labels of an install, with its port.
#[derive(Clone)]
pub struct SetLabels {
    pub store: Arc<dyn Store>,
}

impl SetLabels {
    /// Merges the labels of `request` into the own labels of the install, on request of `by`; null removes a label. The
    /// install may have a running workflow, because nothing that is deployed depends on labels.
    ///
    /// # Errors
    /// NotFound, Invalid for labels that no install can have, or the store's errors.
    pub async fn set(&self, id: &InstallId, request: &SetLabelsRequest, by: &AskedBy) -> Result<(), AppError> {
        let is_changed = table::change(&*self.store, ("install", id), || async {
            let stored = table::install(&*self.store, id).await?;
            stored.value.check_kept()?;
            stored.value.require_app()?;
            let mut own = stored.value.labels.clone();
            for (key, value) in &request.labels {
                match value {
                    Some(value) => own.insert(key.clone(), value.clone()),
                    None => own.remove(key),
                };
            }
            if own == stored.value.labels {
                return Ok(Decided::Keep(false));
            }
            labels::check(&own).map_err(|e| AppError::invalid(e.to_string()))?;
            let changed = Install { labels: own, ..stored.value };
            Ok(Decided::Commit(vec![put(&changed, Expect::Rev(stored.rev))?], true))
        })
        .await?;
        if is_changed {
            tracing::info!(install.id = %id, "Labels of install `{id}` are changed by {by}");
        }
        Ok(())
    }
}
