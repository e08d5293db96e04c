//! The writes that remove an install which is deleted or forgotten.

use freehold_domain::install::Install;
use freehold_protocol::{Digest, InstallId};

use super::report_shards::leaving;
use crate::app_version::install_release;
use crate::ports::{Committed, Store, Write};
use crate::table::{self, GoneInstalls, Stored, install_entry_key, install_key, name_prefixes, prefix_key, put};
use crate::{AppError, Kind, webhook};

/// The maximum number of writes of webhooks in the commit that ends an install. The commit has up to 30 other writes,
/// and DynamoDB accepts 100 in one transaction.
const MOST_WEBHOOK_WRITES: usize = 70;

/// Returns the writes that remove the install's row, its entry in the list and in its shard, free its name, and count it
/// as gone.
///
/// # Errors
/// The store's errors.
pub(super) async fn end_writes(store: &dyn Store, stored: &Stored<Install>) -> Result<Vec<Write>, AppError> {
    let id = &stored.value.id;
    let (gone, expect) = table::gone_installs(store).await?;
    let last = Digest::of(&serde_json::to_vec(&stored.value)?);
    let gone = GoneInstalls { count: gone.count.saturating_add(1), last: Some(last) };
    let mut writes = vec![
        Write::DeleteAt { key: install_key(id), rev: stored.rev },
        Write::Delete { key: install_entry_key(id) },
        put(&gone, expect)?,
    ];
    writes.extend(leaving(store, &stored.value).await?);
    writes.extend(install_release::leaving(&stored.value));
    writes.extend(remove_most(store, webhook::leaving(store, id).await?).await?);
    writes.extend(freed_prefixes(store, id).await?);
    Ok(writes)
}

/// Removes the webhooks of an install that do not fit into the commit that ends the install. Returns the writes for the
/// other webhooks. The removed webhooks stay removed even if the install is then kept because its runner has announced
/// itself meanwhile.
async fn remove_most(store: &dyn Store, mut webhooks: Vec<Write>) -> Result<Vec<Write>, AppError> {
    while webhooks.len() > MOST_WEBHOOK_WRITES {
        let some = webhooks.split_off(webhooks.len() - MOST_WEBHOOK_WRITES);
        if let Committed::Conflict(key) = store.commit(some).await? {
            let message = format!("webhook `{}` has changed while its install was removed; try again", key.sk);
            return Err(AppError::new(Kind::Transient, message));
        }
    }
    Ok(webhooks)
}

/// Returns the writes that free the reserved prefixes of the name `id`, except the prefixes of another install's name.
/// If an install is created meanwhile, it raises the revisions of its prefixes; the commit then fails and is decided
/// again.
async fn freed_prefixes(store: &dyn Store, id: &InstallId) -> Result<Vec<Write>, AppError> {
    let mut writes = Vec::new();
    for prefix in name_prefixes(id) {
        // If the query returns a second row, another install needs the prefix.
        if store.query("installs", prefix.as_str(), None, 2).await?.len() > 1 {
            continue;
        }
        let key = prefix_key(prefix.as_str());
        if let Some(row) = store.get(&key).await? {
            writes.push(Write::DeleteAt { key, rev: row.rev });
        }
    }
    Ok(writes)
}
