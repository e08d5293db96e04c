//! `freehold app sync`: reads a config, resolves branches, uploads new sources and creates the version.

use freehold_appconfig::Loaded;
use freehold_client::calls;
use freehold_protocol::api::{AppView, SourceUpload, SyncAppRequest, UploadSourceRequest, VersionView};
use freehold_protocol::app_version::check_size;
use freehold_protocol::limits::MAX_TABLE_VERSION_BYTES;
use freehold_protocol::{AppName, Digest, canonical};
use serde_json::json;

use super::check::checked_dir;
use super::{Sync, fetch, git};
use crate::api::Api;
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::output::bytes as size_of;
use crate::progress::Progress;

impl Sync {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let dir = checked_dir(&self.dir)?;
        let progress = Progress::start();
        let mut loaded = fetch::load(dir, &progress, freehold_appconfig::load_with).await?;
        if !loaded.warnings.is_empty() {
            progress.say(&loaded.warnings.to_string());
        }
        resolve(&mut loaded, &progress).await?;
        let bytes = canonical::to_vec(&loaded.version)
            .map_err(|e| Error::internal(format!("cannot write the app version as JSON: {e}")))?;
        let digest = Digest::of(&bytes);
        check_size(&bytes).map_err(|e| Error::invalid(format!("app `{}` is too large: {e}", loaded.version.app)))?;
        let api = context.api().await?;
        let app = loaded.version.app.clone();
        let before = latest(&api, &app).await?;
        let unchanged = before.as_ref().filter(|view| view.latest == digest);
        // A version that is too large for the table is stored in a bucket. It is uploaded again, because its object may
        // have been deleted.
        if let Some(before) = unchanged.filter(|_| bytes.len() <= MAX_TABLE_VERSION_BYTES) {
            drop(progress);
            return show(context, &app, before.number, &digest, false, 0);
        }
        let uploaded = upload(&api, &app, &loaded, &progress).await?;
        progress.now("making the version");
        let body = SyncAppRequest { document: loaded.version };
        let view: VersionView = api.send(calls::sync_app(&app, &body)).await?;
        drop(progress);
        if view.version != digest {
            return Err(Error::internal(format!(
                "the API computed the digest {} for this version, but this command computed {digest}; update \
                 `freehold`",
                view.version
            )));
        }
        show(context, &app, view.number, &view.version, unchanged.is_none(), uploaded)
    }
}

fn show(context: &Context, app: &AppName, number: u64, version: &Digest, changed: bool, uploaded: usize) -> Result<()> {
    let value = json!({ "app": app, "number": number, "version": version, "changed": changed, "uploaded": uploaded });
    context.out.show(&value, |_| {
        if changed {
            format!("app `{app}` is at version {number}\n{version}")
        } else {
            format!("app `{app}` has not changed: version {number}\n{version}")
        }
    })
}

/// Resolves each branch to a commit. Each branch is looked up only once.
pub(super) async fn resolve(loaded: &mut Loaded, progress: &Progress) -> Result<()> {
    for git in loaded.unresolved.clone() {
        progress.now(format!("asking {} for the commit of `{}`", git.url, git.branch));
        let commit = git::commit_of(&git.url, &git.branch).await?;
        loaded.resolve(&git.url, &git.branch, &commit).map_err(|e| Error::invalid(e.to_string()))?;
    }
    Ok(())
}

async fn latest(api: &Api, app: &AppName) -> Result<Option<AppView>> {
    match api.send(calls::show_app(app)).await {
        Ok(view) => Ok(Some(view)),
        Err(error) if error.kind() == Kind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Uploads the local sources, without duplicates. Returns the number of uploads.
async fn upload(api: &Api, app: &AppName, loaded: &Loaded, progress: &Progress) -> Result<usize> {
    let mut done: Vec<&Digest> = Vec::new();
    for source in &loaded.sources {
        if done.contains(&&source.digest) {
            continue;
        }
        let size = source.archive.len() as u64;
        progress.now(format!("uploading the source of {} ({})", source.owner, size_of(size)));
        let ask = UploadSourceRequest { digest: source.digest.clone(), size };
        let part: String = source.digest.hex().chars().take(16).collect();
        let place: SourceUpload = api.send_part(calls::upload_source(app, &ask), &part).await?;
        let sent = api.upload(&place.url, &source.archive).await;
        sent.map_err(|e| e.within(format!("source of {}", source.owner)))?;
        done.push(&source.digest);
    }
    Ok(done.len())
}
