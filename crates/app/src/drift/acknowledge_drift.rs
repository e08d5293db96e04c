//! Acknowledges a difference: a person knows about the difference and does not want it repaired now.

use std::sync::Arc;

use freehold_domain::drift::Acknowledged;
use freehold_protocol::InstallId;
use freehold_protocol::api::AcknowledgeDriftRequest;
use freehold_protocol::order::AskedBy;

use crate::ports::{Clock, Expect, Store};
use crate::reason::line;
use crate::table::{self, Decided, DeployedRecord, Stored, load_all_stored, put};
use crate::{AppError, Kind};

/// The use case that acknowledges a difference, with its ports.
#[derive(Clone)]
pub struct AcknowledgeDrift {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
}

impl AcknowledgeDrift {
    /// Acknowledges the difference of one resource, until the resource differs in another way or no longer differs. A
    /// repeated call changes nothing.
    ///
    /// # Errors
    /// Invalid for a reason that is not one line, NotFound for an unknown install and for a resource that does not
    /// differ, Conflict when the resource differs in several components, or the store's errors.
    pub async fn acknowledge(
        &self,
        install: &InstallId,
        request: &AcknowledgeDriftRequest,
        by: &AskedBy,
    ) -> Result<(), AppError> {
        let acknowledged = Acknowledged { by: by.clone(), reason: line(&request.reason)?, at: self.clock.now() };
        table::change(&*self.store, ("install", install), || async {
            table::install(&*self.store, install).await?.value.require_app()?;
            let Stored { mut value, rev } = self.record_of(install, request).await?;
            let before = value.deployed.drift.clone();
            value.deployed.drift = before.as_ref().and_then(|drift| drift.acknowledge(&request.address, &acknowledged));
            if value.deployed.drift == before {
                return Ok(Decided::Keep(()));
            }
            Ok(Decided::Commit(vec![put(&value, Expect::Rev(rev))?], ()))
        })
        .await
    }

    /// Returns the record of the only part in which the resource differs.
    async fn record_of(
        &self,
        install: &InstallId,
        request: &AcknowledgeDriftRequest,
    ) -> Result<Stored<DeployedRecord>, AppError> {
        let address = &request.address;
        let all: Vec<Stored<DeployedRecord>> =
            load_all_stored(&*self.store, &table::install_pk(install), "component#").await?;
        let differs = |record: &Stored<DeployedRecord>| {
            let deployed = &record.value.deployed;
            let is_named = request.component.as_ref().is_none_or(|name| *name == deployed.component);
            let mut found = deployed.drift.iter().flat_map(|drift| &drift.found);
            is_named && found.any(|one| one.resource.address == *address)
        };
        let mut having: Vec<Stored<DeployedRecord>> = all.into_iter().filter(differs).collect();
        if having.len() > 1 {
            let names: Vec<String> = having.iter().map(|one| format!("`{}`", one.value.deployed.component)).collect();
            return Err(AppError::conflict(format!(
                "`{address}` differs in {}; name the component with `--component`",
                names.join(" and ")
            )));
        }
        having.pop().ok_or_else(|| {
            AppError::new(
                Kind::NotFound,
                format!(
                    "no check found that `{address}` differs in install `{install}`; `freehold drift list {install}` shows what \
                     differs"
                ),
            )
        })
    }
}
