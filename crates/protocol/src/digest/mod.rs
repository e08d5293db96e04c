//! Content digests in the OCI form `sha256:<64 hex digits>` (OCI image specification, "Digests").

pub mod canonical;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::shape::Shape;

/// A SHA-256 content digest.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

/// A text is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest; expected `sha256:` and 64 lower-case hex digits")]
pub struct DigestError(String);

impl Digest {
    /// The form of a digest.
    pub const SHAPE: Shape = Shape::Hex { prefix: "sha256:", digits: 64 };

    /// Returns the digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_sha256(Sha256::digest(bytes).as_slice())
    }

    /// Returns the digest with the raw SHA-256 output `raw`, 32 bytes.
    pub fn from_sha256(raw: &[u8]) -> Self {
        Self(format!("sha256:{}", hex(raw)))
    }

    /// Returns the 64 hex digits.
    pub fn hex(&self) -> &str {
        self.0.get(7..).unwrap_or_default()
    }

    /// Returns the first 12 hex digits, which are enough for people and tags to tell digests apart.
    pub fn short(&self) -> &str {
        self.hex().get(..12).unwrap_or_default()
    }

    /// Returns `sha256:<hex>`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns `bytes` as lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        if Self::SHAPE.accepts(text) { Ok(Self(text.to_owned())) } else { Err(DigestError(shorten(text))) }
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(80).collect()
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Digest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Self::SHAPE.schema()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_nothing_is_the_published_one() {
        let digest = Digest::of(b"");

        assert_eq!(digest.as_str(), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn a_short_or_upper_case_digest_is_refused() {
        for text in
            ["sha256:ab", "md5:00", "", "sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"]
        {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
