//! Calls of webhooks: what a caller signs, and whether a signature is right. The headers and the signed text are those
//! of Standard Webhooks (specification of 2023, scheme `v1a`: Ed25519), so the tenant stores a public key and no
//! secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::{Signer as _, SigningKey};

use crate::Timestamp;
use crate::envelope::PublicKey;

/// The header with the id of the event. A call that is sent again has the same id.
pub const ID: &str = "webhook-id";
/// The header with the time of the call, in seconds since 1970-01-01T00:00:00Z.
pub const TIMESTAMP: &str = "webhook-timestamp";
/// The header with the signatures, each as `v1a,<64 bytes in base64>`, between spaces.
pub const SIGNATURE: &str = "webhook-signature";
/// The pattern of the header [`ID`].
pub const ID_PATTERN: &str = "^[A-Za-z0-9_-]{1,128}$";
/// The pattern of the header [`TIMESTAMP`].
pub const TIMESTAMP_PATTERN: &str = "^[0-9]{1,12}$";
/// The pattern of the header [`SIGNATURE`].
pub const SIGNATURE_PATTERN: &str = "^[!-~]([ -~]{0,1022}[!-~])?$";

/// The allowed difference between the time of a call and the clock of the control plane, in seconds.
pub const TOLERANCE_SECS: u64 = 300;
/// The maximum size of the body of a call, in bytes.
pub const MAX_BODY_BYTES: usize = 32 * 1024;

const SCHEME: &str = "v1a,";
const LONGEST_ID: usize = 128;
const LONGEST_SIGNATURES: usize = 1024;

/// The headers of a call, before they are verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallHeaders {
    id: String,
    secs: u64,
    signatures: String,
}

/// The reason why the headers of a call are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error(
        "a call of a webhook needs the headers `{ID}` (1 to {LONGEST_ID} letters, digits, dashes or underscores), `{TIMESTAMP}` \
         (seconds since 1970) and `{SIGNATURE}` (`v1a,` and base64); `{0}` is missing or has another form"
    )]
    Header(&'static str),
    #[error(
        "the call is dated {apart} seconds {side} the clock of the control plane, and {TOLERANCE_SECS} are allowed; correct the \
         caller's clock, and sign the call again"
    )]
    Time { apart: u64, side: &'static str },
}

impl CallHeaders {
    /// Parses the values of the three headers; `None` for a header that is missing.
    ///
    /// # Errors
    /// [`CallError::Header`] with the first header that is missing or has another form.
    pub fn parse(id: Option<&str>, timestamp: Option<&str>, signatures: Option<&str>) -> Result<Self, CallError> {
        let is_id = |id: &&str| {
            (1..=LONGEST_ID).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        };
        let id = id.filter(is_id).ok_or(CallError::Header(ID))?;
        let is_time = |time: &&str| (1..=12).contains(&time.len()) && time.bytes().all(|byte| byte.is_ascii_digit());
        let time = timestamp.filter(is_time).ok_or(CallError::Header(TIMESTAMP))?;
        let secs = time.parse().map_err(|_| CallError::Header(TIMESTAMP))?;
        let signatures = signatures.filter(|all| (1..=LONGEST_SIGNATURES).contains(&all.len()));
        let signatures = signatures.ok_or(CallError::Header(SIGNATURE))?.to_owned();
        Ok(Self { id: id.to_owned(), secs, signatures })
    }

    /// Signs a call that happens at `now`.
    pub fn sign(id: &str, body: &[u8], key: &SigningKey, now: Timestamp) -> Self {
        let secs = now.as_secs();
        let signature = key.sign(&signed_text(id, secs, body)).to_bytes();
        Self { id: id.to_owned(), secs, signatures: format!("{SCHEME}{}", BASE64.encode(signature)) }
    }

    /// Returns the headers with their names.
    pub fn named(&self) -> [(&'static str, String); 3] {
        [(ID, self.id.clone()), (TIMESTAMP, self.secs.to_string()), (SIGNATURE, self.signatures.clone())]
    }

    /// Returns the id of the event.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the time of the call, in seconds since the epoch.
    pub const fn secs(&self) -> u64 {
        self.secs
    }

    /// Refuses a call whose time is too far from `now`: a recorded call cannot be sent again later.
    ///
    /// # Errors
    /// [`CallError::Time`].
    pub const fn check_time(&self, now: Timestamp) -> Result<(), CallError> {
        let now = now.as_secs();
        let (apart, side) = if self.secs > now { (self.secs - now, "ahead of") } else { (now - self.secs, "behind") };
        if apart > TOLERANCE_SECS { Err(CallError::Time { apart, side }) } else { Ok(()) }
    }

    /// Returns whether one of the signatures is that of `key` over the id, the time and the body of this call.
    pub fn are_signed_by(&self, key: &PublicKey, body: &[u8]) -> bool {
        let text = signed_text(&self.id, self.secs, body);
        let schemes = self.signatures.split(' ').filter_map(|one| one.strip_prefix(SCHEME));
        schemes.filter_map(|one| BASE64.decode(one).ok()).any(|signature| key.has_signed(&text, &signature))
    }
}

/// Returns the signed text. No id contains a dot, so no two calls have the same text.
fn signed_text(id: &str, secs: u64, body: &[u8]) -> Vec<u8> {
    [format!("{id}.{secs}.").as_bytes(), body].concat()
}

#[cfg(test)]
mod tests;
