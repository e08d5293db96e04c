//! Returns the URL to which a client uploads a packed source.

use freehold_protocol::api::{SourceUpload, UploadSourceRequest};
use freehold_protocol::limits::MAX_SOURCE_BYTES;

use crate::AppError;
use crate::app_version::versions::Versions;

/// The time for which an upload URL is valid, in seconds.
pub const UPLOAD_SECS: u64 = 900;

/// The use case that lets a client upload a source, with its ports.
#[derive(Clone)]
pub struct UploadSource {
    pub versions: Versions,
}

impl UploadSource {
    /// Returns the URL for the upload of the source with this digest.
    ///
    /// # Errors
    /// Invalid for a source that is too large, or the bucket's errors.
    pub async fn upload(&self, source: &UploadSourceRequest) -> Result<SourceUpload, AppError> {
        if source.size > MAX_SOURCE_BYTES {
            return Err(AppError::invalid(format!(
                "source `{}` has {} bytes, more than the maximum of {MAX_SOURCE_BYTES}; leave out what the build does \
                 not need",
                source.digest, source.size
            )));
        }
        let url = self.versions.objects.presign_source(&source.digest, source.size, UPLOAD_SECS).await?;
        Ok(SourceUpload { url })
    }
}
