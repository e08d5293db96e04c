//! DSSE envelopes signed with Ed25519 (in-toto DSSE specification v1; RFC 8032), and the delegate certificate with
//! which a short-lived key signs in place of the tenant's root key in KMS.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::digest::hex;
use crate::{KeyUse, KeyUses, TenantName, Timestamp, limits};

/// A message that an envelope can contain.
pub trait Payload: Serialize + DeserializeOwned {
    /// The DSSE payload type, `application/vnd.freehold.<kind>.v1+json`.
    const TYPE: &'static str;

    /// Returns the bytes that are signed.
    ///
    /// # Errors
    /// When the message cannot be written as JSON.
    fn bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }
}

/// A message that a delegate key may sign if its certificate has the use.
pub trait Delegated: Payload {
    /// The use that the certificate must have.
    const USE: KeyUse;
}

/// A signed message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Envelope {
    /// The type of the payload. The signature covers it too.
    pub payload_type: String,
    /// The payload's exact bytes, base64.
    pub payload: String,
    /// The signatures. Messages have one.
    pub signatures: Vec<EnvelopeSignature>,
    /// Texts that travel with the message. No signature covers them: the payload names each by its digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<String>,
}

/// One signature over the payload type and the payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeSignature {
    /// The name of the key that signed. It only tells a verifier which key to use; the signature is the proof.
    pub keyid: KeyId,
    /// The Ed25519 signature, base64.
    pub sig: String,
    /// The certificate of a delegate key: an envelope signed by the tenant's root key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert: Option<Box<Envelope>>,
}

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
        schemars::json_schema!({ "type": "string", "description": "Ed25519 public key: 32 bytes, base64" })
    }
}

/// The certificate of a delegate key: the tenant's root key permits this key to sign some kinds of messages for a limited
/// time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegate {
    /// The tenant for which the key may sign.
    pub tenant: TenantName,
    /// The delegate key.
    pub public_key: PublicKey,
    /// The time from which the key may sign messages.
    pub not_before: Timestamp,
    /// The time until which messages of the key are accepted.
    pub not_after: Timestamp,
    /// What the key may sign. Certificates that were made before this field existed permit nothing.
    #[serde(default)]
    pub uses: KeyUses,
}

impl Payload for Delegate {
    const TYPE: &'static str = "application/vnd.freehold.delegate.v1+json";
}

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

impl Envelope {
    /// Returns `payload` signed by each of `keys`.
    ///
    /// # Errors
    /// [`EnvelopeError::Unwritable`] when the payload is not representable as JSON.
    pub fn seal<P: Payload>(payload: &P, keys: &[&SigningKey]) -> Result<Self, EnvelopeError> {
        let bytes = payload.bytes().map_err(|e| EnvelopeError::Unwritable(e.to_string()))?;
        let signed = pae(P::TYPE, &bytes);
        let signatures = keys
            .iter()
            .map(|key| EnvelopeSignature {
                keyid: KeyId::of(&key.verifying_key()),
                sig: BASE64.encode(key.sign(&signed).to_bytes()),
                cert: None,
            })
            .collect();
        Ok(Self { payload_type: P::TYPE.to_owned(), payload: BASE64.encode(&bytes), signatures, attached: Vec::new() })
    }

    /// Returns `payload` signed by a delegate key that carries its certificate.
    ///
    /// # Errors
    /// As [`Envelope::seal`].
    pub fn seal_delegated<P: Payload>(payload: &P, key: &SigningKey, cert: &Self) -> Result<Self, EnvelopeError> {
        let mut envelope = Self::seal(payload, &[key])?;
        for signature in &mut envelope.signatures {
            signature.cert = Some(Box::new(cert.clone()));
        }
        Ok(envelope)
    }

    /// Returns an envelope around `payload` whose signature was made elsewhere (KMS) over [`signed_bytes`].
    ///
    /// # Errors
    /// As [`Envelope::seal`].
    pub fn with_signature<P: Payload>(payload: &P, key: &PublicKey, signature: &[u8]) -> Result<Self, EnvelopeError> {
        let bytes = payload.bytes().map_err(|e| EnvelopeError::Unwritable(e.to_string()))?;
        let signature = EnvelopeSignature { keyid: key.key_id(), sig: BASE64.encode(signature), cert: None };
        let (payload_type, payload) = (P::TYPE.to_owned(), BASE64.encode(&bytes));
        Ok(Self { payload_type, payload, signatures: vec![signature], attached: Vec::new() })
    }

    /// Parses an envelope. Checks its size first.
    ///
    /// # Errors
    /// [`EnvelopeError::TooLarge`] or [`EnvelopeError::Malformed`].
    pub fn parse(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        if bytes.len() > limits::MAX_ENVELOPE_BYTES {
            return Err(EnvelopeError::TooLarge(bytes.len()));
        }
        serde_json::from_slice(bytes).map_err(|e| EnvelopeError::Malformed(e.to_string()))
    }

