//! Changes what the next deploy of an install uses, while no workflow runs in the install.

use freehold_domain::install::{Install, InstallError};
use freehold_domain::workflow::{WorkflowKind, WorkflowState};
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::{InstallId, Timestamp, WorkflowId};

use crate::AppError;
use crate::app_version::show_inputs::version_for_values;
use crate::app_version::versions::Versions;
use crate::ports::{Expect, Store, Write};
use crate::table::{self, Decided, Stored, put};

/// The settings of an install that a request changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changed {
    Nothing,
    Something,
    /// Only sensitive inputs. The first deploy may still wait for them after the runner has announced itself.
    SensitiveInputs,
}

/// Applies `change` to the install. `change` also gets the newest version of the install's app, as [`version_for_values`]
/// does. Returns the install and whether it was changed.
///
/// # Errors
/// Those of `change`; Invalid for the build runner; Conflict when `change` changed something while a workflow runs in
/// the install; or the ports' errors.
pub(super) async fn change<F>(
    store: &dyn Store,
    versions: &Versions,
    (id, now): (&InstallId, Timestamp),
    change: F,
) -> Result<(Install, bool), AppError>
where
    F: Fn(&AppVersion, &mut Install) -> Result<Changed, AppError> + Sync,
{
    table::change(store, ("install", id), || async {
        let stored = table::install(store, id).await?;
        let mut install = stored.value;
        let app = install.require_app()?;
        let version = version_for_values(versions, app, &install).await?;
        let changed = change(&version.document, &mut install)?;
        if changed == Changed::Nothing {
            return Ok(Decided::Keep((install, false)));
        }
        if changed == Changed::SensitiveInputs {
            install.sealed_at = now;
        }
        let mut writes = vec![put(&install, Expect::Rev(stored.rev))?];
        if let Some(live) = install.live.clone() {
            // A runner that has announced itself may get its orders at any moment.
            let may_wait = changed == Changed::SensitiveInputs || install.runner.is_none();
            let before_the_plan = if may_wait { before_the_plan(store, &live).await? } else { None };
            writes.push(before_the_plan.ok_or(InstallError::Live { install: id.clone(), live })?);
        }
        Ok(Decided::Commit(writes, (install, true)))
    })
    .await
}

/// Returns a write that lets inputs change while the workflow `live` is pending; `None` if the workflow does not provision
/// the install, or has a plan already. The write changes the revision of the workflow's row. So a plan that another process
/// makes from the old inputs at the same time cannot be stored.
async fn before_the_plan(store: &dyn Store, live: &WorkflowId) -> Result<Option<Write>, AppError> {
    let Some(Stored { value: workflow, rev }) = table::find_workflow(store, live).await? else { return Ok(None) };
    if workflow.kind != WorkflowKind::ProvisionInstall || workflow.state != WorkflowState::Pending {
        return Ok(None);
    }
    Ok(Some(table::put_workflow(&workflow, Expect::Rev(rev))?))
}
