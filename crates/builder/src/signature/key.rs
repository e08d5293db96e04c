//! The public keys of the signers of images, and the verification of a signature with such a key.

use freehold_protocol::{Digest, pem};
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256,
    UnparsedPublicKey, VerificationAlgorithm,
};
use spki::der::asn1::{AnyRef, UintRef};
use spki::der::{Decode as _, Error};
use spki::{ObjectIdentifier, SubjectPublicKeyInfoRef};

const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const EDWARDS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// The algorithms to try. Cosign hashes with SHA-256 for every key (`specs/SIGNATURE_SPEC.md`), or with the hash that
/// fits the size of the key.
type Algorithms = Vec<&'static dyn VerificationAlgorithm>;

/// A public key that verifies signatures.
#[derive(Debug)]
pub(super) struct Key {
    /// The SHA-256 digest of the key's `SubjectPublicKeyInfo`.
    pub(super) fingerprint: Digest,
    algorithms: Algorithms,
    bytes: Vec<u8>,
}

impl Key {
    /// Parses a key in PEM form. The error describes the mistake in the key.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let der = pem::public_key(text).map_err(|error| error.to_string())?;
        let no_key = |error: Error| format!("the contents of the public key are not a key: {error}");
        let info = SubjectPublicKeyInfoRef::from_der(&der).map_err(no_key)?;
        let bytes = info
            .subject_public_key
            .as_bytes()
            .ok_or("the contents of the public key are not a whole number of bytes")?;
        let algorithms: Algorithms = match info.algorithm.oids().map_err(no_key)? {
            (EC, Some(P256)) if is_point(bytes, 32) => vec![&ECDSA_P256_SHA256_ASN1],
            (EC, Some(P384)) if is_point(bytes, 48) => vec![&ECDSA_P384_SHA384_ASN1, &ECDSA_P384_SHA256_ASN1],
            (EC, Some(P256 | P384)) => return Err("the public key is a point that is compressed or cut off".to_owned()),
            (EDWARDS, None) if bytes.len() == 32 => vec![&ED25519],
            (RSA, None) => match modulus_bits(bytes).map_err(no_key)? {
                2048..=8192 => vec![&RSA_PKCS1_2048_8192_SHA256],
                bits => return Err(format!("the public key is an RSA key of {bits} bits, not of 2048 to 8192")),
            },
            (kind, more) => {
                let more = more.map(|more| format!(" with {more}")).unwrap_or_default();
                return Err(format!(
                    "the public key is of kind {kind}{more}, not ECDSA with P-256 or P-384, RSA, or Ed25519"
                ));
            }
        };
        Ok(Self { fingerprint: Digest::of(&der), algorithms, bytes: bytes.to_vec() })
    }

    /// Returns whether `signature` is a valid signature of `message` by this key.
    pub(super) fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let verify = |algorithm: &&'static dyn VerificationAlgorithm| {
            UnparsedPublicKey::new(*algorithm, &self.bytes).verify(message, signature).is_ok()
        };
        self.algorithms.iter().any(verify)
    }
}

/// Returns whether `bytes` is an uncompressed point (SEC 1, section 2.3.3) with coordinates of `size` bytes.
fn is_point(bytes: &[u8], size: usize) -> bool {
    bytes.len() == 1 + 2 * size && bytes.first() == Some(&4)
}

/// Returns the size of the modulus of an `RSAPublicKey` (RFC 8017, appendix A.1.1), in bits.
fn modulus_bits(bytes: &[u8]) -> Result<usize, Error> {
    AnyRef::from_der(bytes)?.sequence(|reader| {
        let (modulus, _exponent) = (UintRef::decode(reader)?, UintRef::decode(reader)?);
        let bytes = modulus.as_bytes();
        let zeros = bytes.first().map_or(0, |first| first.leading_zeros() as usize);
        Ok(bytes.len() * 8 - zeros)
    })
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    /// Keys and signatures that OpenSSL made, over the bytes `payload`.
    macro_rules! file {
        ($name:literal) => {
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/keys/", $name))
        };
    }

    fn wrong(text: &str) -> String {
        Key::parse(text).err().unwrap()
    }

    #[test]
    fn signatures_of_every_kind_are_verified() {
        for (key, signature) in [
            (file!("p256.pub"), file!("p256.sig")),
            (file!("p384.pub"), file!("p384.sig")),
            (file!("p384.pub"), file!("p384-sha256.sig")),
            (file!("rsa2048.pub"), file!("rsa2048.sig")),
            (file!("ed25519.pub"), file!("ed25519.sig")),
        ] {
            let key = Key::parse(key).unwrap();
            let signature = STANDARD.decode(signature.trim()).unwrap();
            let mut changed = signature.clone();
            *changed.last_mut().unwrap() ^= 1;

            assert!(key.signed(b"payload", &signature), "{key:?}");
            assert!(!key.signed(b"payloae", &signature));
            assert!(!key.signed(b"payload", &changed));
            assert!(!key.signed(b"payload", b""));
        }
    }

    #[test]
    fn a_signature_is_of_one_key_only() {
        let signature = STANDARD.decode(file!("p256.sig").trim()).unwrap();

        for other in [file!("p384.pub"), file!("rsa2048.pub"), file!("ed25519.pub")] {
            assert!(!Key::parse(other).unwrap().signed(b"payload", &signature));
        }
    }

    #[test]
    fn a_key_is_named_by_the_digest_of_its_bytes() {
        let key = Key::parse(file!("p256.pub")).unwrap();

        // The output of `openssl pkey -pubin -in p256.pub -outform DER | sha256sum`.
        assert_eq!(key.fingerprint.hex(), "4356e0276e7b10aab1491eb65a2829ae062594f872f3b5d8e4ac093e3989da49");
    }

    #[test]
    fn a_key_that_cannot_be_verified_with_is_named() {
        let cut: String =
            file!("p256.pub").lines().filter(|line| !line.starts_with("pH")).collect::<Vec<_>>().join("\n");

        let found = [
            wrong("KEY"),
            wrong(file!("p521.pub")),
            wrong(file!("p256-compressed.pub")),
            wrong(file!("rsa1024.pub")),
            wrong(&cut),
        ];

        insta::assert_snapshot!(found.join("\n"), @r"
        the public key is not in PEM form: it does not begin with `-----BEGIN PUBLIC KEY-----`
        the public key is of kind 1.2.840.10045.2.1 with 1.3.132.0.35, not ECDSA with P-256 or P-384, RSA, or Ed25519
        the public key is a point that is compressed or cut off
        the public key is an RSA key of 1024 bits, not of 2048 to 8192
        the contents of the public key are not a key: ASN.1 DER message is incomplete: expected 49, actual 48 at DER byte 48
        ");
    }
}