    /// Returns the envelope as one line of JSON.
    ///
    /// # Errors
    /// [`EnvelopeError::Unwritable`]; envelopes of this crate never cause it.
    pub fn to_json(&self) -> Result<String, EnvelopeError> {
        serde_json::to_string(self).map_err(|e| EnvelopeError::Unwritable(e.to_string()))
    }

    /// Returns the payload after checking that `key` signed it.
    ///
    /// # Errors
    /// Every [`EnvelopeError`] except those about certificates.
    pub fn open<P: Payload>(&self, key: &PublicKey) -> Result<P, EnvelopeError> {
        let bytes = self.payload_bytes::<P>()?;
        self.check_signature(key, &bytes)?;
        parse_payload(&bytes)
    }

    /// Verifies that a delegate key signed the payload, and that `root` certified this key for `tenant`, for the time
    /// `now` and for the use of the payload; then returns the payload.
    ///
    /// # Errors
    /// Every [`EnvelopeError`].
    pub fn open_delegated<P: Delegated>(
        &self,
        root: &PublicKey,
        tenant: &TenantName,
        now: Timestamp,
    ) -> Result<P, EnvelopeError> {
        let bytes = self.payload_bytes::<P>()?;
        let delegate = self.delegate(root)?;
        if delegate.tenant != *tenant {
            return Err(EnvelopeError::OtherTenant(delegate.tenant));
        }
        if now < delegate.not_before || now > delegate.not_after {
            return Err(EnvelopeError::CertificateExpired(delegate.public_key.key_id()));
        }
        self.check_signature(&delegate.public_key, &bytes)?;
        if !delegate.uses.permit(P::USE) {
            let key = delegate.public_key.key_id();
            return Err(EnvelopeError::NotPermitted { key, lacks: P::USE, has: delegate.uses });
        }
        parse_payload(&bytes)
    }

    /// Returns the content of the envelope's certificate after checking that `root` signed the certificate.
    ///
    /// # Errors
    /// [`EnvelopeError::NoCertificate`], or as [`Envelope::open`] for the certificate.
    pub fn delegate(&self, root: &PublicKey) -> Result<Delegate, EnvelopeError> {
        let cert = self.signatures.iter().find_map(|s| s.cert.as_deref()).ok_or(EnvelopeError::NoCertificate)?;
        cert.open(root)
    }

    /// Returns whether the certificate says that its key may sign statements of use `wanted`. The signature of the
    /// certificate is not verified: a caller asks this only of a message that it signed itself.
    pub fn claims(&self, wanted: KeyUse) -> bool {
        let certs = self.signatures.iter().filter_map(|signature| signature.cert.as_deref());
        certs.filter_map(|cert| cert.peek::<Delegate>().ok()).any(|delegate| delegate.uses.permit(wanted))
    }

    /// Returns the payload without verifying it. A caller uses it only to find the key that must verify the envelope.
    ///
    /// # Errors
    /// [`EnvelopeError::WrongType`] or [`EnvelopeError::Malformed`].
    pub fn peek<P: Payload>(&self) -> Result<P, EnvelopeError> {
        parse_payload(&self.payload_bytes::<P>()?)
    }

    fn payload_bytes<P: Payload>(&self) -> Result<Vec<u8>, EnvelopeError> {
        if self.payload_type != P::TYPE {
            let found = self.payload_type.chars().take(80).collect();
            return Err(EnvelopeError::WrongType { found, expected: P::TYPE });
        }
        BASE64.decode(&self.payload).map_err(|e| EnvelopeError::Malformed(format!("payload: {e}")))
    }

    fn check_signature(&self, key: &PublicKey, payload: &[u8]) -> Result<(), EnvelopeError> {
        let key_id = key.key_id();
        let found = self.signatures.iter().find(|s| s.keyid == key_id);
        let found = found.ok_or_else(|| EnvelopeError::Unsigned(key_id.clone()))?;
        let raw = BASE64.decode(&found.sig).map_err(|_| EnvelopeError::BadSignature(key_id.clone()))?;
        let signature = Signature::from_slice(&raw).map_err(|_| EnvelopeError::BadSignature(key_id.clone()))?;
        let signed = pae(&self.payload_type, payload);
        key.verifying_key().verify_strict(&signed, &signature).map_err(|_| EnvelopeError::BadSignature(key_id))
    }
}

/// Returns the bytes to sign for `payload`, for a key outside this process, such as a key in KMS.
///
/// # Errors
/// [`EnvelopeError::Unwritable`] when the payload is not representable as JSON.
pub fn signed_bytes<P: Payload>(payload: &P) -> Result<Vec<u8>, EnvelopeError> {
    let bytes = payload.bytes().map_err(|e| EnvelopeError::Unwritable(e.to_string()))?;
    Ok(pae(P::TYPE, &bytes))
}

