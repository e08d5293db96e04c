//! The public keys of an issuer, and the check of a signature with ring, which is the only cryptography of the
//! programs. Keys of other algorithms than RS256 and ES256 are left out.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result as JwtResult};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::signature::{Error as SignatureError, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::error::Error;
use crate::http::Http;

/// The public keys that an issuer signs with.
#[derive(Debug, Clone)]
pub(crate) struct Keys(Vec<Key>);

#[derive(Debug, Clone)]
pub(crate) struct Key {
    id: Option<String>,
    pub(crate) algorithm: Algorithm,
    pub(crate) key: DecodingKey,
}

/// A set of keys (RFC 7517). Each key is read on its own, because an issuer may have keys of kinds that are not known
/// here.
#[derive(Debug, Deserialize)]
pub(crate) struct KeySet {
    keys: Vec<Value>,
}

impl Keys {
    /// # Errors
    /// Unreachable, Status or Unreadable.
    pub(crate) async fn read(http: &Http, url: &Url) -> Result<Self, Error> {
        http.get::<KeySet>(url).await.map(Self::of)
    }

    pub(crate) fn of(set: KeySet) -> Self {
        let known = set.keys.into_iter().filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        Self(known.filter_map(|jwk| Key::of(&jwk)).collect())
    }

    /// Returns the keys that may have signed a token whose header names the key `id` and `algorithm`.
    pub(crate) fn matching(&self, id: Option<&str>, algorithm: Algorithm) -> impl Iterator<Item = &Key> {
        self.0.iter().filter(move |key| key.algorithm == algorithm && id.is_none_or(|id| key.id.as_deref() == Some(id)))
    }
}

impl Key {
    fn of(jwk: &Jwk) -> Option<Self> {
        let algorithm = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => Algorithm::RS256,
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => Algorithm::ES256,
            _ => return None,
        };
        let is_of_other_algorithm = match jwk.common.key_algorithm {
            None => false,
            Some(KeyAlgorithm::RS256) => algorithm != Algorithm::RS256,
            Some(KeyAlgorithm::ES256) => algorithm != Algorithm::ES256,
            Some(_) => true,
        };
        if is_of_other_algorithm || jwk.common.public_key_use == Some(PublicKeyUse::Encryption) {
            return None;
        }
        let key = DecodingKey::from_jwk(jwk).ok()?;
        Some(Self { id: jwk.common.key_id.clone(), algorithm, key })
    }
}

/// Makes ring check the signatures of tokens in this process.
pub(crate) fn use_ring() {
    // Another thread may have done it before.
    let _ = RING.install_default();
}

static RING: CryptoProvider =
    CryptoProvider { signer_factory: signer, verifier_factory: verifier, key_utils: KeyUtils::new_unimplemented() };

fn signer(_: &Algorithm, _: &EncodingKey) -> JwtResult<Box<dyn jsonwebtoken::crypto::JwtSigner>> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> JwtResult<Box<dyn JwtVerifier>> {
    match (algorithm, key.kind()) {
        (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
            Ok(Box::new(Rsa(RsaPublicKeyComponents { n: n.clone(), e: e.clone() })))
        }
        (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
            Ok(Box::new(P256(UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point.clone()))))
        }
        _ => Err(ErrorKind::UnsupportedAlgorithm.into()),
    }
}

struct Rsa(RsaPublicKeyComponents<Vec<u8>>);

impl Verifier<Vec<u8>> for Rsa {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        let verified = self.0.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature);
        verified.map_err(|_| SignatureError::new())
    }
}

impl JwtVerifier for Rsa {
    fn algorithm(&self) -> Algorithm {
        Algorithm::RS256
    }
}

struct P256(UnparsedPublicKey<Vec<u8>>);

impl Verifier<Vec<u8>> for P256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        self.0.verify(message, signature).map_err(|_| SignatureError::new())
    }
}

impl JwtVerifier for P256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::ES256
    }
}
