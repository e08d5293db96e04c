//! Deploys the installs that follow a channel after the channel has moved: a bounded number of installs each minute,
//! and each install once per move.

use std::sync::Arc;

use freehold_domain::install::Install;
use freehold_domain::install::follows::Channel;
use freehold_protocol::api::{DeployComponentsRequest, Follows};
use freehold_protocol::order::AskedBy;
use freehold_protocol::{AppName, ChannelName, InstallId, Timestamp};

use crate::AppError;
use crate::app_version::versions::Versions;
use crate::new_workflow::Asked;
use crate::ports::{Clock, Expect, Machines, Store, Write};
use crate::table::{self, Due, DueWhat, NotFollowed, RanRecord, Stored, channel_key, load, put};
use crate::workflow::deploy_components::DeployComponents;

/// The number of installs whose deploy is due in the same minute after a move.
const PER_MINUTE: usize = 50;
/// The maximum number of followers for which one call stores tasks; the next call continues.
const PER_CALL: u32 = 1000;
/// The pause before the second try of an install whose deploy cannot start yet, in seconds. Each pause is twice the
/// previous pause.
const FIRST_PAUSE_SECS: u64 = 5 * 60;
/// The longest pause, in seconds.
const LAST_PAUSE_SECS: u64 = 60 * 60;
/// The maximum number of writes in one commit (DynamoDB API reference, `TransactWriteItems`).
const COMMIT_ROWS: usize = 100;

/// The use case that lets installs follow their channels, with its ports.
#[derive(Clone)]
pub struct FollowChannel {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    pub clock: Arc<dyn Clock>,
}

impl FollowChannel {
    /// Stores one task for each install that follows the channel, beginning after the install `after`. The tasks deploy the
    /// release of the channel's move number `moves`. Returns a task for the remaining installs if one call cannot handle
    /// all of them. A repeated call stores the same tasks, perhaps with a later time, and still deploys each install once.
    ///
    /// # Errors
    /// The store's errors.
    pub async fn spread(
        &self,
        app: &AppName,
        name: &ChannelName,
        (moves, after): (u64, Option<&InstallId>),
    ) -> Result<Option<Due>, AppError> {
        let found: Option<Stored<Channel>> = load(&*self.store, &channel_key(app, name)).await?;
        // A later move has its own task.
        let Some(channel) = found.map(|found| found.value).filter(|found| found.moves == moves) else {
            return Ok(None);
        };
        let now = self.clock.now();
        let followers = table::followers(&*self.store, app, name, after, PER_CALL).await?;
        let mut writes = Vec::new();
        for (at, follower) in followers.iter().enumerate() {
            let minutes = u64::try_from(at / PER_MINUTE).unwrap_or(u64::MAX);
            let due = first_try(now.plus_secs(minutes * 60), &follower.install, &channel, channel.moved_by.clone());
            writes.push(put(&due, Expect::Any)?);
        }
        for some in writes.chunks(COMMIT_ROWS) {
            let _ = self.store.commit(some.to_vec()).await?;
        }
        if followers.len() < PER_CALL as usize {
            return Ok(None);
        }
        let minutes = u64::from(PER_CALL) / PER_MINUTE as u64;
        let what = DueWhat::Channel {
            app: app.clone(),
            channel: name.clone(),
            moves,
            after: followers.last().map(|last| last.install.clone()),
        };
        Ok(Some(Due::at(now.plus_secs(minutes * 60), table::reserved_install()?, what)))
    }

