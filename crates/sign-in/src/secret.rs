//! A text that is never printed: a token, a code, or what proves that a sign-in began here.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::error::Error;

/// A secret text. It has no `Display`, its `Debug` does not contain it, and its memory is overwritten when it is
/// dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Returns 32 random bytes in base64url: 43 characters, as RFC 7636 wants them of a verifier.
    ///
    /// # Errors
    /// Random.
    pub(crate) fn random() -> Result<Self, Error> {
        let mut bytes = Zeroizing::new([0_u8; 32]);
        getrandom::fill(bytes.as_mut_slice()).map_err(|error| Error::Random(error.to_string()))?;
        Ok(Self::from(URL_SAFE_NO_PAD.encode(bytes.as_slice())))
    }

    /// Returns the text, for the one place that sends or stores it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.expose())
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_random_and_its_debug_text_does_not_contain_it() {
        let (first, second) = (Secret::random().unwrap(), Secret::random().unwrap());

        assert_eq!(first.expose().len(), 43);
        assert_ne!(first.expose(), second.expose());
        assert_eq!(format!("{first:?}"), "Secret");
    }
}
