//! Long texts travel gzipped: definitions of custom resources and terms fit an order only so.

use std::borrow::Cow;
use std::io::{ErrorKind, Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::limits::MAX_APP_VERSION_BYTES;
use crate::order::Recipe;

/// The longest manifest that an order carries as it is, in bytes.
const MAX_PLAIN_MANIFEST: usize = 32 * 1024;

/// Why a packed text is none.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error("what is packed is not in base64")]
    Base64(#[from] base64::DecodeError),
    #[error("what is packed is no gzipped text")]
    Gzip(#[from] std::io::Error),
    #[error("what is packed has more than {0} bytes, the most that is read")]
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

/// Returns what [`pack`] packed, if that is not longer than `most` bytes.
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

impl Recipe {
    /// Returns the recipe as an order carries it.
    ///
    /// # Errors
    /// Never: writing to memory does not fail.
    pub fn packed(self) -> std::io::Result<Self> {
        let Self::Manifest { text } = &self else { return Ok(self) };
        if text.len() <= MAX_PLAIN_MANIFEST {
            return Ok(self);
        }
        Ok(Self::PackedManifest { gzip: pack(text.as_bytes())? })
    }

    /// Returns the recipe as the app version says it, which its build is named by.
    ///
    /// # Errors
    /// For a packed manifest that cannot be unpacked, or is longer than an app version may be.
    pub fn unpacked(&self) -> Result<Cow<'_, Self>, UnpackError> {
        let Self::PackedManifest { gzip } = self else { return Ok(Cow::Borrowed(self)) };
        let bytes = unpack(gzip, MAX_APP_VERSION_BYTES)?;
        let text = String::from_utf8(bytes).map_err(|error| std::io::Error::new(ErrorKind::InvalidData, error))?;
        Ok(Cow::Owned(Self::Manifest { text }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(bytes: usize) -> Recipe {
        Recipe::Manifest { text: "k".repeat(bytes) }
    }

    #[test]
    fn a_long_manifest_comes_back_as_it_was_and_a_short_one_is_not_packed() {
        let (long, short) = (manifest(MAX_PLAIN_MANIFEST + 1), manifest(MAX_PLAIN_MANIFEST));

        let packed = long.clone().packed().unwrap();

        assert!(matches!(&packed, Recipe::PackedManifest { gzip } if gzip.len() < 1000));
        assert_eq!(packed.unpacked().unwrap().into_owned(), long);
        assert_eq!(short.clone().packed().unwrap(), short);
        assert_eq!(*short.unpacked().unwrap(), short);
    }

    #[test]
    fn what_is_too_long_or_no_manifest_is_refused() {
        let bomb = manifest(MAX_APP_VERSION_BYTES + 1).packed().unwrap();
        let broken = |gzip: &str| Recipe::PackedManifest { gzip: gzip.into() };

        assert!(matches!(bomb.unpacked(), Err(UnpackError::TooLong(_))));
        assert!(matches!(broken("*").unpacked(), Err(UnpackError::Base64(_))));
        assert!(matches!(broken("AAAA").unpacked(), Err(UnpackError::Gzip(_))));
    }
}
