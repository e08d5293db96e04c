//! The keys of the parties of a lineage, each from a seed.

use ed25519_dalek::SigningKey;
use freehold_protocol::envelope::PublicKey;

pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

pub(crate) fn public(key: &SigningKey) -> PublicKey {
    key.verifying_key().into()
}

pub(crate) fn root() -> PublicKey {
    public(&key(1))
}
