//! The reasons why an envelope is not accepted.

use super::key_id::KeyId;
use crate::{KeyUse, KeyUses, TenantName, limits};

/// The reason why an envelope failed verification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// The envelope is larger than the limit.
    #[error("message of {0} bytes is larger than the maximum of {max} bytes", max = limits::MAX_ENVELOPE_BYTES)]
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
    /// The message was sent after the time until which its key may sign.
    #[error(
        "message was sent {late_secs} s after the time until which delegate key `{key}` may sign: somebody held the \
         message back, or still uses the key"
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
    /// The message was sent after its root key had ended.
    #[error("message was sent {late_secs} s after root key `{root}` was replaced by another: somebody has the old key")]
    RootEnded {
        /// The root that the certificate of the message names.
        root: KeyId,
        /// The time between the end of the root and the sending, in seconds.
        late_secs: u64,
    },
    /// The successions of root keys in the message are not accepted.
    #[error(transparent)]
    Succession(SuccessionError),
    /// The text is not an Ed25519 public key.
    #[error("not an Ed25519 public key of 32 bytes in base64")]
    Key,
    /// The payload cannot be written as JSON.
    #[error("payload cannot be written as JSON: {0}")]
    Unwritable(String),
}

/// The reason why a succession is not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SuccessionError {
    /// The statements do not begin or end at a root that the reader knows.
    #[error(
        "the successions of root keys do not lead from or to root key `{0}`; ask the vendor for a template with the new key"
    )]
    Elsewhere(KeyId),
    /// A statement names another successor than the successor that the reader knows.
    #[error(
        "root key `{from}` has two successors: `{known}`, which is known, and `{other}`; somebody has a copy of its private part"
    )]
    Forked {
        /// The root key that was replaced.
        from: KeyId,
        /// The successor that the reader knows.
        known: KeyId,
        /// The successor in the statement.
        other: KeyId,
    },
    /// Another root was announced as the only possible successor.
    #[error("root key `{to}` may not follow `{from}`: only `{second}` may, which was announced as the second root")]
    NotTheSecond {
        /// The root that ends.
        from: KeyId,
        /// The successor in the statement.
        to: KeyId,
        /// The announced successor.
        second: KeyId,
    },
    /// The new root was a root before.
    #[error("root key `{0}` was replaced by another root key and cannot be used again")]
    Returns(KeyId),
    /// The statement belongs to another tenant.
    #[error("the succession belongs to tenant `{0}`")]
    OtherTenant(TenantName),
    /// A root ends before the previous root ends.
    #[error("root key `{0}` expires before the root key that it replaced")]
    Backwards(KeyId),
    /// There are too many statements.
    #[error("more than {max} successions are not followed", max = limits::MAX_SUCCESSIONS)]
    TooMany,
    /// The signatures or the form are wrong.
    #[error("a succession of root keys is not accepted: {0}")]
    Unsigned(Box<EnvelopeError>),
}
