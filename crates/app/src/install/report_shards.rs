//! Assigns a reports queue to each install, and sets which accounts may send to each queue. A call reads the rows of
//! one shard, however many installs the tenant has.

use std::collections::BTreeSet;
use std::sync::Arc;

use freehold_domain::install::Install;
use freehold_domain::reports::shards::{ReportShard, ReportShards};
use freehold_protocol::InstallId;

use crate::ports::{Expect, QueueAdmin, Store, Write};
use crate::table::{
    self, Decided, Forgetting, InstallEntry, Stored, TRIES, load, load_all, put, report_shard_key, report_shards_key,
};
use crate::{AppError, Kind};

/// The shards of the tenant, with the ports that they need.
#[derive(Clone)]
pub(super) struct Shards {
    pub(super) store: Arc<dyn Store>,
    pub(super) queues: Arc<dyn QueueAdmin>,
}

/// A row, and the condition under which its next version is written.
type Found<T> = (T, Expect);

impl Shards {
    /// Returns the number of the install's shard. Assigns a shard if the install has none.
    ///
    /// # Errors
    /// Conflict for an install that is being forgotten, or the store's errors.
    pub(super) async fn assign(&self, install: &InstallId) -> Result<u32, AppError> {
        // The loop ends: each iteration without a number has removed a shard from the list of shards that installs have
        // left, or has begun a new shard, which has room because it is empty.
        loop {
            if let Some(number) = self.try_assign(install).await? {
                return Ok(number);
            }
        }
    }

    /// Returns the number of the install's shard, or `None` after it recorded that the candidate shard is full.
    async fn try_assign(&self, id: &InstallId) -> Result<Option<u32>, AppError> {
        table::change(&*self.store, ("the reports queue of install", id), || async {
            let stored = table::install(&*self.store, id).await?;
            stored.value.check_kept()?;
            if let Some(number) = stored.value.reports_shard {
                return Ok(Decided::Keep(Some(number)));
            }
            let (shards, expect) = shards(&*self.store).await?;
            // The stack of an install that was registered before shards existed names the first queue.
            let is_older = stored.value.orders_queue_url.is_some();
            let number = if is_older { ReportShard::FIRST } else { shards.candidate() };
            let (mut shard, rev) = shard(&*self.store, number).await?;
            if !is_older && !shard.has_room_for(&stored.value.account) {
                let next = shards.without_room_in(number);
                tracing::info!(
                    "Reports queue {number} has no room for install `{id}`; queue {} is next",
                    next.candidate()
                );
                return Ok(Decided::Commit(vec![put(&next, expect)?], None));
            }
            shard.installs.insert(id.clone(), stored.value.account.clone());
            let install = Install { reports_shard: Some(number), ..stored.value };
            Ok(Decided::Commit(vec![put(&shard, rev)?, put(&install, Expect::Rev(stored.rev))?], Some(number)))
        })
        .await
    }

    /// Removes the install from its shard. Also removes its account's permission to send, if no other install of the
    /// shard is in this account.
    ///
    /// # Errors
    /// The errors of the store and the queue service.
    pub(super) async fn leave(&self, install: &Install) -> Result<(), AppError> {
        table::change(&*self.store, ("the reports queue of install", &install.id), || async {
            let writes = leaving(&*self.store, install).await?;
            Ok(if writes.is_empty() { Decided::Keep(()) } else { Decided::Commit(writes, ()) })
        })
        .await?;
        self.admit(shard_of(install)).await
    }

    /// Writes the policy of a shard's queue until it names exactly the accounts of the shard. One write is not enough:
    /// when two installs register at the same time, the later writer may have read the older list.
    ///
    /// # Errors
    /// The errors of the store and the queue service, or Transient while others change the shard.
    pub(super) async fn admit(&self, number: u32) -> Result<(), AppError> {
        for _ in 0..TRIES {
            let (shard, rev) = shard(&*self.store, number).await?;
            let accounts: BTreeSet<_> = shard.accounts().into_iter().cloned().collect();
            self.queues.allow_reporters(number, &accounts).await?;
            let now = self.store.get(&report_shard_key(number)).await?;
            if now.map_or(Expect::Absent, |row| Expect::Rev(row.rev)) == rev {
                return Ok(());
            }
        }
        Err(AppError::new(
            Kind::Transient,
            "other installs are being created or forgotten at the same time, so the policy of the reports queue is not \
             complete; try again",
        ))
    }
}

/// Returns the number of the shard that the install has, or had before shards existed.
fn shard_of(install: &Install) -> u32 {
    install.reports_shard.unwrap_or(ReportShard::FIRST)
}

/// Returns the writes that remove an install from its shard; no writes if the install has no shard.
///
/// # Errors
/// The store's errors.
pub(super) async fn leaving(store: &dyn Store, install: &Install) -> Result<Vec<Write>, AppError> {
    let number = shard_of(install);
    let (mut shard, rev) = shard(store, number).await?;
    if shard.installs.remove(&install.id).is_none() {
        return Ok(Vec::new());
    }
    let mut writes = vec![put(&shard, rev)?];
    let (known, expect) = shards(store).await?;
    let next = known.after_leaving(number);
    if next != known {
        writes.push(put(&next, expect)?);
    }
    Ok(writes)
}

async fn shards(store: &dyn Store) -> Result<Found<ReportShards>, AppError> {
    let found: Option<Stored<ReportShards>> = load(store, &report_shards_key()).await?;
    Ok(found.map_or_else(|| (ReportShards::default(), Expect::Absent), |found| (found.value, Expect::Rev(found.rev))))
}

/// Loads a shard. A tenant of the version before shards has no row of the first shard: all its installs are in it.
async fn shard(store: &dyn Store, number: u32) -> Result<Found<ReportShard>, AppError> {
    let found: Option<Stored<ReportShard>> = load(store, &report_shard_key(number)).await?;
    if let Some(found) = found {
        return Ok((found.value, Expect::Rev(found.rev)));
    }
    let mut shard = ReportShard::new(number);
    if number == ReportShard::FIRST {
        let going: Vec<Forgetting> = load_all(store, "forgetting", "").await?;
        let entries: Vec<InstallEntry> = load_all(store, "installs", "").await?;
        let kept = entries.into_iter().filter(|entry| !going.iter().any(|one| one.install == entry.install));
        shard.installs = kept.map(|entry| (entry.install, entry.account)).collect();
    }
    Ok((shard, Expect::Absent))
}
