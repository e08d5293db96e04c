//! Stores an app version, and hands out where its packed sources go.

use std::sync::Arc;

use freehold_protocol::api::{PutSource, SourceUpload, VersionView};
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::limits::MAX_APP_VERSION_BYTES;
use freehold_protocol::{AppName, canonical};

use crate::AppError;
use crate::ports::{Clock, Committed, Expect, Objects, Store};
use crate::records::{self, AppRecord, Stored, VersionRecord, app_key, load, put, version_key};

/// The largest packed source, in bytes.
pub const MAX_SOURCE_BYTES: u64 = 512 * 1024 * 1024;
/// How long an upload URL lasts, in seconds.
pub const UPLOAD_SECS: u64 = 900;

/// What syncing needs.
#[derive(Clone)]
pub struct SyncApp {
    pub store: Arc<dyn Store>,
    pub objects: Arc<dyn Objects>,
    pub clock: Arc<dyn Clock>,
}

impl SyncApp {
    /// Returns where the source with this digest is to be put.
    ///
    /// # Errors
    /// Invalid for one that is too large.
    pub async fn put_source(&self, source: &PutSource) -> Result<SourceUpload, AppError> {
        if source.size > MAX_SOURCE_BYTES {
            return Err(AppError::invalid(format!(
                "source `{}` has {} bytes, more than the {MAX_SOURCE_BYTES} that are taken; leave out what the build \
                 does not need",
                source.digest, source.size
            )));
        }
        let url = self.objects.presign_source(&source.digest, source.size, UPLOAD_SECS).await?;
        Ok(SourceUpload { url })
    }

    /// Stores `document` as the app's latest version; the same document again is the same version.
    ///
    /// # Errors
    /// Invalid for a document that is too large or not of this app, or the store's.
    pub async fn put_version(&self, app: &AppName, document: &AppVersion) -> Result<VersionView, AppError> {
        check(app, document)?;
        let version = document.digest()?;
        loop {
            let known: Option<Stored<AppRecord>> = load(&*self.store, &app_key(app)).await?;
            let existing: Option<Stored<VersionRecord>> = load(&*self.store, &version_key(app, &version)).await?;
            let now = self.clock.now();
            let record = match &existing {
                Some(existing) => existing.value.clone(),
                None => VersionRecord {
                    version: version.clone(),
                    number: known.as_ref().map_or(0, |known| known.value.number) + 1,
                    created_at: now,
                    document: document.clone(),
                },
            };
            let latest = known.as_ref().is_some_and(|known| known.value.latest == version);
            if latest && existing.is_some() {
                return Ok(view(&record));
            }
            let number = known.as_ref().map_or(0, |known| known.value.number).max(record.number);
            let entry = AppRecord { app: app.clone(), latest: version.clone(), number, updated_at: now };
            let expect = known.map_or(Expect::Absent, |known| Expect::Rev(known.rev));
            let mut writes = vec![put(&entry, expect)?];
            if existing.is_none() {
                writes.push(put(&record, Expect::Absent)?);
            }
            if self.store.commit(writes).await? == Committed::Done {
                tracing::info!("Synced version {} of app `{app}`", record.number);
                return Ok(view(&record));
            }
        }
    }
}

fn check(app: &AppName, document: &AppVersion) -> Result<(), AppError> {
    if document.app != *app {
        return Err(AppError::invalid(format!("document is of app `{}`, not `{app}`", document.app)));
    }
    if document.format != 1 {
        return Err(AppError::invalid(format!("document has format {}, expected 1", document.format)));
    }
    let size = canonical::to_vec(document)?.len();
    if size > MAX_APP_VERSION_BYTES {
        return Err(AppError::invalid(format!(
            "app `{app}` has {size} bytes of config, more than the {MAX_APP_VERSION_BYTES} that are taken"
        )));
    }
    check_components(document)
}

/// The command has checked the config; the control plane trusts no client with its graph.
fn check_components(document: &AppVersion) -> Result<(), AppError> {
    let mut done: Vec<&str> = Vec::new();
    for component in &document.components {
        let name = &component.name;
        if document.components.iter().filter(|other| other.name == *name).count() > 1 {
            return Err(AppError::invalid(format!("two components are called `{name}`")));
        }
        if let Some(missing) = component.dependencies.iter().find(|name| document.component(name).is_none()) {
            return Err(AppError::invalid(format!("component `{name}` depends on `{missing}`, which does not exist")));
        }
    }
    loop {
        let before = done.len();
        for component in &document.components {
            let ready = component.dependencies.iter().all(|name| done.contains(&name.as_str()));
            if ready && !done.contains(&component.name.as_str()) {
                done.push(component.name.as_str());
            }
        }
        if done.len() == document.components.len() {
            return Ok(());
        }
        if done.len() == before {
            let stuck = document.components.iter().find(|component| !done.contains(&component.name.as_str()));
            let name = stuck.map(|component| component.name.to_string()).unwrap_or_default();
            return Err(AppError::invalid(format!("component `{name}` depends on itself through others")));
        }
    }
}

/// Returns what the API says of a version.
pub fn view(record: &VersionRecord) -> VersionView {
    VersionView {
        app: record.document.app.clone(),
        version: record.version.clone(),
        number: record.number,
        created_at: record.created_at,
        components: u32::try_from(record.document.components.len()).unwrap_or(u32::MAX),
    }
}

/// Returns what the API says of an app.
pub fn app_view(record: AppRecord) -> freehold_protocol::api::AppView {
    let records::AppRecord { app, latest, number, updated_at } = record;
    freehold_protocol::api::AppView { app, latest, number, updated_at }
}
