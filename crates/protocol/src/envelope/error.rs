//! The reasons why an envelope is not believed.

use super::key_id::KeyId;
use crate::{KeyUse, KeyUses, TenantName, limits};

/// The reason why an envelope failed verification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// The envelope is larger than the limit.
    #[error("message of {0} bytes is larger than the {max} that are accepted", max = limits::MAX_ENVELOPE_BYTES)]
    TooLarge(usize),
    /// The text is not an envelope, or the payload does not have the form that its type requires.
    #[error("message is not a signed envelope: {0}")]
    Malformed(String),
    /// The message has another type than the reader expects.
    #[error("message is a `{found}`, expected a `{expected}`")]
    WrongType {
        /// The type of the message.
        found: String,
        /// The type that the reader expects.
        expected: &'static str,
    },
    /// The expected key has not signed the message.
    #[error("message is not signed by key `{0}`")]
    Unsigned(KeyId),
    /// The expected key's signature does not match the payload.
    #[error("signature of key `{0}` does not match the message")]
    BadSignature(KeyId),
    /// The envelope has no delegate certificate.
    #[error("message carries no certificate that the tenant's root key signed")]
    NoCertificate,
    /// The certificate is for another tenant.
    #[error("certificate is for tenant `{0}`")]
    OtherTenant(TenantName),
    /// The certificate is not valid at the time for which it is checked.
    #[error("certificate of delegate key `{0}` is not valid at this time")]
    CertificateExpired(KeyId),
    /// The message was sent after its key had to stop signing.
    #[error(
        "message was sent {late_secs} s after its delegate key `{key}` had to stop signing: somebody kept the message, or the \
         key"
    )]
    SentLate {
        /// The delegate key.
        key: KeyId,
        /// The time between the end of the key and the sending, in seconds.
        late_secs: u64,
    },
    /// The certificate does not permit its key to sign messages of this kind.
    #[error("delegate key `{key}` may not sign {lacks}: its certificate is for {has}")]
    NotPermitted {
        /// The delegate key.
        key: KeyId,
        /// The use that the certificate lacks.
        lacks: KeyUse,
        /// The uses that the certificate has.
        has: KeyUses,
    },
    /// The text is not an Ed25519 public key.
    #[error("not an Ed25519 public key of 32 bytes in base64")]
    Key,
    /// The payload cannot be written as JSON.
    #[error("payload cannot be written as JSON: {0}")]
    Unwritable(String),
}
