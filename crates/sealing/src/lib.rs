//! Seals the vendor's sensitive inputs to the key of an install's runner, and opens them in the runner: sealed boxes of
//! NaCl (X25519, XSalsa20-Poly1305) with an ephemeral key for each value. The tenant, the install and the input are
//! sealed with the value, so that a sealed value cannot be used at another place. Seals support bundles too.

mod bundle;
mod sealed_box;

use freehold_protocol::sealing::{SealedValue, SealingKey};
use freehold_protocol::{InstallId, TenantName};
use serde_json::{Value, json};
use zeroize::Zeroizing;

pub use bundle::{OpenBundleError, seal_bundle};
pub use sealed_box::{OpeningKey, SealError};

use crate::sealed_box::{KEY_BYTES, sealed};

/// A value is padded to a multiple of this many bytes, so that the length reveals little about the value.
const BLOCK: usize = 64;

/// The place of a sealed value: an input of an install of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    pub tenant: &'a TenantName,
    pub install: &'a InstallId,
    pub input: &'a str,
}

/// The reason why a sealed value cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The value was sealed to another key.
    #[error("it is sealed to another key")]
    OtherKey,
    /// The value was changed, or sealed for another tenant, install or input.
    #[error("it was changed, or sealed for another install or input")]
    Refused,
}

/// Returns `value` sealed to `key` for `place`.
///
/// # Errors
/// A [`SealError`].
pub fn seal(value: &Value, key: &SealingKey, place: Place<'_>) -> Result<SealedValue, SealError> {
    let sealed = sealed(&padded(value, place)?, key)?;
    let (ephemeral, ciphertext) = sealed.split_first_chunk::<KEY_BYTES>().ok_or(SealError::Key)?;
    Ok(SealedValue::new(key.clone(), *ephemeral, ciphertext.to_vec()))
}

/// Returns `value` and its place as JSON, padded with spaces at the end.
fn padded(value: &Value, place: Place<'_>) -> Result<Zeroizing<Vec<u8>>, SealError> {
    let Place { tenant, install, input } = place;
    let all = json!({ "tenant": tenant, "install": install, "input": input, "value": value });
    let text = Zeroizing::new(serde_json::to_vec(&all).map_err(|_| SealError::Unwritable)?);
    // A buffer of the final size is never moved, so no copy of the value stays behind.
    let size = text.len().next_multiple_of(BLOCK);
    let mut plain = Zeroizing::new(Vec::with_capacity(size));
    plain.extend_from_slice(&text);
    plain.resize(size, b' ');
    Ok(plain)
}

