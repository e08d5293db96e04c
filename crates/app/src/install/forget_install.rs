//! Marks an install as being forgotten. `sweep` then removes everything that the tenant keeps about it.

use std::sync::Arc;

use freehold_domain::forget_install::{ForgetError, Standing, check_forgettable};
use freehold_domain::install::Install;
use freehold_protocol::api::{ForgetInstallRequest, ForgetStarted};
use freehold_protocol::{InstallId, TenantName, Timestamp, names};

use crate::AppError;
use crate::ports::{Clock, Expect, Store};
use crate::read::last_report::heard_of;
use crate::table::{self, Contact, Decided, Forgetting, OpenWorkflow, contact_key, load, load_all, put};

/// The use case that begins to forget an install, with its ports.
#[derive(Clone)]
pub struct ForgetInstall {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub tenant: TenantName,
}

impl ForgetInstall {
    /// Marks the install as being forgotten. From then on no workflow starts there and every report is refused. A
    /// repeated request changes nothing.
    ///
    /// # Errors
    /// NotFound, Invalid for the build runner, Conflict while something runs or is deployed there or its runner still
    /// reports, or the store's errors.
    pub async fn forget(&self, id: &InstallId, request: &ForgetInstallRequest) -> Result<ForgetStarted, AppError> {
        let marked = table::change(&*self.store, ("install", id), || async {
            let stored = table::install(&*self.store, id).await?;
            if let Some(since) = stored.value.forgetting {
                return Ok(Decided::Keep((stored.value, since, false)));
            }
            let now = self.clock.now();
            let standing = standing(&*self.store, &stored.value).await?;
            check_forgettable(&stored.value, &standing, request.customer_gone, now).map_err(refused)?;
            let marked = Install { forgetting: Some(now), ..stored.value };
            let listed = Forgetting { install: id.clone(), since: now, closed_at: None };
            let writes = vec![put(&marked, Expect::Rev(stored.rev))?, put(&listed, Expect::Any)?];
            Ok(Decided::Commit(writes, (marked, now, true)))
        });
        let (install, since, changed) = marked.await?;
        if changed {
            tracing::warn!(install.id = %id, "Install `{id}` is being forgotten");
        }
        Ok(self.answer(install, since))
    }

    fn answer(&self, install: Install, since: Timestamp) -> ForgetStarted {
        let stack_name = names::install_stack(&self.tenant, &install.id);
        ForgetStarted { install: install.id, account: install.account, region: install.region, stack_name, since }
    }
}

async fn standing(store: &dyn Store, install: &Install) -> Result<Standing, AppError> {
    let open: Vec<OpenWorkflow> = load_all(store, "open", "").await?;
    let contact = load::<Contact>(store, &contact_key(&install.id)).await?;
    Ok(Standing {
        deployed: table::parts(store, &install.id).await?.into_keys().collect(),
        open: open.into_iter().filter(|open| open.install == install.id).map(|open| open.workflow).collect(),
        heard: heard_of(store, install).await?,
        cut_off: contact.is_some_and(|found| found.value.contact.is_cut_off()),
    })
}

fn refused(error: ForgetError) -> AppError {
    match error {
        ForgetError::Builds(_) => AppError::invalid(error.to_string()),
        ForgetError::Running { .. } | ForgetError::Deployed { .. } | ForgetError::Heard { .. } => {
            AppError::conflict(error.to_string())
        }
    }
}
