//! Deletes an install in which nothing ever ran, for example because its region is wrong. Its name can then be used
//! again.

use std::sync::Arc;

use freehold_domain::install::Install;
use freehold_protocol::api::InstallDeleted;
use freehold_protocol::{InstallId, TenantName, names};

use crate::AppError;
use crate::ports::{Clock, Expect, Store, Write};
use crate::table::{
    self, Decided, FormerInstalls, InstallEntry, Stored, former_installs_key, install_entry_key, install_key, load,
    load_all, name_prefixes, prefix_key, put,
};

/// The use case that deletes an install, with its ports.
#[derive(Clone)]
pub struct DeleteInstall {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub tenant: TenantName,
}

impl DeleteInstall {
    /// Deletes an install and ends its provisioning workflow, which waits for a runner; `sweep` then ends the
    /// execution. The empty orders queue remains until another install gets the name or the tenant is destroyed: only
    /// `register-install` may change queues.
    ///
    /// # Errors
    /// NotFound, Conflict once a runner has announced itself, or the store's errors.
    pub async fn delete(&self, id: &InstallId) -> Result<InstallDeleted, AppError> {
        let deleted = table::change(&*self.store, ("install", id), || async {
            let stored = table::install(&*self.store, id).await?;
            if stored.value.app().is_none() {
                return Err(AppError::invalid(format!(
                    "`{id}` is the build runner and cannot be deleted like an install"
                )));
            }
            stored.value.check_never_ran()?;
            let writes = self.writes(&stored).await?;
            Ok(Decided::Commit(writes, stored.value))
        });
        let Install { id: install, account, region, .. } = deleted.await?;
        tracing::warn!(install.id = %install, "Deleted install `{install}`, in which nothing ran");
        let stack_name = names::install_stack(&self.tenant, &install);
        Ok(InstallDeleted { install, account, region, stack_name })
    }

    async fn writes(&self, stored: &Stored<Install>) -> Result<Vec<Write>, AppError> {
        let (store, id) = (&*self.store, &stored.value.id);
        let former: Option<Stored<FormerInstalls>> = load(store, &former_installs_key(id)).await?;
        let (count, expect) =
            former.map_or((0, Expect::Absent), |former| (former.value.count, Expect::Rev(former.rev)));
        let mut writes = vec![
            Write::DeleteAt { key: install_key(id), rev: stored.rev },
            Write::Delete { key: install_entry_key(id) },
            put(&FormerInstalls { install: id.clone(), count: count + 1 }, expect)?,
        ];
        writes.extend(self.end_of_provisioning(&stored.value).await?);
        writes.extend(self.freed_prefixes(id).await?);
        Ok(writes)
    }

    /// Returns the write that ends the workflow that has locked the install. The workflow's entry in the list of open
    /// workflows remains, so that `sweep` finds it.
    async fn end_of_provisioning(&self, install: &Install) -> Result<Option<Write>, AppError> {
        let Some(live) = &install.live else { return Ok(None) };
        let Some(found) = table::find_workflow(&*self.store, live).await? else { return Ok(None) };
        let now = self.clock.now();
        let ended = found.value.cancel(now).workflow.finish(None, now);
        ended.changed.then(|| table::put_workflow(&ended.workflow, Expect::Rev(found.rev))).transpose()
    }

    /// Returns the writes that free the reserved prefixes of the name `id`, except the prefixes of another install's
    /// name. If an install is created meanwhile, it raises the revisions of its prefixes; the commit then fails and is
    /// decided again.
    async fn freed_prefixes(&self, id: &InstallId) -> Result<Vec<Write>, AppError> {
        let first = id.as_str().get(..1).unwrap_or_default();
        let entries: Vec<InstallEntry> = load_all(&*self.store, "installs", first).await?;
        let mut writes = Vec::new();
        for prefix in name_prefixes(id) {
            let needed =
                entries.iter().any(|entry| entry.install != *id && entry.install.as_str().starts_with(prefix.as_str()));
            if needed {
                continue;
            }
            let key = prefix_key(prefix.as_str());
            if let Some(row) = self.store.get(&key).await? {
                writes.push(Write::DeleteAt { key, rev: row.rev });
            }
        }
        Ok(writes)
    }
}
