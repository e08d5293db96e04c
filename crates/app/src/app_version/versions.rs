//! Loads and stores app versions. A small document is stored in the table, a large document in the tenant's bucket
//! under its digest.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use freehold_domain::absence::Absence;
use freehold_protocol::api::VersionView;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::limits::MAX_TABLE_VERSION_BYTES;
use freehold_protocol::{AppName, Digest, Timestamp};

use crate::AppError;
use crate::Kind;
use crate::ports::{Objects, PortError, Store};
use crate::table::{AppRecord, Document, Stored, VersionRecord, app_key, load, unknown_app, version_key};

/// The maximum size of the cache in a warm function, in bytes of the documents' canonical JSON. A parsed document takes
/// several times as much memory, and the smallest function has 128 MB.
const KEPT_BYTES: usize = 6 * 1024 * 1024;

/// Loads app versions. A version never changes, so a warm function caches the versions that it used most recently.
#[derive(Clone)]
pub struct Versions {
    pub store: Arc<dyn Store>,
    pub objects: Arc<dyn Objects>,
    kept: Arc<Mutex<Kept>>,
    /// A lock that is held while a version is loaded, because concurrent tasks often need the same version.
    loading: Arc<futures_util::lock::Mutex<()>>,
}

/// An app version with its document.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    pub version: Digest,
    pub number: u64,
    pub created_at: Timestamp,
    pub document: Arc<AppVersion>,
}

impl Version {
    /// Returns the API's view of the version.
    pub fn view(&self) -> VersionView {
        VersionView {
            app: self.document.app.clone(),
            version: self.version.clone(),
            number: self.number,
            created_at: self.created_at,
            components: components(&self.document),
        }
    }
}

/// Returns the number of components in a document.
pub fn components(document: &AppVersion) -> u32 {
    u32::try_from(document.components.len()).unwrap_or(u32::MAX)
}

/// The cached versions with their sizes in bytes; the least recently used version is at the front.
#[derive(Debug, Default)]
struct Kept(VecDeque<(Version, usize)>);

impl Kept {
    fn find(&mut self, app: &AppName, version: &Digest) -> Option<Version> {
        let fits = |kept: &(Version, usize)| kept.0.version == *version && kept.0.document.app == *app;
        let used = self.0.iter().position(fits).and_then(|at| self.0.remove(at))?;
        let found = used.0.clone();
        self.0.push_back(used);
        Some(found)
    }

    fn keep(&mut self, version: &Version, bytes: usize) {
        self.0.retain(|kept| kept.0.version != version.version || kept.0.document.app != version.document.app);
        self.0.push_back((version.clone(), bytes));
        while self.0.iter().map(|kept| kept.1).sum::<usize>() > KEPT_BYTES {
            self.0.pop_front();
        }
    }
}

impl Versions {
    /// Returns a loader for the versions in `store` and `objects`, with an empty cache.
    pub fn new(store: Arc<dyn Store>, objects: Arc<dyn Objects>) -> Self {
        Self { store, objects, kept: Arc::default(), loading: Arc::default() }
    }

    /// Loads the given version of the app, or the app's latest version if `version` is `None`.
    ///
    /// # Errors
    /// NotFound, the ports' errors, or Internal when the object in the bucket is missing or has another digest than the
    /// version. A retry does not help then: the object was written before the row that names it, and S3 does not lose
    /// objects.
    pub async fn load(&self, app: &AppName, version: Option<&Digest>) -> Result<Version, AppError> {
        let version = match version {
            Some(version) => version.clone(),
            None => {
                let record: Option<Stored<AppRecord>> = load(&*self.store, &app_key(app)).await?;
                record.ok_or_else(|| unknown_app(app))?.value.latest
            }
        };
        if let Some(kept) = self.kept(app, &version) {
            return Ok(kept);
        }
        let _only = self.loading.lock().await;
        if let Some(kept) = self.kept(app, &version) {
            return Ok(kept);
        }
        let key = version_key(app, &version);
        let row = self.store.get(&key).await?;
        let row = row.ok_or_else(|| Absence::Version { app: app.clone(), version: version.clone() })?;
        let record: VersionRecord = crate::table::parse(&row)?.value;
        let (document, bytes) = match record.document {
            Document::Inline(document) => (*document, row.body.len()),
            Document::Bucket { bytes } => {
                (self.fetch(app, &version, bytes).await?, usize::try_from(bytes).unwrap_or(usize::MAX))
            }
        };
        let (number, created_at) = (record.number, record.created_at);
        let loaded = Version { version, number, created_at, document: Arc::new(document) };
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).keep(&loaded, bytes);
        Ok(loaded)
    }

    fn kept(&self, app: &AppName, version: &Digest) -> Option<Version> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).find(app, version)
    }

    async fn fetch(&self, app: &AppName, version: &Digest, bytes: u64) -> Result<AppVersion, AppError> {
        let broken = |what: &str| {
            let hex = version.hex();
            AppError::internal(format!(
                "version `{version}` of app `{app}`: object `versions/{hex}.json` of the tenant's bucket {what}; restore \
                 it there, or sync the app directory of that version again"
            ))
        };
        let found = match self.objects.get_version(version).await {
            Ok(found) => found.ok_or_else(|| broken("is missing"))?,
            // S3 returns "access denied" for a missing object when the function may not list the bucket.
            Err(error @ PortError::Denied { .. }) => {
                let unreadable = broken("is missing, or this function may not read it");
                return Err(AppError { source: Some(Box::new(error)), ..unreadable });
            }
            Err(error) => return Err(error.into()),
        };
        if found.len() as u64 != bytes || Digest::of(&found) != *version {
            return Err(broken("was changed after it was stored"));
        }
        serde_json::from_slice(&found).map_err(|error| AppError {
            kind: Kind::Internal,
            source: Some(Box::new(error)),
            ..broken("cannot be read by this release")
        })
    }

    /// Stores a document and returns its place: the row itself for a small document, else the bucket. The caller writes
    /// the row only after this call. `canonical` is the document's canonical JSON. A repeated call restores a lost
    /// object.
    ///
    /// # Errors
    /// The bucket's errors.
    pub async fn put(&self, version: &Digest, document: &AppVersion, canonical: &[u8]) -> Result<Document, AppError> {
        if canonical.len() <= MAX_TABLE_VERSION_BYTES {
            return Ok(Document::Inline(Box::new(document.clone())));
        }
        self.objects.put_version(version, canonical).await?;
        Ok(Document::Bucket { bytes: canonical.len() as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_used_outlives_one_that_is_not() {
        let mut kept = Kept::default();
        let app: AppName = "demo".parse().unwrap();
        let document = serde_json::from_value(serde_json::json!({ "format": 1, "app": "demo" }));
        let document: Arc<AppVersion> = Arc::new(document.unwrap());
        let [used, unused, new] = [1_u64, 2, 3].map(|number| Version {
            version: Digest::of(&number.to_be_bytes()),
            number,
            created_at: Timestamp::from_millis(0),
            document: Arc::clone(&document),
        });
        kept.keep(&used, KEPT_BYTES / 2);
        kept.keep(&unused, KEPT_BYTES / 2);

        assert!(kept.find(&app, &used.version).is_some());
        kept.keep(&new, KEPT_BYTES / 2);

        let numbers: Vec<u64> = kept.0.iter().map(|(version, _)| version.number).collect();
        assert_eq!(numbers, [used.number, new.number]);
    }
}
