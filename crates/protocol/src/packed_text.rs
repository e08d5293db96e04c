//! Packs long texts with gzip and base64, because an order has no space for long terms or manifests otherwise.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// The reason why a packed text cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error("packed text is not base64")]
    Base64(#[from] base64::DecodeError),
    #[error("packed text is not gzip")]
    Gzip(#[from] std::io::Error),
    #[error("packed text is longer than {0} bytes when it is unpacked")]
    TooLong(usize),
}

/// Returns `bytes` gzipped and in base64.
///
/// # Errors
/// Never: writing to memory does not fail.
pub(crate) fn pack(bytes: &[u8]) -> std::io::Result<String> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(bytes)?;
    Ok(BASE64.encode(gzip.finish()?))
}

/// Returns the number of bytes that `bytes` have after compression.
///
/// # Errors
/// Never: writing to memory does not fail.
pub fn packed_len(bytes: &[u8]) -> std::io::Result<usize> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(bytes)?;
    Ok(gzip.finish()?.len())
}

/// Returns the bytes that [`pack`] packed. `most` is the largest number of bytes that is accepted.
///
/// # Errors
/// [`UnpackError`].
pub(crate) fn unpack(packed: &str, most: usize) -> Result<Vec<u8>, UnpackError> {
    let gzip = BASE64.decode(packed)?;
    let mut bytes = Vec::new();
    GzDecoder::new(gzip.as_slice()).take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(UnpackError::TooLong(most));
    }
    Ok(bytes)
}
