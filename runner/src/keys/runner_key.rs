//! The runner's own key: created on this machine at the first start, stored in the state directory, and never sent.

use std::path::{Path, PathBuf};

use ed25519_dalek::SigningKey;
use freehold_protocol::KeyId;
use freehold_protocol::envelope::PublicKey;
use zeroize::Zeroizing;

use crate::files;

const FILE: &str = "runner.key";

/// The identity of this runner: its signing key and the id of that key.
pub struct Identity {
    key: SigningKey,
    id: KeyId,
}

/// The reason why the identity cannot be loaded or created.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The state directory or the key file cannot be used.
    #[error("cannot use the runner key `{path}`; make `state_dir` a directory that this user may write")]
    Io { path: PathBuf, source: std::io::Error },
    /// The key file does not contain a key.
    #[error(
        "the runner key `{path}` is not 32 bytes long; remove the file, and the runner makes a new key and enrols again"
    )]
    Damaged { path: PathBuf },
    /// The file of the key that opens sensitive inputs does not contain a key.
    #[error(
        "the key for sensitive inputs `{path}` is not 32 bytes long; restore the file, or remove it: the runner then makes a \
         new key, and the vendor has to give every sensitive input again"
    )]
    DamagedSealingKey { path: PathBuf },
    /// The system provides no random bytes.
    #[error("the system gave no random bytes for the runner key")]
    Random,
}

impl Identity {
    /// Loads the identity from `state_dir`, or creates it when there is none.
    ///
    /// # Errors
    /// An [`IdentityError`]. This function never replaces an existing key.
    pub fn load_or_make(state_dir: &Path) -> Result<Self, IdentityError> {
        let path = state_dir.join(FILE);
        let io = |source| IdentityError::Io { path: path.clone(), source };
        match std::fs::read(&path).map(Zeroizing::new) {
            Ok(bytes) => {
                let seed: &[u8; 32] =
                    bytes.as_slice().try_into().map_err(|_| IdentityError::Damaged { path: path.clone() })?;
                Ok(Self::from_key(SigningKey::from_bytes(seed)))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::replace(state_dir),
            Err(error) => Err(io(error)),
        }
    }

    /// Creates a new identity in `state_dir`, in the place of the present one if there is one.
    ///
    /// # Errors
    /// An [`IdentityError`]. The present identity then stays.
    pub fn replace(state_dir: &Path) -> Result<Self, IdentityError> {
        let path = state_dir.join(FILE);
        let io = |source| IdentityError::Io { path: path.clone(), source };
        let mut seed = Zeroizing::new([0_u8; 32]);
        getrandom::fill(seed.as_mut_slice()).map_err(|_| IdentityError::Random)?;
        files::make_private_dir(state_dir).map_err(io)?;
        files::write_atomic(&path, seed.as_slice()).map_err(io)?;
        Ok(Self::from_key(SigningKey::from_bytes(&seed)))
    }

    /// Returns the identity with this key.
    pub fn from_key(key: SigningKey) -> Self {
        let id = KeyId::of(&key.verifying_key());
        Self { key, id }
    }

    /// Returns the signing key.
    pub const fn key(&self) -> &SigningKey {
        &self.key
    }

    /// Returns the public key.
    pub fn public_key(&self) -> PublicKey {
        self.key.verifying_key().into()
    }

    /// Returns the id of the key.
    pub const fn id(&self) -> &KeyId {
        &self.id
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({})", self.id)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_key_is_made_once_and_only_its_owner_can_read_it() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");

        let first = Identity::load_or_make(&state).unwrap();
        let second = Identity::load_or_make(&state).unwrap();

        assert_eq!(first.id(), second.id());
        let mode = std::fs::metadata(state.join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_damaged_key_is_reported_and_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(FILE), b"short").unwrap();

        let error = Identity::load_or_make(directory.path()).unwrap_err();

        assert!(error.to_string().contains("remove the file"), "{error}");
        assert_eq!(std::fs::read(directory.path().join(FILE)).unwrap(), b"short");
    }

    #[test]
    fn two_runners_have_two_keys() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());

        let one = Identity::load_or_make(one.path()).unwrap();
        let two = Identity::load_or_make(two.path()).unwrap();

        assert_ne!(one.id(), two.id());
    }
}
