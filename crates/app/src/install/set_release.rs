//! Sets what an install follows: pins it to a release, lets it follow a channel, or lets it follow the latest version.

use std::sync::Arc;

use freehold_domain::install::Install;
use freehold_protocol::InstallId;
use freehold_protocol::api::SetReleaseRequest;
use freehold_protocol::order::AskedBy;

use crate::AppError;
use crate::app_version::install_release::{following, leaving};
use crate::ports::{Clock, Expect, Store};
use crate::release::follow_channel::first_try;
use crate::table::{self, Decided, put};

/// The use case that sets what an install follows, with its ports.
#[derive(Clone)]
pub struct SetRelease {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
}

impl SetRelease {
    /// Sets what the install follows, on request of `by`. An install that begins to follow a channel gets the channel's
    /// release within minutes: the commit stores the task that starts the deploy. A pin to a release starts nothing and
    /// applies from the next deploy on.
    ///
    /// # Errors
    /// NotFound for an install, release or channel that does not exist, or the store's errors.
    pub async fn set(&self, id: &InstallId, request: &SetReleaseRequest, by: &AskedBy) -> Result<Install, AppError> {
        let store = &*self.store;
        table::change(store, ("install", id), || async {
            let stored = table::install(store, id).await?;
            stored.value.check_kept()?;
            let app = stored.value.require_app()?.clone();
            if stored.value.follows == request.release {
                return Ok(Decided::Keep(stored.value));
            }
            let now = self.clock.now();
            let changed = Install { follows: request.release.clone(), follows_since: now, ..stored.value.clone() };
            let mut writes = leaving(&stored.value);
            let (more, channel) = following(store, &app, &changed).await?;
            writes.extend(more);
            if let Some(channel) = channel {
                writes.push(put(&first_try(now, id, &channel, by.clone()), Expect::Any)?);
            }
            writes.push(put(&changed, Expect::Rev(stored.rev))?);
            Ok(Decided::Commit(writes, changed))
        })
        .await
    }
}
