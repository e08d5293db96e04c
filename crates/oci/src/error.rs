//! The errors of calls to registries.

use std::time::Duration;

use freehold_protocol::Digest;

use super::{AddressError, PlatformError, ReferenceError};

/// The reason why a call to a registry failed.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// The image does not have the chosen platforms.
    #[error(transparent)]
    Platform(#[from] PlatformError),
    /// The registry refuses the login, or does not allow the call.
    #[error("registry `{host}` denies access to `{repository}`: {detail}")]
    Denied { host: String, repository: String, detail: String },
    /// The registry names a token service on a host that the login is not for.
    #[error(
        "registry `{registry}` asks for its password at another host, `{host}`, and the password was not sent there; \
         if that host belongs to the registry, name it with `--token-host {host}` of `freehold tenant source add`"
    )]
    TokenHost { registry: String, host: String },
    /// A granted URL has expired or is not valid.
    #[error("the granted URL at `{host}` has expired or is not valid")]
    Expired { host: String },
    /// The registry does not have the requested object.
    #[error("registry `{host}` has no {what}")]
    NotFound { host: String, what: String },
    /// The registry responded with another status that is not a success.
    #[error("registry `{host}` returned status {status} for {what}: {detail}")]
    Status {
        host: String,
        what: String,
        status: u16,
        detail: String,
        /// The wait that the header `Retry-After` asks for.
        retry_after: Option<Duration>,
    },
    /// The response was incomplete or did not arrive.
    #[error("no complete response from `{host}` to {what}")]
    Transport {
        host: String,
        what: String,
        #[source]
        source: reqwest::Error,
    },
    /// Too few bytes moved within the idle time.
    #[error("too little data moved between this machine and `{host}` within {secs} s during {what}")]
    Stalled { host: String, what: String, secs: u64 },
    /// The bytes do not have the expected digest.
    #[error("`{host}` returned bytes with digest `{found}` instead of `{expected}`; they are not used")]
    WrongDigest { host: String, expected: Digest, found: Digest },
    /// The blob does not have the expected size.
    #[error("`{host}` returned {found} bytes of `{digest}` instead of {expected}; they are not used")]
    WrongSize { host: String, digest: Digest, expected: u64, found: u64 },
    /// The bytes ended too early, as they do when a connection breaks.
    #[error("`{host}` closed the connection after {found} of the {expected} bytes of `{digest}`")]
    Short { host: String, digest: Digest, expected: u64, found: u64 },
    /// The response breaks the specification, or is larger than this client accepts.
    #[error("the response of registry `{host}` to {what} cannot be used: {detail}")]
    BadAnswer { host: String, what: String, detail: String },
    /// The tag names another manifest and cannot be moved.
    #[error("tag `{tag}` already names `{found}` in `{repository}`, not `{expected}`")]
    TagTaken { repository: String, tag: String, found: Digest, expected: Digest },
    /// A login for the registry could not be obtained.
    #[error("cannot log in to the registry: {0}")]
    Login(String),
    /// A local file of a blob could not be read or written.
    #[error("could not read or write a blob on this machine")]
    Local(#[source] std::io::Error),
    /// The HTTP client could not be created.
    #[error("could not make an HTTP client: {0}")]
    Client(String),
}

impl RegistryError {
    /// Returns whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            // A broken connection can look like a short blob, so a short blob is requested again too; its digest is
            // always checked.
            Self::Transport { .. } | Self::Stalled { .. } | Self::Short { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 425 | 429 | 500..=599),
            Self::Address(_)
            | Self::Reference(_)
            | Self::Platform(_)
            | Self::Denied { .. }
            | Self::TokenHost { .. }
            | Self::Expired { .. }
            | Self::NotFound { .. }
            | Self::WrongDigest { .. }
            | Self::WrongSize { .. }
            | Self::BadAnswer { .. }
            | Self::TagTaken { .. }
            | Self::Login(_)
            | Self::Local(_)
            | Self::Client(_) => false,
        }
    }

    /// Returns the wait that the registry asks for, if it asks for one.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let Self::Status { retry_after, .. } = self else { return None };
        *retry_after
    }
}
