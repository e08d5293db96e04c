//! Changes what the next deploy of an install uses, while no workflow runs in the install.

use freehold_domain::install::{Install, InstallError};
use freehold_protocol::InstallId;
use freehold_protocol::app_version::AppVersion;

use crate::AppError;
use crate::app_version::versions::Versions;
use crate::ports::{Expect, Store};
use crate::table::{self, Decided, put};

/// Applies `change`, which returns whether it changed anything, to the install. It gets the newest version of the
/// install's app. Returns the install and whether it was changed.
///
/// # Errors
/// Those of `change`; Invalid for the build runner; Conflict when `change` changed something while a workflow runs in
/// the install; or the ports' errors.
pub(super) async fn change<F>(
    store: &dyn Store,
    versions: &Versions,
    id: &InstallId,
    change: F,
) -> Result<(Install, bool), AppError>
where
    F: Fn(&AppVersion, &mut Install) -> Result<bool, AppError> + Sync,
{
    table::change(store, ("install", id), || async {
        let stored = table::install(store, id).await?;
        let mut install = stored.value;
        let app = install
            .app()
            .ok_or_else(|| AppError::invalid(format!("`{id}` is the build runner, not an install of an app")))?;
        let version = versions.load(app, None).await?;
        if !change(&version.document, &mut install)? {
            return Ok(Decided::Keep((install, false)));
        }
        if let Some(live) = install.live.clone() {
            return Err(InstallError::Live { install: id.clone(), live }.into());
        }
        Ok(Decided::Commit(vec![put(&install, Expect::Rev(stored.rev))?], (install, true)))
    })
    .await
}
