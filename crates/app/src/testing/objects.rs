//! The bucket of app versions in memory.

use async_trait::async_trait;
use freehold_protocol::Digest;

use super::lock::lock;
use super::memory::Memory;
use crate::ports::{Objects, PortError};

#[async_trait]
impl Objects for Memory {
    async fn presign_source(&self, digest: &Digest, size: u64, valid_secs: u64) -> Result<String, PortError> {
        let url = || format!("https://bucket.invalid/{}?{size}&{valid_secs}", digest.hex());
        self.faults.run("presign_source", url)
    }

    async fn source_url(&self, digest: &Digest, valid_secs: u64) -> Result<String, PortError> {
        self.faults.run("source_url", || format!("https://bucket.invalid/{}?get&{valid_secs}", digest.hex()))
    }

    async fn put_version(&self, digest: &Digest, bytes: &[u8]) -> Result<(), PortError> {
        self.faults.run("put_version", || {
            lock(&self.versions).insert(digest.clone(), bytes.to_vec());
        })
    }

    async fn get_version(&self, digest: &Digest) -> Result<Option<Vec<u8>>, PortError> {
        self.faults.run("get_version", || lock(&self.versions).get(digest).cloned())
    }
}