    /// Starts the deploy of the release that the install's channel has, or returns the task that tries it later, with
    /// the reason stored for `freehold install show`. Nothing starts in an install that does not follow a channel any
    /// more, or that has the release's version. A second or later try does nothing when the channel has moved again,
    /// because that move has its own task.
    ///
    /// # Errors
    /// The errors of the store and Step Functions.
    pub async fn follow(
        &self,
        id: &InstallId,
        by: &AskedBy,
        (moves, tries): (u64, u32),
    ) -> Result<Option<Due>, AppError> {
        let Some((install, channel)) = self.install_and_channel(id).await? else { return Ok(None) };
        if tries > 0 && channel.moves > moves {
            return Ok(None);
        }
        let refused = match self.deploy(&install, &channel, by).await {
            Ok(()) => {
                self.note(id, None).await?;
                return Ok(None);
            }
            Err(error) => error.refusal()?,
        };
        tracing::info!(install.id = %id, "Install `{id}` does not follow channel `{}` yet: {refused}", channel.name);
        let now = self.clock.now();
        let Channel { name, release, moves, .. } = channel;
        self.note(id, Some(NotFollowed { install: id.clone(), channel: name, release, at: now, reason: refused }))
            .await?;
        let what = DueWhat::Follow { by: by.clone(), moves, tries: tries.saturating_add(1) };
        Ok(Some(Due::at(now.plus_secs(pause_secs(tries)), id.clone(), what)))
    }

    /// Returns the install and its channel; `None` when the install is gone or follows no channel.
    async fn install_and_channel(&self, id: &InstallId) -> Result<Option<(Install, Channel)>, AppError> {
        let found: Option<Stored<Install>> = load(&*self.store, &table::install_key(id)).await?;
        let Some(install) = found.map(|found| found.value).filter(|install| install.forgetting.is_none()) else {
            return Ok(None);
        };
        let (Follows::Channel { channel }, Some(app)) = (&install.follows, install.app()) else { return Ok(None) };
        let channel = table::channel(&*self.store, app, channel).await?.value;
        Ok(Some((install, channel)))
    }

    async fn deploy(&self, install: &Install, channel: &Channel, by: &AskedBy) -> Result<(), AppError> {
        let release = table::release(&*self.store, &channel.app, &channel.release).await?;
        if install.version() == Some(&release.contents.version) && self.is_settled(install).await? {
            return Ok(());
        }
        let deploy = DeployComponents {
            store: Arc::clone(&self.store),
            versions: self.versions.clone(),
            machines: Arc::clone(&self.machines),
            clock: Arc::clone(&self.clock),
        };
        let cause = channel.cause(install);
        let request = DeployComponentsRequest { release: Some(channel.release.clone()), ..Default::default() };
        deploy.deploy(&install.id, &request, Asked { by, cause: &cause, step: None }).await?;
        Ok(())
    }

    /// Returns whether nothing has changed the install since the last deploy of all components. Otherwise the install
    /// may have parts of another release, or may get them from the workflow that has locked it.
    async fn is_settled(&self, install: &Install) -> Result<bool, AppError> {
        let ran: Option<Stored<RanRecord>> = load(&*self.store, &table::ran_key(&install.id)).await?;
        Ok(install.live.is_none() && ran.is_some_and(|ran| ran.value.serial == install.last_exclusive))
    }

    /// Stores why the install does not follow its channel, or removes a reason that is stored.
    async fn note(&self, id: &InstallId, why: Option<NotFollowed>) -> Result<(), AppError> {
        let key = table::not_followed_key(id);
        let write = match why {
            Some(why) => put(&why, Expect::Any)?,
            None if self.store.get(&key).await?.is_none() => return Ok(()),
            None => Write::Delete { key },
        };
        let _ = self.store.commit(vec![write]).await?;
        Ok(())
    }
}

/// Returns the task that deploys an install which follows the channel, at the minute of `at`.
pub(crate) fn first_try(at: Timestamp, install: &InstallId, channel: &Channel, by: AskedBy) -> Due {
    Due::at(at, install.clone(), DueWhat::Follow { by, moves: channel.moves, tries: 0 })
}

/// Returns the pause before the next try, in seconds.
fn pause_secs(tries: u32) -> u64 {
    (FIRST_PAUSE_SECS << tries.min(8)).min(LAST_PAUSE_SECS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_an_hour() {
        let minutes: Vec<u64> = [0, 1, 2, 3, 4, 40, u32::MAX].map(|tries| pause_secs(tries) / 60).to_vec();

        assert_eq!(minutes, [5, 10, 20, 40, 60, 60, 60]);
    }
}
