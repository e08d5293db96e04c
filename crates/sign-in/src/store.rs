//! The logins of a person on this machine: one file for each API, which only this person can read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use freehold_protocol::TenantName;
use freehold_protocol::digest::hex;
use reqwest::ClientBuilder;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use url::Url;
use zeroize::Zeroizing;

use crate::discovery::discovery_base;
use crate::error::Error;
use crate::issuer::{Issuer, Settings};
use crate::tokens::Tokens;

/// An access token is renewed this many seconds before it expires.
const MARGIN_SECS: u64 = 60;
/// The maximum size of the file of a login, in bytes.
const LONGEST: u64 = 1 << 18;

/// A person's login at the API of one tenant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Login {
    /// The address of the API.
    pub api: String,
    /// The name of the tenant, when it was known at the sign-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantName>,
    pub issuer: String,
    pub client_id: String,
    pub tokens: Tokens,
}

impl Login {
    /// Returns the settings of the issuer. `endpoint` is the address that all calls to AWS go to, if there is one.
    pub fn settings(&self, endpoint: Option<&str>) -> Settings {
        Settings {
            discovery_base: discovery_base(&self.issuer, endpoint),
            issuer: self.issuer.clone(),
            client_id: self.client_id.clone(),
        }
    }
}

/// Why a login cannot be read, kept or renewed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot {doing} `{}`: {source}; give this user the permission, or set XDG_STATE_HOME", .path.display())]
    File {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("others can read `{}`, which is for logins; remove it, and sign in again", .path.display())]
    Exposed { path: PathBuf },
    #[error("`{}` is not a login that this version can read; sign in again", .path.display())]
    Unreadable { path: PathBuf },
    #[error("there is no login for {api} any more; sign in again")]
    SignedOut { api: String },
    #[error(transparent)]
    Issuer(#[from] Error),
}

/// The directory with the logins.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
    /// Returns the logins in `directory`, which the first login makes.
    pub const fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Returns the login for the API at `api`.
    ///
    /// # Errors
    /// Exposed, Unreadable or File.
    pub fn load(&self, api: &Url) -> Result<Option<Login>, StoreError> {
        read(&self.path(api.as_str(), "json"))
    }

    /// Returns all logins.
    ///
    /// # Errors
    /// Exposed, Unreadable or File.
    pub fn all(&self) -> Result<Vec<Login>, StoreError> {
        let failed = |source| StoreError::File { doing: "read", path: self.directory.clone(), source };
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.map_err(failed)?.path());
        }
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
        paths.sort();
        let mut logins = Vec::new();
        for path in paths {
            logins.extend(read(&path)?);
        }
        Ok(logins)
    }

    /// Keeps a login, instead of the one before for the same API.
    ///
    /// # Errors
    /// Exposed or File.
    pub async fn save(&self, login: &Login) -> Result<(), StoreError> {
        let _lock = self.lock(&login.api).await?;
        self.write(login)
    }

    /// Removes the login for an API. Returns the newest tokens that it had.
    ///
    /// # Errors
    /// Exposed, Unreadable or File.
    pub async fn remove(&self, api: &str) -> Result<Option<Login>, StoreError> {
        let _lock = self.lock(api).await?;
        let path = self.path(api, "json");
        let login = read(&path)?;
        match fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(StoreError::File { doing: "remove", path, source })
            }
            Ok(()) | Err(_) => Ok(login),
        }
    }

    /// Returns `login` with an access token that is valid for another minute. Renews it when it is not; of several
    /// commands that do this at once, one asks the issuer, and the others get its result.
    ///
    /// # Errors
    /// SignedOut, Issuer, Exposed, Unreadable or File.
    pub async fn fresh(&self, login: &Login, http: ClientBuilder, endpoint: Option<&str>) -> Result<Login, StoreError> {
        if !login.tokens.expire_within(MARGIN_SECS) {
            return Ok(login.clone());
        }
        let _lock = self.lock(&login.api).await?;
        let newest = read(&self.path(&login.api, "json"))?;
        let newest = newest.ok_or_else(|| StoreError::SignedOut { api: login.api.clone() })?;
        if !newest.tokens.expire_within(MARGIN_SECS) {
            return Ok(newest);
        }
        let issuer = Issuer::discover(http, newest.settings(endpoint)).await?;
        let renewed = Login { tokens: issuer.refresh(&newest.tokens).await?, ..newest };
        self.write(&renewed)?;
        Ok(renewed)
    }

    /// Writes a login so that a reader never sees a part of it.
    fn write(&self, login: &Login) -> Result<(), StoreError> {
        let path = self.path(&login.api, "json");
        let failed = |source: std::io::Error| StoreError::File { doing: "write", path: path.clone(), source };
        let text = serde_json::to_vec_pretty(login).map(Zeroizing::new).map_err(|error| failed(error.into()))?;
        // A temporary file has the mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(&self.directory).map_err(failed)?;
        file.write_all(&text).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Waits until no other command changes the login for `api`, and keeps the others out until the result is dropped.
    async fn lock(&self, api: &str) -> Result<File, StoreError> {
        self.make_directory()?;
        let path = self.path(api, "lock");
        let shown = path.clone();
        let failed = move |source| StoreError::File { doing: "lock", path: shown, source };
        let wait = move || {
            let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
            file.lock().map(|()| file)
        };
        // The wait must not stop the task that has the lock.
        tokio::task::spawn_blocking(wait).await.map_err(std::io::Error::other).flatten().map_err(failed)
    }

    fn make_directory(&self) -> Result<(), StoreError> {
        let path = &self.directory;
        let failed = |source| StoreError::File { doing: "make the directory", path: path.clone(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        must_be_private(path, &fs::metadata(path).map_err(failed)?)
    }

    fn path(&self, api: &str, ending: &str) -> PathBuf {
        let name = hex(digest(&SHA256, api.as_bytes()).as_ref());
        self.directory.join(format!("{name}.{ending}"))
    }
}

fn read(path: &Path) -> Result<Option<Login>, StoreError> {
    let failed = |source| StoreError::File { doing: "read", path: path.to_owned(), source };
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.map_err(failed)?,
    };
    must_be_private(path, &file.metadata().map_err(failed)?)?;
    let mut text = Zeroizing::new(Vec::<u8>::new());
    file.take(LONGEST).read_to_end(&mut text).map_err(failed)?;
    serde_json::from_slice(&text).map(Some).map_err(|_| StoreError::Unreadable { path: path.to_owned() })
}

fn must_be_private(path: &Path, metadata: &fs::Metadata) -> Result<(), StoreError> {
    if metadata.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(StoreError::Exposed { path: path.to_owned() })
}
