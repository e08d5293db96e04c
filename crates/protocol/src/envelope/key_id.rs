//! The names of public keys.

use std::fmt;
use std::str::FromStr;

use ed25519_dalek::VerifyingKey;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::digest::hex;

/// The number of hex digits in a name.
const LENGTH: usize = 32;

/// The name of a public key: the first 32 hex digits of its SHA-256.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct KeyId(String);

impl KeyId {
    /// Returns the name of `key`.
    pub fn of(key: &VerifyingKey) -> Self {
        let digest = hex(Sha256::digest(key.as_bytes()).as_slice());
        Self(digest.get(..LENGTH).unwrap_or_default().to_owned())
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text is not the name of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a key; expected 32 hex digits, such as `7300c0ae1429cd153252736a781b78f4`")]
pub struct KeyIdError(String);

impl FromStr for KeyId {
    type Err = KeyIdError;

    fn from_str(text: &str) -> Result<Self, KeyIdError> {
        let is_id = text.len() == LENGTH && text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
        if is_id { Ok(Self(text.to_owned())) } else { Err(KeyIdError(text.chars().take(80).collect())) }
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written_and_anything_else_is_refused() {
        let id = KeyId::of(&ed25519_dalek::SigningKey::from_bytes(&[3; 32]).verifying_key());

        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in ["1234", "", "7300C0AE1429CD153252736A781B78F4", "7300c0ae1429cd153252736a781b78f4.pub"] {
            assert_eq!(wrong.parse::<KeyId>(), Err(KeyIdError(wrong.to_owned())));
        }
    }
}
