//! DSSE envelopes signed with Ed25519 (in-toto DSSE specification v1; RFC 8032), and the delegate certificate with
//! which a short-lived key signs in place of the tenant's root key in KMS.

mod error;
mod key_id;
mod key_use;
mod public_key;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::{Signature, Signer as _, SigningKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{TenantName, Timestamp, limits};

pub use error::{EnvelopeError, SuccessionError};
pub use key_id::KeyId;
pub use key_use::{KeyUse, KeyUses};
pub use public_key::PublicKey;

/// The allowed difference, in seconds, between two clocks of AWS: that of the queue or of one function may be behind the
/// clock that dated the certificate.
const CLOCK_TOLERANCE_SECS: u64 = 60;

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
    /// Texts that travel with the message. No signature covers them: the payload names each by its digest. The texts of
    /// a certificate are the signed statements that lead from an earlier root key to the root key that signed the
    /// certificate.
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
    /// The time until which messages of the key are accepted, if the time of their sending is not known.
    pub not_after: Timestamp,
    /// The time until which messages of the key may be sent. A message that was sent later is refused. A message that
    /// was sent in time may arrive at any time. Absent in certificates of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_until: Option<Timestamp>,
    /// The statements that the key may sign. Certificates that were made before this field existed permit none.
    #[serde(default)]
    pub uses: KeyUses,
}

impl Payload for Delegate {
    const TYPE: &'static str = "application/vnd.freehold.delegate.v1+json";
}

impl Delegate {
    /// Checks that the certificate is valid at `now`, by a clock that may be this much behind.
    fn is_valid_at(&self, now: Timestamp, tolerance_secs: u64) -> Result<(), EnvelopeError> {
        if now.plus_secs(tolerance_secs) < self.not_before || now > self.not_after {
            return Err(EnvelopeError::CertificateExpired(self.public_key.key_id()));
        }
        Ok(())
    }

    /// Checks that a message was sent while the key could sign. The last time for this is `until`.
    fn was_in_time(&self, sent_at: Timestamp, until: Timestamp) -> Result<(), EnvelopeError> {
        let key = self.public_key.key_id();
        if sent_at.plus_secs(CLOCK_TOLERANCE_SECS) < self.not_before {
            return Err(EnvelopeError::CertificateExpired(key));
        }
        if sent_at > until.plus_secs(CLOCK_TOLERANCE_SECS) {
            return Err(EnvelopeError::SentLate { key, late_secs: sent_at.since(until) / 1000 });
        }
        Ok(())
    }
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
    /// Every [`EnvelopeError`] except [`EnvelopeError::SentLate`].
    pub fn open_delegated<P: Delegated>(
        &self,
        root: &PublicKey,
        tenant: &TenantName,
        now: Timestamp,
    ) -> Result<P, EnvelopeError> {
        self.open_if(root, tenant, |delegate| delegate.is_valid_at(now, 0))
    }

    /// Does the same as [`Envelope::open_delegated`] for a message whose queue records the time of sending. A sender
    /// cannot set that time. So a stolen key becomes useless soon after it was certified, but a message may wait in its
    /// queue for any time.
    ///
    /// # Errors
    /// Every [`EnvelopeError`].
    pub fn open_sent<P: Delegated>(
        &self,
        root: &PublicKey,
        tenant: &TenantName,
        sent_at: Timestamp,
        now: Timestamp,
    ) -> Result<P, EnvelopeError> {
        self.open_if(root, tenant, |delegate| match delegate.send_until {
            Some(until) => delegate.was_in_time(sent_at, until),
            None => delegate.is_valid_at(now, CLOCK_TOLERANCE_SECS),
        })
    }

    fn open_if<P: Delegated>(
        &self,
        root: &PublicKey,
        tenant: &TenantName,
        valid: impl FnOnce(&Delegate) -> Result<(), EnvelopeError>,
    ) -> Result<P, EnvelopeError> {
        let bytes = self.payload_bytes::<P>()?;
        let delegate = self.delegate(root)?;
        if delegate.tenant != *tenant {
            return Err(EnvelopeError::OtherTenant(delegate.tenant));
        }
        valid(&delegate)?;
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

    /// Returns whether the certificate states that its key may sign statements of use `wanted`. The signature of the
    /// certificate is not verified: a caller asks this only of a message that it signed itself.
    pub fn claims(&self, wanted: KeyUse) -> bool {
        self.claimed_delegate().is_some_and(|delegate| delegate.uses.permit(wanted))
    }

    /// Returns the time until which the message may be sent, according to its certificate. The signature of the
    /// certificate is not verified.
    pub fn claimed_send_until(&self) -> Option<Timestamp> {
        self.claimed_delegate()?.send_until
    }

    /// Returns the time until which messages of the certificate's key are accepted, if the time of their sending is not
    /// known. The signature of the certificate is not verified: a caller opens the message afterwards, which verifies it.
    pub fn claimed_not_after(&self) -> Option<Timestamp> {
        Some(self.claimed_delegate()?.not_after)
    }

    /// Returns whether a key of this id claims to have signed the message itself.
    pub fn is_signed_as(&self, key: &KeyId) -> bool {
        self.signatures.iter().any(|signature| signature.keyid == *key)
    }

    /// Returns whether a root key of this id claims to have signed the certificate of the message.
    pub fn is_certified_as(&self, root: &KeyId) -> bool {
        self.certificates().any(|cert| cert.is_signed_as(root))
    }

    /// Returns the successions of root keys that the certificate of the message contains, unverified, oldest first.
    ///
    /// # Errors
    /// [`EnvelopeError::Malformed`].
    pub fn succession(&self) -> Result<Vec<Self>, EnvelopeError> {
        let texts = self.certificates().flat_map(|cert| &cert.attached);
        texts
            .map(|text| serde_json::from_str(text).map_err(|e| EnvelopeError::Malformed(format!("succession: {e}"))))
            .collect()
    }

    fn certificates(&self) -> impl Iterator<Item = &Self> {
        self.signatures.iter().filter_map(|signature| signature.cert.as_deref())
    }

    fn claimed_delegate(&self) -> Option<Delegate> {
        self.certificates().find_map(|cert| cert.peek::<Delegate>().ok())
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
            send_until: None,
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
    fn a_message_counts_by_the_time_at_which_it_was_sent_if_its_certificate_says_until_when() {
        let minutes = |n: u64| Timestamp::from_millis(n * 60_000);
        let sent = |send_until, sent_at, now| {
            let certificate = Delegate { send_until, ..delegate("acme", 600_000, 3_600_000) };
            let root = public(&key(1));
            sealed(&certificate, &key(1)).open_sent::<Note>(
                &root,
                &"acme".parse().unwrap(),
                minutes(sent_at),
                minutes(now),
            )
        };
        let until = Some(minutes(20));

        for (sent_at, now) in [(9, 9), (10, 10), (21, 21), (20, 10_000)] {
            assert!(sent(until, sent_at, now).is_ok(), "sent at {sent_at}, taken at {now}");
        }
        let late = sent(until, 22, 22).unwrap_err();
        assert!(matches!(late, EnvelopeError::SentLate { late_secs: 120, .. }), "{late}");
        assert!(matches!(sent(until, 8, 30), Err(EnvelopeError::CertificateExpired(_))));
        // A certificate of the version before: the time of the arrival decides.
        assert!(sent(None, 22, 60).is_ok());
        assert!(matches!(sent(None, 20, 61), Err(EnvelopeError::CertificateExpired(_))));
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
