//! Ed25519 public keys on the wire.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::{Signature, VerifyingKey};
use serde::{Deserialize, Serialize};

use super::error::EnvelopeError;
use super::key_id::KeyId;

/// An Ed25519 public key on the wire: 32 bytes, base64.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Returns the key in the form that verifies signatures.
    pub const fn verifying_key(&self) -> &VerifyingKey {
        &self.0
    }

    /// Returns the key's name.
    pub fn key_id(&self) -> KeyId {
        KeyId::of(&self.0)
    }

    /// Returns the key in a DER `SubjectPublicKeyInfo`, the form that KMS `GetPublicKey` returns (RFC 8410).
    ///
    /// # Errors
    /// When `der` is not an Ed25519 public key.
    pub fn from_spki_der(der: &[u8]) -> Result<Self, EnvelopeError> {
        use ed25519_dalek::pkcs8::DecodePublicKey as _;
        VerifyingKey::from_public_key_der(der).map(Self).map_err(|_| EnvelopeError::Key)
    }

    /// Returns whether this key made `signature` (64 bytes) over `bytes` (RFC 8032).
    pub fn has_signed(&self, bytes: &[u8], signature: &[u8]) -> bool {
        Signature::from_slice(signature).is_ok_and(|signature| self.0.verify_strict(bytes, &signature).is_ok())
    }
}

impl From<VerifyingKey> for PublicKey {
    fn from(key: VerifyingKey) -> Self {
        Self(key)
    }
}

impl TryFrom<String> for PublicKey {
    type Error = EnvelopeError;

    fn try_from(text: String) -> Result<Self, EnvelopeError> {
        let raw = BASE64.decode(text).map_err(|_| EnvelopeError::Key)?;
        let raw: [u8; 32] = raw.try_into().map_err(|_| EnvelopeError::Key)?;
        VerifyingKey::from_bytes(&raw).map(Self).map_err(|_| EnvelopeError::Key)
    }
}

impl std::str::FromStr for PublicKey {
    type Err = EnvelopeError;

    fn from_str(text: &str) -> Result<Self, EnvelopeError> {
        Self::try_from(text.to_owned())
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_string()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64.encode(self.0.as_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.key_id())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for PublicKey {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PublicKey".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string", "description": "Ed25519 public key: 32 bytes, base64",
            "pattern": "^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$",
        })
    }
}
