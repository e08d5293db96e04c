//! A client of OCI registries (OCI distribution specification 1.1) that streams: no blob is ever whole in memory.

mod address;
mod auth;
mod blob;
mod copy;
mod ecr;
mod error;
mod http;
mod manifest;
mod reference;
mod repository;
mod retry;

pub use address::{AddressError, base_url, is_loopback_name};
pub use auth::Login;
pub use blob::{BlobSource, BlobStream, fetch};
pub use copy::{copy, missing_blobs, push_manifests, push_missing_blobs, push_top_manifest};
pub use ecr::repository as ecr_repository;
pub use error::RegistryError;
pub use http::client;
pub use manifest::{Manifest, Parts, digest_tag};
pub use reference::{Reference, ReferenceError, Version};
pub use repository::Repository;

/// How many blobs move at once: enough to fill a link, few enough for a small machine.
pub const BLOBS_AT_ONCE: usize = 3;
