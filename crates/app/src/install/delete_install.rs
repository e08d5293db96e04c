//! Deletes an install in which nothing ever ran, for example because its region is wrong. Its name can then be used
//! again.

use std::sync::Arc;

use freehold_domain::install::Install;
use freehold_protocol::api::InstallDeleted;
use freehold_protocol::order::AskedBy;
use freehold_protocol::{InstallId, TenantName, names};

use crate::AppError;
use crate::install::end::end_writes;
use crate::ports::{Clock, Expect, Store, Write};
use crate::table::{self, Decided, Stored};

/// The use case that deletes an install, with its ports.
#[derive(Clone)]
pub struct DeleteInstall {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub tenant: TenantName,
}

impl DeleteInstall {
    /// Deletes an install on request of `by`, and ends its provisioning workflow, which waits for a runner; `sweep` then
    /// ends the execution. The rows of the workflow and the empty orders queue remain until another install gets the name;
    /// [`super::forget_install`] removes them too.
    ///
    /// # Errors
    /// NotFound, Conflict once a runner has announced itself, or the store's errors.
    pub async fn delete(&self, id: &InstallId, by: &AskedBy) -> Result<InstallDeleted, AppError> {
        let deleted = table::change(&*self.store, ("install", id), || async {
            let stored = table::install(&*self.store, id).await?;
            if stored.value.app().is_none() {
                return Err(AppError::invalid(format!(
                    "`{id}` is the build runner and cannot be deleted like an install; `freehold install list` shows the \
                     installs"
                )));
            }
            stored.value.check_kept()?;
            stored.value.check_never_ran()?;
            let writes = self.writes(&stored, by).await?;
            Ok(Decided::Commit(writes, stored.value))
        });
        let Install { id: install, account, region, .. } = deleted.await?;
        tracing::warn!(install.id = %install, "Deleted install `{install}`, in which nothing ran");
        let stack_name = names::install_stack(&self.tenant, &install);
        Ok(InstallDeleted { install, account, region, stack_name })
    }

    async fn writes(&self, stored: &Stored<Install>, by: &AskedBy) -> Result<Vec<Write>, AppError> {
        let mut writes = end_writes(&*self.store, stored).await?;
        writes.extend(self.end_of_provisioning(&stored.value, by).await?);
        Ok(writes)
    }

    /// Returns the write that ends the workflow that has locked the install. The workflow's entry in the list of open
    /// workflows remains, so that `sweep` finds it.
    async fn end_of_provisioning(&self, install: &Install, by: &AskedBy) -> Result<Option<Write>, AppError> {
        let Some(live) = &install.live else { return Ok(None) };
        let Some(found) = table::find_workflow(&*self.store, live).await? else { return Ok(None) };
        let now = self.clock.now();
        let ended = found.value.cancel(by, now).workflow.finish(None, now);
        ended.changed.then(|| table::put_workflow(&ended.workflow, Expect::Rev(found.rev))).transpose()
    }
}
