//! What the value of a session's cookie does: it names the row of the session, opens the tokens in that row, and proves
//! that a form belongs to the session. The row alone does none of that.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use freehold_app::AppError;
use freehold_protocol::Digest;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::error::Unspecified;
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

const BYTES: usize = 32;
/// Separates these keys from keys that another program could derive from the same bytes.
const SALT: &[u8] = b"freehold console";
const SEAL: &[u8] = b"tokens";
const FORMS: &[u8] = b"forms";

/// 256 random bits that only the person's browser keeps.
#[derive(Clone)]
pub(crate) struct Secret([u8; BYTES]);

/// Does not show the bits, because logs contain debug texts.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Draws a secret.
    pub(crate) fn random() -> Result<Self, AppError> {
        Ok(Self(random()?))
    }

    /// Returns the secret of a cookie's value, if it has the form of one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok().map(Self)
    }

    /// Returns the value of the cookie.
    pub(crate) fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// Returns the name of the row: the SHA-256 of the secret in hex.
    pub(crate) fn id(&self) -> String {
        Digest::of(&self.0).hex().to_owned()
    }

    /// Seals `plain` for the place `place`, such as the name of its row.
    pub(crate) fn seal(&self, plain: &[u8], place: &str) -> Result<String, AppError> {
        let nonce: [u8; NONCE_LEN] = random()?;
        let mut sealed = plain.to_vec();
        self.key()
            .and_then(|key| {
                let nonce = Nonce::assume_unique_for_key(nonce);
                key.seal_in_place_append_tag(nonce, Aad::from(place.as_bytes()), &mut sealed)
            })
            .map_err(|_| AppError::internal("the tokens of a session cannot be sealed"))?;
        Ok(URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed].concat()))
    }

    /// Returns what was sealed with this secret for `place`; `None` for everything else.
    pub(crate) fn open(&self, sealed: &str, place: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let (key, mut sealed) = (self.key().ok()?, sealed.to_vec());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        key.open_in_place(nonce, Aad::from(place.as_bytes()), &mut sealed).ok().map(|plain| plain.to_vec())
    }

    /// Returns the token that each form of the session has.
    pub(crate) fn form_token(&self) -> Result<String, AppError> {
        let key = self.form_key().map_err(|_| AppError::internal("the token of a form cannot be made"))?;
        Ok(URL_SAFE_NO_PAD.encode(hmac::sign(&key, FORMS)))
    }

    /// Returns whether `token` is the token of the session's forms. The time of the comparison reveals nothing.
    pub(crate) fn is_form_token(&self, token: &str) -> bool {
        let (Ok(key), Ok(token)) = (self.form_key(), URL_SAFE_NO_PAD.decode(token)) else { return false };
        hmac::verify(&key, FORMS, &token).is_ok()
    }

    fn key(&self) -> Result<LessSafeKey, Unspecified> {
        Ok(LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, &self.derived(SEAL)?)?))
    }

    fn form_key(&self) -> Result<hmac::Key, Unspecified> {
        Ok(hmac::Key::new(hmac::HMAC_SHA256, &self.derived(FORMS)?))
    }

    fn derived(&self, purpose: &[u8]) -> Result<[u8; BYTES], Unspecified> {
        let (root, purpose) = (Salt::new(HKDF_SHA256, SALT).extract(&self.0), [purpose]);
        let mut key = [0; BYTES];
        root.expand(&purpose, HKDF_SHA256)?.fill(&mut key)?;
        Ok(key)
    }
}

/// Returns a random name for the forms of one page, from which their idempotency keys are made.
pub(crate) fn random_name() -> Result<String, AppError> {
    Ok(URL_SAFE_NO_PAD.encode(random::<16>()?))
}

fn random<const N: usize>() -> Result<[u8; N], AppError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| AppError::internal("the system gives no random bytes"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_secret_opens_at_the_same_place() {
        let (secret, other) = (Secret::random().unwrap(), Secret::random().unwrap());
        let sealed = secret.seal(b"token", "row").unwrap();

        assert_eq!(secret.open(&sealed, "row").as_deref(), Some(b"token".as_slice()));
        assert_eq!(Secret::parse(&secret.text()).unwrap().open(&sealed, "row").as_deref(), Some(b"token".as_slice()));
        assert_eq!(other.open(&sealed, "row"), None);
        assert_eq!(secret.open(&sealed, "another row"), None);
        assert_eq!(secret.open("", "row"), None);
        assert_eq!(secret.open(&format!("A{sealed}"), "row"), None);
    }

    #[test]
    fn neither_the_id_nor_the_token_of_forms_is_the_secret() {
        let secret = Secret::random().unwrap();

        let texts = [secret.text(), secret.id(), secret.form_token().unwrap()];

        assert_eq!(texts.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
        assert_eq!((texts[0].len(), texts[1].len()), (43, 64));
        assert_eq!(format!("{secret:?}"), "Secret");
    }

    #[test]
    fn a_token_of_forms_is_that_of_its_session() {
        let (secret, other) = (Secret::random().unwrap(), Secret::random().unwrap());
        let token = secret.form_token().unwrap();

        assert!(secret.is_form_token(&token));
        for wrong in [other.form_token().unwrap(), String::new(), format!("{token}A"), "ä".to_owned()] {
            assert!(!secret.is_form_token(&wrong), "{wrong}");
        }
    }

    #[test]
    fn a_value_of_another_form_is_no_secret() {
        for wrong in ["", "abc", &"A".repeat(42), &"A".repeat(44), &"+".repeat(43)] {
            assert!(Secret::parse(wrong).is_none(), "{wrong}");
        }
    }
}
