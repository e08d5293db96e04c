//! The key to which the sensitive inputs of an install are sealed, and the sealed values. The crate `freehold-sealing`
//! seals and opens them.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD as BASE64_URL};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Digest;

/// The beginning of the text of a sealed value. It names the format and the cipher suite.
const PREFIX: &str = "sealed.v1";

/// The size of an X25519 public key, in bytes.
const KEY_BYTES: usize = 32;

/// The public key of a runner to which values are sealed: an X25519 key, base64.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SealingKey([u8; KEY_BYTES]);

/// The value of a sensitive input, which only the runner with the private half of a [`SealingKey`] can read. As text:
/// `sealed.v1.<key>.<ephemeral key>.<ciphertext>`, each part in unpadded base64 for URLs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SealedValue {
    key: SealingKey,
    ephemeral: [u8; KEY_BYTES],
    ciphertext: Vec<u8>,
}

/// The reason why a text is not a key or a sealed value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealedError {
    #[error("not an X25519 public key of 32 bytes in base64")]
    Key,
    #[error("not a sealed value, `sealed.v1.<key>.<ephemeral key>.<ciphertext>`")]
    Value,
}

impl SealingKey {
    /// Returns the key with these bytes.
    pub const fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the key.
    pub const fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl SealedValue {
    /// Returns the value that was sealed to `key`.
    pub const fn new(key: SealingKey, ephemeral: [u8; KEY_BYTES], ciphertext: Vec<u8>) -> Self {
        Self { key, ephemeral, ciphertext }
    }

    /// Returns the sealed value that an install stores as the value of a sensitive input; `None` for any other value.
    pub fn of(value: &Value) -> Option<Self> {
        value.as_str().and_then(|text| Self::try_from(text.to_owned()).ok())
    }

    /// Returns the key that the value was sealed to.
    pub const fn key(&self) -> &SealingKey {
        &self.key
    }

    /// Returns the public key that was made only for this value.
    pub const fn ephemeral(&self) -> &[u8; KEY_BYTES] {
        &self.ephemeral
    }

    /// Returns the ciphertext with its tag.
    pub fn ciphertext(&self) -> &[u8] {
        &self.ciphertext
    }

    /// Returns the digest of the text, by which a signed order names the value.
    pub fn digest(&self) -> Digest {
        Digest::of(self.to_string().as_bytes())
    }
}

impl TryFrom<String> for SealingKey {
    type Error = SealedError;

    fn try_from(text: String) -> Result<Self, SealedError> {
        let raw = BASE64.decode(text).map_err(|_| SealedError::Key)?;
        raw.try_into().map(Self).map_err(|_| SealedError::Key)
    }
}

impl TryFrom<String> for SealedValue {
    type Error = SealedError;

    fn try_from(text: String) -> Result<Self, SealedError> {
        let rest = text.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('.')).ok_or(SealedError::Value)?;
        let [key, ephemeral, ciphertext] = rest.split('.').collect::<Vec<_>>()[..] else {
            return Err(SealedError::Value);
        };
        let decoded = |part: &str| BASE64_URL.decode(part).map_err(|_| SealedError::Value);
        let of_key = |part: &str| decoded(part)?.try_into().map_err(|_| SealedError::Value);
        Ok(Self::new(SealingKey(of_key(key)?), of_key(ephemeral)?, decoded(ciphertext)?))
    }
}

impl fmt::Display for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64.encode(self.0))
    }
}

impl fmt::Display for SealedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [key, ephemeral] = [&self.key.0, &self.ephemeral].map(|part| BASE64_URL.encode(part));
        write!(f, "{PREFIX}.{key}.{ephemeral}.{}", BASE64_URL.encode(&self.ciphertext))
    }
}

impl From<SealingKey> for String {
    fn from(key: SealingKey) -> Self {
        key.to_string()
    }
}

impl From<SealedValue> for String {
    fn from(value: SealedValue) -> Self {
        value.to_string()
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealingKey({self})")
    }
}

impl fmt::Debug for SealedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealedValue({})", self.digest())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for SealingKey {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SealingKey".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "X25519 public key: 32 bytes, base64" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn a_sealed_value_is_its_text(key: [u8; 32], ephemeral: [u8; 32], ciphertext: Vec<u8>) {
            let sealed = SealedValue::new(SealingKey(key), ephemeral, ciphertext);

            prop_assert_eq!(SealedValue::of(&json!(sealed)), Some(sealed.clone()));
            prop_assert_eq!(serde_json::from_value::<SealingKey>(json!(sealed.key())).unwrap(), sealed.key);
        }
    }

    #[test]
    fn other_texts_are_neither_sealed_values_nor_keys() {
        let good = SealedValue::new(SealingKey([1; 32]), [2; 32], vec![3; 20]).to_string();
        let (version, more) = (good.replace(".v1.", ".v2."), format!("{good}.AAAA"));
        let (short, padded) = (good.replacen("AQEB", "", 1), format!("{good}="));

        for wrong in ["", "hunter2", "sealed.v1.", "sealed.v1...", &version, &more, &short, &padded] {
            assert_eq!(SealedValue::try_from(wrong.to_owned()), Err(SealedError::Value), "{wrong}");
        }
        assert_eq!(SealedValue::of(&json!(7)), None);
        for wrong in ["", "AQEB", "%", &good] {
            assert_eq!(SealingKey::try_from(wrong.to_owned()), Err(SealedError::Key), "{wrong}");
        }
    }
}
