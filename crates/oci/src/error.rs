//! The errors of calls to registries.

use std::time::Duration;

use freehold_protocol::Digest;

use super::{AddressError, PlatformError, ReferenceError};

/// Why a call to a registry failed.
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
    /// A granted URL is no longer valid.
    #[error("the granted URL at `{host}` has expired or is not valid")]
    Expired { host: String },
    /// The registry does not hold what was asked for.
    #[error("registry `{host}` has no {what}")]
    NotFound { host: String, what: String },
    /// Any other answer that is not a success.
    #[error("registry `{host}` answered {status} to {what}: {detail}")]
    Status {
        host: String,
        what: String,
        status: u16,
        detail: String,
        /// What the header `Retry-After` asks for.
        retry_after: Option<Duration>,
    },
    /// No answer, or an incomplete one.
    #[error("no complete answer from `{host}` to {what}")]
    Transport {
        host: String,
        what: String,
        #[source]
        source: reqwest::Error,
    },
    /// Bytes stopped moving.
    #[error("no data moved between this machine and `{host}` for {secs} s during {what}")]
    Stalled { host: String, what: String, secs: u64 },
    /// The bytes have another digest.
    #[error("`{host}` gave bytes with digest `{found}` for `{expected}`; they are not used")]
    WrongDigest { host: String, expected: Digest, found: Digest },
    /// The blob has another size.
    #[error("`{host}` gave {found} bytes for `{digest}` instead of {expected}; they are not used")]
    WrongSize { host: String, digest: Digest, expected: u64, found: u64 },
    /// The bytes ended too early, as they do when a connection breaks.
    #[error("`{host}` closed the connection after {found} of the {expected} bytes of `{digest}`")]
    Short { host: String, digest: Digest, expected: u64, found: u64 },
    /// An answer that breaks the specification, or is larger than any real one.
    #[error("the answer of registry `{host}` to {what} cannot be used: {detail}")]
    BadAnswer { host: String, what: String, detail: String },
    /// The tag names another manifest and cannot be moved.
    #[error("tag `{tag}` already names `{found}` in `{repository}`, not `{expected}`")]
    TagTaken { repository: String, tag: String, found: Digest, expected: Digest },
    /// No login could be obtained.
    #[error("no registry login: {0}")]
    Login(String),
    /// A local source of a blob could not be read.
    #[error("could not read or write a blob on this machine")]
    Local(#[source] std::io::Error),
    /// The HTTP client could not be made.
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

    /// Returns the wait that the registry asks for.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
