//! Sealed boxes of NaCl (X25519, XSalsa20-Poly1305) with an ephemeral key for each box, and the key that opens them.

use crypto_box::aead::rand_core::{CryptoRng, Error as RandomError, RngCore};
use crypto_box::{PublicKey, SecretKey};
use curve25519_dalek::MontgomeryPoint;
use freehold_protocol::sealing::SealingKey;
use zeroize::Zeroizing;

/// The size of an X25519 key, in bytes.
pub(crate) const KEY_BYTES: usize = 32;

/// The private half of a sealing key.
#[derive(Clone)]
pub struct OpeningKey(SecretKey);

/// The reason why a value cannot be sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    #[error("the sealing key is not a usable X25519 key")]
    Key,
    #[error("the value cannot be written as JSON")]
    Unwritable,
    #[error("the system gave no random bytes")]
    Random,
}

/// Returns `plain` in a box that `key` opens: the ephemeral public key, then the ciphertext with its tag.
pub(crate) fn sealed(plain: &[u8], key: &SealingKey) -> Result<Vec<u8>, SealError> {
    // With a point of small order, everybody knows the secret that both sides share (RFC 7748 section 6.1).
    let point = MontgomeryPoint(*key.as_bytes()).to_edwards(0).ok_or(SealError::Key)?;
    if point.is_small_order() {
        return Err(SealError::Key);
    }
    let mut random = SystemRandom { has_failed: false };
    let sealed = PublicKey::from_bytes(*key.as_bytes()).seal(&mut random, plain);
    if random.has_failed {
        return Err(SealError::Random);
    }
    sealed.map_err(|_| SealError::Key)
}

impl OpeningKey {
    /// Returns the key with these bytes, which must be random.
    pub fn from_bytes(bytes: &[u8; KEY_BYTES]) -> Self {
        Self(SecretKey::from_bytes(*bytes))
    }

    /// Returns the public half.
    pub fn sealing_key(&self) -> SealingKey {
        SealingKey::from_bytes(self.0.public_key().to_bytes())
    }

    /// Returns the content of a box; `None` for a box that was changed, or that another key opens.
    pub(crate) fn unsealed(&self, sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        self.0.unseal(sealed).ok().map(Zeroizing::new)
    }
}

impl std::fmt::Debug for OpeningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpeningKey of {:?}", self.sealing_key())
    }
}

/// The randomness of the operating system, for a library whose generators cannot fail.
struct SystemRandom {
    has_failed: bool,
}

impl RngCore for SystemRandom {
    fn next_u32(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.fill_bytes(&mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill_bytes(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.has_failed |= getrandom::fill(bytes).is_err();
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), RandomError> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

impl CryptoRng for SystemRandom {}
