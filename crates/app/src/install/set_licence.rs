//! Sets the licence of an install, or withdraws it. The function that sends orders signs it.

use std::sync::Arc;

use freehold_domain::install::Install;
use freehold_domain::install::licence::InstallLicence;
use freehold_protocol::InstallId;
use freehold_protocol::api::SetLicenceRequest;
use freehold_protocol::order::AskedBy;

use crate::AppError;
use crate::ports::{Clock, Expect, Store};
use crate::table::{self, Decided, LicenceRecord, Stored, licence_key, load, put};

/// The use case that sets the licence of an install, with its ports.
#[derive(Clone)]
pub struct SetLicence {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
}

impl SetLicence {
    /// Sets or withdraws the licence of the install, on request of `by`. A licence that the install has already is not
    /// set again. The install may have a running workflow: orders that are made from now on bring the new licence.
    ///
    /// # Errors
    /// NotFound, Invalid for a licence that no install can have, or the store's errors.
    pub async fn set(&self, id: &InstallId, request: &SetLicenceRequest, by: &AskedBy) -> Result<(), AppError> {
        let now = self.clock.now();
        let changed = table::change(&*self.store, ("install", id), || async {
            let stored = table::install(&*self.store, id).await?;
            stored.value.check_kept()?;
            stored.value.require_app()?;
            // A row that a function of an earlier version has written may have lost its licence. An order has perhaps
            // brought that licence, and the runner uses the highest serial.
            let signed: Option<Stored<LicenceRecord>> = load(&*self.store, &licence_key(id)).await?;
            let signed = signed.map_or(0, |signed| signed.value.serial);
            let floor = InstallLicence::floor(stored.value.generation).max(signed);
            let next = InstallLicence::next(stored.value.licence.as_ref(), floor, request, by, now);
            let Some(next) = next.map_err(|error| AppError::invalid(error.to_string()))? else {
                return Ok(Decided::Keep(None));
            };
            let serial = next.serial;
            let changed = Install { licence: Some(next), ..stored.value };
            Ok(Decided::Commit(vec![put(&changed, Expect::Rev(stored.rev))?], Some(serial)))
        })
        .await?;
        if let Some(serial) = changed {
            let what = if request.withdraw { "withdrawn" } else { "set" };
            tracing::info!(install.id = %id, "Licence {serial} of install `{id}` is {what} by {by}");
        }
        Ok(())
    }
}
