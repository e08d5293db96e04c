//! Key files of webhooks: an Ed25519 key in PEM form, private (PKCS #8) or public.

use std::path::Path;

use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, KeypairBytes};
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::pem;

use crate::error::{Error, Result};
use crate::{file, random};

/// The advice about a file that is not a key.
const WAY_OUT: &str =
    "pass the file that `freehold webhook add` made, or one from `openssl genpkey -algorithm ed25519`";

/// The key of a webhook.
pub(super) struct Key {
    pub(super) public: PublicKey,
    /// The private key in PEM form, if this command made the key.
    pub(super) private: Option<String>,
}

/// Returns the key in a file and false. If there is no such file, returns a new key, which has to be written, and true.
pub(super) fn public_of(path: &Path) -> Result<(Key, bool)> {
    if path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        let made = SigningKey::from_bytes(&random::bytes()?);
        // The file does not contain the public key, because OpenSSL 3.0 reads only the first version of PKCS #8.
        let private = KeypairBytes { secret_key: made.to_bytes(), public_key: None }
            .to_pkcs8_pem(ed25519_dalek::pkcs8::spki::der::pem::LineEnding::LF)
            .map_err(|error| Error::internal(format!("cannot write a key in PEM form: {error}")))?;
        let public = PublicKey::from(made.verifying_key());
        return Ok((Key { public, private: Some(private.to_string()) }, true));
    }
    let text = file::read_text(path, WAY_OUT)?;
    let public = match pem::public_key(&text) {
        Ok(der) => PublicKey::from_spki_der(&der).map_err(|_| not_a_key(path))?,
        Err(_) => PublicKey::from(private_in(path, &text)?.verifying_key()),
    };
    Ok((Key { public, private: None }, false))
}

/// Returns the private key of a file.
pub(super) fn private_of(path: &Path) -> Result<SigningKey> {
    private_in(path, &file::read_text(path, WAY_OUT)?)
}

fn private_in(path: &Path, text: &str) -> Result<SigningKey> {
    SigningKey::from_pkcs8_pem(text.trim()).map_err(|_| not_a_key(path))
}

/// Returns the error for a file that is not a key. The error does not quote the file, which may contain a secret.
fn not_a_key(path: &Path) -> Error {
    Error::invalid(format!("`{}` has no Ed25519 key in PEM form", path.display())).or(WAY_OUT)
}
