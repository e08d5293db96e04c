//! Seals a support bundle to a key of the vendor's, and opens it. A sealed bundle is a line with the format and the key,
//! followed by one sealed box.

use freehold_protocol::sealing::SealingKey;
use zeroize::Zeroizing;

use crate::sealed_box::{OpeningKey, SealError, sealed};

/// The beginning of a sealed bundle. The key that it is sealed to follows, and then the end of the line.
const MARK: &str = "freehold-sealed-bundle v1 ";
/// The size of a key in base64, in bytes.
const KEY_TEXT_BYTES: usize = 44;
/// The beginning of the content of the box, so that nothing else that was sealed to the same key opens as a bundle.
const CONTEXT: &[u8] = b"freehold support bundle v1\n";

/// The reason why a sealed bundle cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenBundleError {
    #[error("it is not a sealed support bundle of a format that this version knows")]
    NotSealed,
    /// The bundle was sealed to this key.
    #[error("it is sealed to the key {0}, and not to this one")]
    OtherKey(SealingKey),
    #[error("it was changed after it was sealed, or is not complete")]
    Changed,
}

/// Returns `bundle` sealed to `key`.
///
/// # Errors
/// A [`SealError`].
pub fn seal_bundle(bundle: &[u8], key: &SealingKey) -> Result<Vec<u8>, SealError> {
    let plain = Zeroizing::new([CONTEXT, bundle].concat());
    let sealed = sealed(&plain, key)?;
    Ok([MARK.as_bytes(), key.to_string().as_bytes(), b"\n", &sealed].concat())
}

impl OpeningKey {
    /// Returns the bundle that was sealed to this key.
    ///
    /// # Errors
    /// An [`OpenBundleError`].
    pub fn open_bundle(&self, file: &[u8]) -> Result<Zeroizing<Vec<u8>>, OpenBundleError> {
        let (key, sealed) = parts(file).ok_or(OpenBundleError::NotSealed)?;
        if key != self.sealing_key() {
            return Err(OpenBundleError::OtherKey(key));
        }
        let plain = self.unsealed(sealed).ok_or(OpenBundleError::Changed)?;
        let bundle = plain.strip_prefix(CONTEXT).ok_or(OpenBundleError::Changed)?;
        Ok(Zeroizing::new(bundle.to_vec()))
    }
}

/// Returns the key that a bundle is sealed to, and its box.
fn parts(file: &[u8]) -> Option<(SealingKey, &[u8])> {
    let (key, rest) = file.strip_prefix(MARK.as_bytes())?.split_at_checked(KEY_TEXT_BYTES)?;
    let key = SealingKey::try_from(std::str::from_utf8(key).ok()?.to_owned()).ok()?;
    Some((key, rest.strip_prefix(b"\n")?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(seed: u8) -> OpeningKey {
        OpeningKey::from_bytes(&[seed; 32])
    }

    proptest! {
        #[test]
        fn a_bundle_opens_with_its_key_and_with_no_other(bundle: Vec<u8>, seed in 0_u8..100) {
            let sealed = seal_bundle(&bundle, &key(seed).sealing_key()).unwrap();

            prop_assert_eq!(key(seed).open_bundle(&sealed).unwrap().to_vec(), bundle);
            let other = OpenBundleError::OtherKey(key(seed).sealing_key());
            prop_assert_eq!(key(200).open_bundle(&sealed).unwrap_err(), other);
        }

        #[test]
        fn no_changed_byte_is_accepted(at in 0_usize..1000, bit in 0_u32..8) {
            let mut sealed = seal_bundle(b"stack and log", &key(1).sealing_key()).unwrap();
            let all = sealed.len();
            sealed[at % all] ^= 1 << bit;

            prop_assert!(key(1).open_bundle(&sealed).is_err());
        }

        #[test]
        fn a_bundle_that_was_cut_or_extended_is_refused(keep in 0_usize..200) {
            let sealed = seal_bundle(b"stack and log", &key(1).sealing_key()).unwrap();
            let cut = &sealed[..keep.min(sealed.len() - 1)];

            prop_assert!(key(1).open_bundle(cut).is_err());
            prop_assert_eq!(key(1).open_bundle(&[sealed.as_slice(), b"x"].concat()).unwrap_err(), OpenBundleError::Changed);
        }
    }

    #[test]
    fn what_is_sealed_for_another_purpose_is_not_a_bundle() {
        let to = key(1).sealing_key();
        let other = sealed(b"hunter2", &to).unwrap();
        let file = [MARK.as_bytes(), to.to_string().as_bytes(), b"\n", &other].concat();

        assert_eq!(key(1).open_bundle(&file).unwrap_err(), OpenBundleError::Changed);
        assert_eq!(key(1).open_bundle(b"PK").unwrap_err(), OpenBundleError::NotSealed);
    }

    #[test]
    fn the_size_of_a_key_is_that_of_its_text() {
        assert_eq!(key(1).sealing_key().to_string().len(), KEY_TEXT_BYTES);
        assert_eq!(seal_bundle(b"", &SealingKey::from_bytes([0; 32])), Err(SealError::Key));
    }
}
