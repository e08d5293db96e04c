//! The names of public keys.

use std::fmt;

use ed25519_dalek::VerifyingKey;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::digest::hex;

/// The name of a public key: the first 32 hex digits of its SHA-256.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct KeyId(String);

impl KeyId {
    /// Returns the name of `key`.
    pub fn of(key: &VerifyingKey) -> Self {
        let digest = hex(Sha256::digest(key.as_bytes()).as_slice());
        Self(digest.get(..32).unwrap_or_default().to_owned())
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
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
