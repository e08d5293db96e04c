//! A client of OCI registries (OCI distribution specification 1.1). It streams large blobs and never holds a whole blob
//! in memory.

mod address;
mod auth;
mod blob;
mod copy;
mod error;
mod http;
mod manifest;
mod platform;
mod push;
mod reference;
mod referrers;
mod repository;
mod request;
mod retry;
mod signatures;
mod source;
mod tree;
mod upload;

pub use address::{AddressError, base_url, is_loopback_name};
pub use auth::{Login, authority};
pub use blob::fetch;
pub use copy::{Copied, CopyOptions, copy};
pub use error::RegistryError;
pub use http::{client, client_builder};
pub use manifest::{EMPTY, EMPTY_TYPE, MANIFEST_TYPE, Manifest, Parts, digest_tag};
pub use platform::{Platform, PlatformError, Platforms, manifest_for};
pub use push::{Moved, missing_blobs, push_manifests, push_missing_blobs, push_top_manifest};
pub use reference::{Reference, ReferenceError, Version};
pub use referrers::{Referrer, push_referrer, read_referrer, referrers};
pub use repository::Repository;
pub use retry::{RetryPolicy, full_jitter};
pub use signatures::{
    BUNDLE_TYPE, Form, SIGNATURE_ANNOTATION, SIGNATURE_ARTIFACT, SIGNATURE_LAYER, SIGNATURE_PREDICATE, Signature,
    referring_signatures, signature_tag, tagged_signatures,
};
pub use source::{BlobSource, BlobStream};
pub use tree::MAX_MANIFESTS;

/// The number of blobs that are transferred at once: enough to use a fast link, and few enough for a small machine.
pub const BLOBS_AT_ONCE: usize = 3;
