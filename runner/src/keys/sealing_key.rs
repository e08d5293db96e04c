//! The key that opens the vendor's sensitive inputs. It belongs to one signing key of the runner: a runner that makes a
//! new signing key also makes a new opening key. The vendor must then give again the inputs that were sealed to the
//! former one.

use std::path::{Path, PathBuf};

use freehold_protocol::KeyId;
use freehold_sealing::OpeningKey;
use tracing::warn;
use zeroize::Zeroizing;

use crate::files;
use crate::keys::runner_key::IdentityError;

const PREFIX: &str = "sealing-";
const SUFFIX: &str = ".key";

/// Returns the opening key that belongs to the signing key `of`. Makes it at the first start with that signing key.
/// Removes the opening keys that belong to former signing keys.
///
/// # Errors
/// An [`IdentityError`]. This function never replaces an existing key.
pub fn load_or_make(state_dir: &Path, of: &KeyId) -> Result<OpeningKey, IdentityError> {
    let path = state_dir.join(format!("{PREFIX}{of}{SUFFIX}"));
    let io = |source| IdentityError::Io { path: path.clone(), source };
    let damaged = || IdentityError::DamagedSealingKey { path: path.clone() };
    let key = match std::fs::read(&path).map(Zeroizing::new) {
        Ok(bytes) => {
            let bytes: &[u8; 32] = bytes.as_slice().try_into().map_err(|_| damaged())?;
            OpeningKey::from_bytes(bytes)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let mut bytes = Zeroizing::new([0_u8; 32]);
            getrandom::fill(bytes.as_mut_slice()).map_err(|_| IdentityError::Random)?;
            files::make_private_dir(state_dir).map_err(io)?;
            files::write_atomic(&path, bytes.as_slice()).map_err(io)?;
            OpeningKey::from_bytes(&bytes)
        }
        Err(error) => return Err(io(error)),
    };
    for former in others(state_dir, &path) {
        if let Err(error) = std::fs::remove_file(&former) {
            warn!("Cannot remove `{}`, the sealing key of a former runner key: {error}", former.display());
        }
    }
    Ok(key)
}

/// Returns the paths of all opening keys in `state_dir` except `kept`.
fn others(state_dir: &Path, kept: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(state_dir).into_iter().flatten().flatten();
    let is_key = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX))
    };
    entries.map(|entry| entry.path()).filter(|path| is_key(path) && path != kept).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use ed25519_dalek::SigningKey;

    use super::*;

    fn key(seed: u8) -> KeyId {
        KeyId::of(&SigningKey::from_bytes(&[seed; 32]).verifying_key())
    }

    fn files(state: &Path) -> Vec<PathBuf> {
        others(state, Path::new(""))
    }

    #[test]
    fn the_key_is_made_once_and_only_its_owner_can_read_it() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");

        let first = load_or_make(&state, &key(1)).unwrap();
        let second = load_or_make(&state, &key(1)).unwrap();

        assert_eq!(first.sealing_key(), second.sealing_key());
        let mode = std::fs::metadata(&files(&state)[0]).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_new_signing_key_gets_a_new_one_and_the_former_is_removed() {
        let state = tempfile::tempdir().unwrap();
        let first = load_or_make(state.path(), &key(1)).unwrap();
        std::fs::write(state.path().join("runner.key"), [1; 32]).unwrap();

        let second = load_or_make(state.path(), &key(2)).unwrap();

        assert_ne!(first.sealing_key(), second.sealing_key());
        assert_eq!(files(state.path()).len(), 1);
        assert!(state.path().join("runner.key").exists());
    }

    #[test]
    fn a_damaged_key_is_reported_and_not_replaced() {
        let state = tempfile::tempdir().unwrap();
        load_or_make(state.path(), &key(1)).unwrap();
        let path = files(state.path()).remove(0);
        std::fs::write(&path, b"short").unwrap();

        let error = load_or_make(state.path(), &key(1)).unwrap_err();

        let text = error.to_string();
        assert!(text.starts_with(&format!("the key for sensitive inputs `{}` is not", path.display())), "{text}");
        assert!(text.contains("has to give every sensitive input again") && !text.contains("enrols again"), "{text}");
        assert_eq!(std::fs::read(&path).unwrap(), b"short");
    }
}