impl OpeningKey {
    /// Returns the value that was sealed for `place`.
    ///
    /// # Errors
    /// An [`OpenError`].
    pub fn open(&self, sealed: &SealedValue, place: Place<'_>) -> Result<Value, OpenError> {
        if *sealed.key() != self.sealing_key() {
            return Err(OpenError::OtherKey);
        }
        let sealed = [sealed.ephemeral(), sealed.ciphertext()].concat();
        let plain = self.unsealed(&sealed).ok_or(OpenError::Refused)?;
        let mut all: Value = serde_json::from_slice(&plain).map_err(|_| OpenError::Refused)?;
        let is = |name: &str, expected: &str| all.get(name).and_then(Value::as_str) == Some(expected);
        if !is("tenant", place.tenant.as_str()) || !is("install", place.install.as_str()) || !is("input", place.input) {
            return Err(OpenError::Refused);
        }
        all.get_mut("value").map(Value::take).ok_or(OpenError::Refused)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn key(seed: u8) -> OpeningKey {
        OpeningKey::from_bytes(&[seed; 32])
    }

    struct Names {
        tenant: TenantName,
        install: InstallId,
    }

    impl Names {
        fn of(tenant: &str, install: &str) -> Self {
            Self { tenant: tenant.parse().unwrap(), install: install.parse().unwrap() }
        }

        fn input<'a>(&'a self, input: &'a str) -> Place<'a> {
            Place { tenant: &self.tenant, install: &self.install, input }
        }
    }

    proptest! {
        #[test]
        fn a_value_opens_where_it_was_sealed_for(text: String, number: i64, seed: [u8; 32], input in "[a-z_]{1,20}") {
            let (names, key) = (Names::of("acme", "globex"), OpeningKey::from_bytes(&seed));
            for value in [json!(text), json!(number), json!([text, { "a": number }]), json!(true)] {
                let sealed = seal(&value, &key.sealing_key(), names.input(&input)).unwrap();

                prop_assert_eq!(key.open(&sealed, names.input(&input)), Ok(value));
            }
        }

        #[test]
        fn no_changed_byte_is_accepted(at in 0_usize..1000, bit in 0_u32..8) {
            let names = Names::of("acme", "globex");
            let sealed = seal(&json!("hunter2"), &key(1).sealing_key(), names.input("token")).unwrap();
            let mut ephemeral = *sealed.ephemeral();
            let mut ciphertext = sealed.ciphertext().to_vec();
            let all = ephemeral.len() + ciphertext.len();
            *ephemeral.iter_mut().chain(&mut ciphertext).nth(at % all).unwrap() ^= 1 << bit;
            // X25519 ignores the highest bit of a public key (RFC 7748 section 5), but the nonce depends on all of its bits.
            let changed = SealedValue::new(sealed.key().clone(), ephemeral, ciphertext);

            prop_assert_eq!(key(1).open(&changed, names.input("token")), Err(OpenError::Refused));
        }
    }

    #[test]
    fn a_value_opens_at_no_other_place() {
        let names = Names::of("acme", "globex");
        let sealed = seal(&json!("hunter2"), &key(1).sealing_key(), names.input("token")).unwrap();

        let others = [
            (Names::of("acme", "globex"), "tokem"),
            (Names::of("acme", "initech"), "token"),
            (Names::of("evil", "globex"), "token"),
            (Names::of("acme", "globex"), "globex\0token"),
        ];
        for (names, input) in others {
            assert_eq!(key(1).open(&sealed, names.input(input)), Err(OpenError::Refused));
        }
        assert_eq!(key(2).open(&sealed, names.input("token")), Err(OpenError::OtherKey));
    }

    #[test]
    fn a_value_that_claims_another_key_does_not_open() {
        let names = Names::of("acme", "globex");
        let sealed = seal(&json!("hunter2"), &key(1).sealing_key(), names.input("token")).unwrap();
        let claims = SealedValue::new(key(2).sealing_key(), *sealed.ephemeral(), sealed.ciphertext().to_vec());

        assert_eq!(key(2).open(&claims, names.input("token")), Err(OpenError::Refused));
    }

    #[test]
    fn the_same_value_is_sealed_differently_each_time_and_its_length_is_rounded() {
        let (names, to) = (Names::of("acme", "globex"), key(1).sealing_key());
        let length =
            |length: usize| seal(&json!("a".repeat(length)), &to, names.input("token")).unwrap().ciphertext().len();
        let sealed = || seal(&json!("hunter2"), &to, names.input("token")).unwrap();

        let lengths: std::collections::BTreeSet<usize> = (0..BLOCK).map(length).collect();

        assert_ne!(sealed(), sealed());
        assert_eq!(lengths.len(), 2, "{lengths:?}");
    }

    #[test]
    fn a_key_with_which_everybody_could_open_is_refused() {
        let names = Names::of("acme", "globex");
        let [mut one, mut minus_one] = [[0; 32], [0xff; 32]];
        one[0] = 1;
        [minus_one[0], minus_one[31]] = [0xec, 0x7f];
        for bytes in [[0; 32], one, minus_one] {
            assert_eq!(
                seal(&json!("x"), &SealingKey::from_bytes(bytes), names.input("token")),
                Err(SealError::Key),
                "{bytes:?}"
            );
        }
        for seed in 0..50 {
            assert!(seal(&json!("x"), &key(seed).sealing_key(), names.input("token")).is_ok(), "{seed}");
        }
    }

    /// RFC 7748 section 6.1: Alice's key pair.
    #[test]
    fn the_public_half_is_that_of_the_rfc() {
        let bytes = |hex: &str| -> Vec<u8> {
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
        };
        let private = bytes("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
        let public = bytes("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");

        let key = OpeningKey::from_bytes(private.as_slice().try_into().unwrap());

        assert_eq!(key.sealing_key().as_bytes().as_slice(), public);
    }
}
