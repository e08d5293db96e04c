//! The digests of secret values that the vendor gets (decisions 0047 and 0067). Without the key nobody can
//! test whether a guessed value has the digest.

use freehold_protocol::Digest;
use ring::hmac;

/// Returns the digest of the HMAC-SHA-256 (RFC 2104) of a name and its value. The length of the name comes first, so that
/// two different pairs never give the same input.
pub(super) fn keyed_digest(key: &str, name: &str, value: &str) -> Digest {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()));
    context.update(&(name.len() as u64).to_be_bytes());
    context.update(name.as_bytes());
    context.update(value.as_bytes());
    Digest::of(context.sign().as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_stays_the_same_from_release_to_release() {
        let digest = keyed_digest("key of this account", "password", "correct horse");

        // Computed with Python's `hmac` and `hashlib`. The control plane compares digests of older runners with newer ones.
        assert_eq!(digest.to_string(), "sha256:16551412deae0b56c714eaa07481b8b89af9df27b7a042e98d404c310d52dae3");
    }

    #[test]
    fn a_digest_changes_with_the_value_the_name_and_the_key() {
        let digest = keyed_digest("k", "token", "x");

        assert_ne!(digest, keyed_digest("l", "token", "x"));
        assert_ne!(digest, keyed_digest("k", "tokens", "x"));
        assert_ne!(digest, keyed_digest("k", "token", "y"));
        assert_ne!(digest, Digest::of(b"x"));
        assert_ne!(keyed_digest("k", "a", "bc"), keyed_digest("k", "ab", "c"));
    }
}
