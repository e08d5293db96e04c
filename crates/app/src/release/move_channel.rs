//! Moves a channel of an app to a release. The installs that follow the channel are deployed by tasks that are due.

use std::sync::Arc;

use freehold_domain::install::follows::{Channel, MAX_CHANNELS};
use freehold_protocol::api::{ChannelView, MoveChannelRequest};
use freehold_protocol::order::AskedBy;
use freehold_protocol::{AppName, ChannelName};

use crate::AppError;
use crate::ports::{Clock, Expect, Store};
use crate::read::channel_view;
use crate::table::{self, Decided, Due, DueWhat, Stored, channel_key, load, put};

/// The use case that moves a channel, with its ports.
#[derive(Clone)]
pub struct MoveChannel {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
}

impl MoveChannel {
    /// Moves the channel on request of `by`; the first move creates it. A move to the release that the channel has
    /// changes nothing, unless the request asks for the deploys again. The commit also stores the task that deploys the
    /// followers, so that no move lacks this task.
    ///
    /// # Errors
    /// NotFound for an app or a release that does not exist, Conflict when the app has too many channels, or when a
    /// request asks for the deploys again after the channel was moved to another release; or the store's errors.
    pub async fn move_channel(
        &self,
        app: &AppName,
        name: &ChannelName,
        request: &MoveChannelRequest,
        by: &AskedBy,
    ) -> Result<ChannelView, AppError> {
        self.move_from(None, (app, name), request, by).await
    }

    /// Moves the channel as [`Self::move_channel`] does, but only if it has been moved `moves` times so far.
    ///
    /// # Errors
    /// Those of [`Self::move_channel`], and Conflict when the channel was moved to another release meanwhile.
    pub(crate) async fn move_channel_after(
        &self,
        moves: u64,
        channel: (&AppName, &ChannelName),
        request: &MoveChannelRequest,
        by: &AskedBy,
    ) -> Result<ChannelView, AppError> {
        self.move_from(Some(moves), channel, request, by).await
    }

    async fn move_from(
        &self,
        moves: Option<u64>,
        (app, name): (&AppName, &ChannelName),
        request: &MoveChannelRequest,
        by: &AskedBy,
    ) -> Result<ChannelView, AppError> {
        let store = &*self.store;
        table::app(store, app).await?;
        table::release(store, app, &request.release).await?;
        let channel = table::change(store, ("channel", name), || async {
            let known: Option<Stored<Channel>> = load(store, &channel_key(app, name)).await?;
            let now = self.clock.now();
            let has = known.as_ref().map_or(0, |known| known.value.moves);
            let is_moved = |expected: Option<u64>| expected.is_some_and(|moves| moves != has);
            let refused = if is_moved(moves) {
                Some(format!(
                    "channel `{name}` was moved by somebody else since this call first came; sign a new call to move it again"
                ))
            } else if is_moved(request.again_after) {
                Some(format!(
                    "channel `{name}` was moved meanwhile, or has not been moved yet; see `freehold channel list {app}`"
                ))
            } else {
                None
            };
            if let Some(message) = refused {
                let same = known.map(|known| known.value).filter(|known| known.release == request.release);
                return same.map(Decided::Keep).ok_or_else(|| AppError::conflict(message));
            }
            let (channel, expect) = match known {
                Some(known) => match known.value.moved(&request.release, by, now) {
                    Some(moved) => (moved, Expect::Rev(known.rev)),
                    None if request.again_after.is_some() => (known.value.moved_again(by, now), Expect::Rev(known.rev)),
                    None => return Ok(Decided::Keep(known.value)),
                },
                None => {
                    self.check_number(app).await?;
                    let release = request.release.clone();
                    (Channel::new(app.clone(), name.clone(), release, by.clone(), now), Expect::Absent)
                }
            };
            let what = DueWhat::Channel { app: app.clone(), channel: name.clone(), moves: channel.moves, after: None };
            let due = Due::at(now, table::reserved_install()?, what);
            Ok(Decided::Commit(vec![put(&channel, expect)?, put(&due, Expect::Any)?], channel))
        })
        .await?;
        tracing::info!("Channel `{name}` of app `{app}` has release `{}`", channel.release);
        channel_view(store, channel).await
    }

    async fn check_number(&self, app: &AppName) -> Result<(), AppError> {
        if table::channels(&*self.store, app).await?.len() < MAX_CHANNELS {
            return Ok(());
        }
        Err(AppError::conflict(format!(
            "app `{app}` has {MAX_CHANNELS} channels, which is the maximum; move one that `freehold channel list \
             {app}` shows"
        )))
    }
}
