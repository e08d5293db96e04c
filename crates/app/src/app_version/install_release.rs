//! The target that an install follows: the latest version of its app, one release, or the release of a channel.

use freehold_domain::install::Install;
use freehold_domain::install::follows::{Channel, Named, check_wanted};
use freehold_protocol::api::Follows;
use freehold_protocol::{AppName, ReleaseName};

use crate::AppError;
use crate::app_version::versions::{Version, Versions};
use crate::ports::{Expect, Store, Write};
use crate::table::{self, Follower, NotFollowed, Record as _, put};

/// A version to deploy, and the release that its artifacts have to belong to.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub version: Version,
    pub release: Option<ReleaseName>,
}

/// Returns the version, and the release if there is one, that an install which follows `follows` deploys now.
///
/// # Errors
/// NotFound for a release or channel that does not exist, or the errors of [`Versions::load`].
pub(crate) async fn followed(versions: &Versions, app: &AppName, follows: &Follows) -> Result<Wanted, AppError> {
    let store = &*versions.store;
    let name = match follows {
        Follows::Latest => return Ok(Wanted { version: versions.load(app, None).await?, release: None }),
        Follows::Release { release } => release.clone(),
        Follows::Channel { channel } => table::channel(store, app, channel).await?.value.release,
    };
    let release = table::release(store, app, &name).await?;
    let version = versions.load(app, Some(&release.contents.version)).await?;
    Ok(Wanted { version, release: Some(name) })
}

/// Returns the version, and the release if there is one, for a deploy of `install` whose request names `named`.
///
/// # Errors
/// Invalid for a version beside a release, Conflict if the install follows another release, or the errors of [`followed`].
pub(crate) async fn wanted(versions: &Versions, install: &Install, named: Named<'_>) -> Result<Wanted, AppError> {
    let app = install.require_app()?;
    if named.release.is_some() && named.version.is_some() {
        return Err(AppError::invalid("a deploy takes a version or a release, not both; leave one out"));
    }
    if !install.follows.is_latest() {
        let wanted = followed(versions, app, &install.follows).await?;
        let version = &wanted.version.version;
        check_wanted(install, wanted.release.as_ref().map(|release| (release, version)), named)?;
        return Ok(wanted);
    }
    if let Some(name) = named.release {
        return followed(versions, app, &Follows::Release { release: name.clone() }).await;
    }
    Ok(Wanted { version: versions.load(app, named.version).await?, release: None })
}

/// Returns the writes that list the install as a follower of its channel, if it follows a channel. Also returns the
/// channel, as proof that the channel exists.
///
/// # Errors
/// NotFound for a channel or a release that does not exist, or the store's errors.
pub(crate) async fn following(
    store: &dyn Store,
    app: &AppName,
    install: &Install,
) -> Result<(Vec<Write>, Option<Channel>), AppError> {
    match &install.follows {
        Follows::Latest => Ok((Vec::new(), None)),
        Follows::Release { release } => {
            table::release(store, app, release).await?;
            Ok((Vec::new(), None))
        }
        Follows::Channel { channel } => {
            let found = table::channel(store, app, channel).await?.value;
            let (app, channel, install) = (app.clone(), channel.clone(), install.id.clone());
            Ok((vec![put(&Follower { app, channel, install }, Expect::Any)?], Some(found)))
        }
    }
}

/// Returns the writes that remove `install` from the followers of its channel, and that remove the stored reason.
pub(crate) fn leaving(install: &Install) -> Vec<Write> {
    let mut writes = vec![Write::Delete { key: table::not_followed_key(&install.id) }];
    if let (Follows::Channel { channel }, Some(app)) = (&install.follows, install.app()) {
        let follower = Follower { app: app.clone(), channel: channel.clone(), install: install.id.clone() };
        writes.push(Write::Delete { key: follower.key() });
    }
    writes
}

/// Returns the sentence about a release that could not be deployed when its channel moved there.
pub(crate) fn not_followed_text(known: &NotFollowed) -> String {
    format!(
        "release `{}` of channel `{}` is not deployed yet; the deploy is tried again: {}",
        known.release, known.channel, known.reason
    )
}