/// Decodes standard base64, for readers that have no base64 decoder of their own.
///
/// # Errors
/// [`EnvelopeError::Malformed`].
pub fn decode_base64(text: &str) -> Result<Vec<u8>, EnvelopeError> {
    BASE64.decode(text).map_err(|e| EnvelopeError::Malformed(e.to_string()))
}

/// Returns the bytes that an envelope's signature covers, DSSE's pre-authentication encoding:
/// `"DSSEv1" SP len(type) SP type SP len(body) SP body`.
pub fn pae(payload_type: &str, body: &[u8]) -> Vec<u8> {
    let mut out = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), body.len()).into_bytes();
    out.extend_from_slice(body);
    out
}

fn parse_payload<P: Payload>(bytes: &[u8]) -> Result<P, EnvelopeError> {
    serde_json::from_slice(bytes).map_err(|e| EnvelopeError::Malformed(format!("payload: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_bytes(&[seed; 32])
    }

    fn public(key: &SigningKey) -> PublicKey {
        key.verifying_key().into()
    }

    fn delegate(tenant: &str, from: u64, until: u64) -> Delegate {
        Delegate {
            tenant: tenant.parse().unwrap(),
            public_key: public(&key(2)),
            not_before: Timestamp::from_millis(from),
            not_after: Timestamp::from_millis(until),
            uses: [KeyUse::Orders].into(),
        }
    }

    #[derive(Debug, Serialize, Deserialize)]
    struct Note {}

    impl Payload for Note {
        const TYPE: &'static str = "application/vnd.freehold.note.v1+json";
    }

    impl Delegated for Note {
        const USE: KeyUse = KeyUse::Orders;
    }

    fn sealed(cert: &Delegate, root: &SigningKey) -> Envelope {
        let cert = Envelope::seal(cert, &[root]).unwrap();
        Envelope::seal_delegated(&Note {}, &key(2), &cert).unwrap()
    }

    fn opened(envelope: &Envelope, now: u64) -> Result<Note, EnvelopeError> {
        envelope.open_delegated(&public(&key(1)), &"acme".parse().unwrap(), Timestamp::from_millis(now))
    }

    #[test]
    fn a_message_signed_by_a_certified_delegate_is_believed_while_the_certificate_lasts() {
        let envelope = sealed(&delegate("acme", 10, 20), &key(1));

        assert!(opened(&envelope, 10).is_ok());
        assert!(opened(&envelope, 20).is_ok());
        assert!(matches!(opened(&envelope, 9), Err(EnvelopeError::CertificateExpired(_))));
        assert!(matches!(opened(&envelope, 21), Err(EnvelopeError::CertificateExpired(_))));
    }

    #[test]
    fn a_certificate_of_another_root_or_tenant_is_refused() {
        let other_root = sealed(&delegate("acme", 0, 20), &key(9));
        let other_tenant = sealed(&delegate("globex", 0, 20), &key(1));
        let mut bare = other_tenant.clone();
        bare.signatures[0].cert = None;

        assert!(matches!(opened(&other_root, 10), Err(EnvelopeError::Unsigned(_))));
        assert!(matches!(opened(&other_tenant, 10), Err(EnvelopeError::OtherTenant(_))));
        assert!(matches!(opened(&bare, 10), Err(EnvelopeError::NoCertificate)));
    }

    #[test]
    fn a_changed_payload_or_type_breaks_the_signature() {
        let good = Envelope::seal(&delegate("acme", 1, 2), &[&key(1)]).unwrap();
        let mut payload = good.clone();
        payload.payload = Envelope::seal(&delegate("acme", 1, 3), &[&key(1)]).unwrap().payload;
        let mut kind = good.clone();
        kind.payload_type = "application/vnd.freehold.order.v1+json".into();

        assert!(good.open::<Delegate>(&public(&key(1))).is_ok());
        assert!(matches!(payload.open::<Delegate>(&public(&key(1))), Err(EnvelopeError::BadSignature(_))));
        assert!(matches!(kind.open::<Delegate>(&public(&key(1))), Err(EnvelopeError::WrongType { .. })));
        assert!(matches!(good.open::<Delegate>(&public(&key(3))), Err(EnvelopeError::Unsigned(_))));
    }

    #[test]
    fn an_oversized_message_is_refused_before_it_is_parsed() {
        let bytes = vec![b'['; limits::MAX_ENVELOPE_BYTES + 1];

        assert_eq!(Envelope::parse(&bytes), Err(EnvelopeError::TooLarge(bytes.len())));
    }

    #[test]
    fn the_pre_authentication_encoding_is_the_published_example() {
        // The example of the DSSE specification, protocol.md.
        assert_eq!(
            pae("http://example.com/HelloWorld", b"hello world"),
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
    }

    #[test]
    fn a_kms_public_key_is_read_from_its_der_form() {
        use ed25519_dalek::pkcs8::EncodePublicKey as _;
        let der = key(4).verifying_key().to_public_key_der().unwrap();

        assert_eq!(PublicKey::from_spki_der(der.as_bytes()).unwrap(), public(&key(4)));
    }
}
