//! Detects when the runner of an install goes away and comes back. A task is due at the time at which the runner would
//! count as silent, so nothing is polled: while the runner reports, the task is moved to a later time every hour or
//! two.

use freehold_domain::Install;
use freehold_domain::install::connection::{ConnectionState, SILENT_SECS};
use freehold_domain::notification::{runner_away, runner_back};
use freehold_protocol::{InstallId, Timestamp};

use super::task::notify_at;
use crate::AppError;
use crate::ports::{Expect, Store, Write};
use crate::table::{self, Contact, Due, DueWhat, Record as _, Stored, contact_key, load, put};

/// The time in seconds for which a runner that reported its stop may be away before a notification is sent: machines
/// are replaced and programs are upgraded in this time.
const PAUSED_SECS: u64 = 10 * 60;

/// Returns the writes that belong to a change of the contact with an install's runner: the task that detects when the
/// runner is away, and the notification that the runner is back. Records both in `next`.
///
/// # Errors
/// The store's errors.
pub(crate) async fn on_contact(
    store: &dyn Store,
    before: Option<&Contact>,
    next: &mut Contact,
    now: Timestamp,
) -> Result<Vec<Write>, AppError> {
    // The build runner sleeps while there is nothing to build.
    if next.install == table::reserved_install()? {
        return Ok(Vec::new());
    }
    let mut writes = Vec::new();
    let connection = next.contact.connection(None, now);
    let is_there = connection.state == ConnectionState::Connected;
    if let Some(since) = next.notified_away_since.filter(|_| is_there) {
        next.notified_away_since = None;
        let install = find_install(store, &next.install).await?;
        let notification = runner_back(&next.install, install.as_ref().and_then(Install::app), since, connection.since);
        writes.push(notify_at(now, &next.install, notification)?);
    }
    let (was_away, was_cut_off) =
        before.map_or((false, false), |before| (before.contact.away.is_some(), before.contact.is_cut_off()));
    if next.contact.is_cut_off() && !was_cut_off {
        next.notified_away_since = None;
        writes.push(look_at(now, &next.install)?);
    } else if next.contact.away.is_some() && !was_away {
        writes.push(look_at(now.plus_secs(PAUSED_SECS), &next.install)?);
    }
    if is_there && !next.watched {
        next.watched = true;
        writes.push(look_at(next.contact.at.plus_secs(SILENT_SECS), &next.install)?);
    }
    Ok(writes)
}

/// Returns the writes of a task that is due: the writes of the notification if the runner is away, and otherwise the
/// writes that move the task to a later time.
///
/// # Errors
/// The store's errors.
pub(crate) async fn look(store: &dyn Store, row: &Stored<Due>, now: Timestamp) -> Result<Vec<Write>, AppError> {
    let id = &row.value.install;
    let mut writes = vec![Write::DeleteAt { key: row.value.key(), rev: row.rev }];
    let install = find_install(store, id).await?.filter(|install| install.forgetting.is_none());
    let contact: Option<Stored<Contact>> = load(store, &contact_key(id)).await?;
    let (Some(install), Some(Stored { value: mut contact, rev })) = (install, contact) else { return Ok(writes) };
    let connection = contact.contact.connection(None, now);
    let Some(notification) = runner_away(id, install.app(), &connection) else {
        let next = contact.contact.at.plus_secs(SILENT_SECS).max(now.plus_secs(60));
        writes.push(look_at(next, id)?);
        return Ok(writes);
    };
    if contact.notified_away_since.is_none() {
        writes.push(notify_at(now, id, notification)?);
        (contact.notified_away_since, contact.watched) = (Some(connection.since), false);
        writes.push(put(&contact, Expect::Rev(rev))?);
    }
    Ok(writes)
}

fn look_at(at: Timestamp, install: &InstallId) -> Result<Write, AppError> {
    put(&Due::at(at, install.clone(), DueWhat::RunnerAway), Expect::Any)
}

async fn find_install(store: &dyn Store, id: &InstallId) -> Result<Option<Install>, AppError> {
    let found: Option<Stored<Install>> = load(store, &table::install_key(id)).await?;
    Ok(found.map(|found| found.value))
}
