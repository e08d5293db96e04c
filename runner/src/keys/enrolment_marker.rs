//! Records that the reports queue has taken a hello of this runner's key. The runner takes no orders before that,
//! because the control plane refuses reports that are signed with a key that it does not know.

use std::path::{Path, PathBuf};

use freehold_protocol::KeyId;
use tokio::sync::watch;
use tracing::warn;

use crate::files;

/// The name of the file with the id of the key that was announced.
const MARKER: &str = "enrolled";

/// Whether the reports queue has taken a hello of this runner's key.
#[derive(Debug)]
pub struct Enrolled {
    path: PathBuf,
    key: KeyId,
    is_set: watch::Sender<bool>,
    /// Whether this process has announced the key.
    announced: watch::Sender<bool>,
}

impl Enrolled {
    /// Reads from `state_dir` whether `key` was announced. A marker of another key, or one that cannot be read, counts
    /// as none.
    pub fn open(state_dir: &Path, key: KeyId) -> Self {
        let path = marker(state_dir);
        let marked = std::fs::read_to_string(&path).is_ok_and(|text| text.trim() == key.to_string());
        Self { path, key, is_set: watch::Sender::new(marked), announced: watch::Sender::new(false) }
    }

    /// Returns whether the reports queue has taken a hello of the key.
    pub fn is_set(&self) -> bool {
        *self.is_set.borrow()
    }

    /// Records that the reports queue has taken a hello of the key.
    pub fn set(&self) {
        if let Err(error) = files::write_atomic(&self.path, format!("{}\n", self.key).as_bytes()) {
            warn!("Cannot write `{}`; the next start enrols again: {error}", self.path.display());
        }
        self.is_set.send_replace(true);
        self.announced.send_replace(true);
    }

    /// Waits until the reports queue has taken a hello of the key.
    pub async fn reached(&self) {
        // `wait_for` fails only when the sender is dropped, and `self` holds the sender.
        let _ = self.is_set.subscribe().wait_for(|set| *set).await;
    }

    /// Waits until the reports queue has taken a hello that this process sent.
    pub async fn announced(&self) {
        // `wait_for` fails only when the sender is dropped, and `self` holds the sender.
        let _ = self.announced.subscribe().wait_for(|set| *set).await;
    }
}

/// Returns the path of the marker in `state_dir`.
pub fn marker(state_dir: &Path) -> PathBuf {
    state_dir.join(MARKER)
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::SigningKey;

    use super::*;

    fn key(seed: u8) -> KeyId {
        KeyId::of(&SigningKey::from_bytes(&[seed; 32]).verifying_key())
    }

    #[test]
    fn a_marker_counts_for_its_own_key_after_a_restart_and_for_no_other() {
        let state = tempfile::tempdir().unwrap();
        let first = Enrolled::open(state.path(), key(3));
        assert!(!first.is_set());

        first.set();

        assert!(first.is_set() && Enrolled::open(state.path(), key(3)).is_set());
        assert!(!Enrolled::open(state.path(), key(4)).is_set());
    }
}
