//! The root keys of the tenant that this runner trusts: the key of its config, and the keys that replaced it. They are
//! stored on disk, so that a replaced key never counts again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use freehold_protocol::succession::Roots;
use freehold_protocol::{Envelope, EnvelopeError};
use tracing::{error, warn};

use crate::config::Config;
use crate::files;

/// The name of the file with the successions that the runner accepted, as a JSON list of signed statements.
const FILE: &str = "roots.json";

/// The roots that the runner knows. Clones share them.
#[derive(Debug, Clone)]
pub struct KnownRoots {
    roots: Arc<RwLock<Roots>>,
    /// The file that stores the roots; absent for roots that are only needed in this process.
    file: Option<PathBuf>,
}

/// The reason why the runner cannot know which root key counts.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot read the list of later root keys in `{file}`: {reason}; make the file readable, or launch the vendor's newest template and \
     then remove the file"
)]
pub struct RootsError {
    file: String,
    reason: String,
}

impl KnownRoots {
    /// Returns roots that are not stored in a file.
    pub fn given(roots: Roots) -> Self {
        Self { roots: Arc::new(RwLock::new(roots)), file: None }
    }

    /// Returns the root of `config`, and the roots in the state directory that replaced it.
    ///
    /// # Errors
    /// A [`RootsError`] for a file that exists and cannot be read: without the file, a replaced root would count again.
    pub fn open(config: &Config) -> Result<Self, RootsError> {
        let mut roots =
            Roots::given(config.tenant.clone(), config.tenant_key.clone(), config.tenant_second_key.clone());
        let file = config.state_dir.join(FILE);
        let statements = read(&file).map_err(|reason| RootsError { file: file.display().to_string(), reason })?;
        if let Err(error) = roots.follow(&statements) {
            // The customer launched a template with another root key, and the template decides.
            warn!(
                "Ignored the root keys in `{}`: they do not continue from the root key of the install stack ({error})",
                file.display()
            );
        }
        Ok(Self { roots: Arc::new(RwLock::new(roots)), file: Some(file) })
    }

    /// Returns the current roots.
    pub fn now(&self) -> Roots {
        self.roots.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Accepts the new root keys that the successions in the certificate of a message announce, and stores the successions.
    /// Each succession has its own signature, so the rest of the message need not be valid.
    ///
    /// # Errors
    /// [`EnvelopeError::Succession`] for successions that are not accepted.
    pub fn learn(&self, message: &Envelope) -> Result<(), EnvelopeError> {
        let statements = message.succession()?;
        let mut roots = self.roots.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = roots.clone();
        next.follow(&statements).map_err(EnvelopeError::Succession)?;
        if next.statements().len() > roots.statements().len() {
            let (former, current) = (roots.current().key_id(), next.current().key_id());
            warn!(
                "Root key `{current}` of the tenant has replaced `{former}`, whose new signatures are no longer accepted"
            );
            if let Some(file) = &self.file {
                keep(file, &next);
            }
            *roots = next;
        }
        Ok(())
    }
}

fn read(file: &Path) -> Result<Vec<Envelope>, String> {
    match std::fs::read(file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.to_string()),
    }
}

fn keep(file: &Path, roots: &Roots) {
    let bytes = serde_json::to_vec(roots.statements()).map_err(std::io::Error::other);
    if let Err(error) = bytes.and_then(|bytes| files::write_atomic(file, &bytes)) {
        error!(
            "Cannot write `{}`; after a restart the former root key counts until the next message: {error}",
            file.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::SigningKey;
    use freehold_protocol::Timestamp;
    use freehold_protocol::envelope::{Delegate, PublicKey, SuccessionError};
    use freehold_protocol::succession::Succession;

    use super::*;
    use crate::config::Role;
    use crate::testing::{config, root};

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_bytes(&[seed; 32])
    }

    /// A message that says that the root with this seed follows the one of the config.
    fn news(next: u8) -> Envelope {
        let statement = Succession {
            tenant: "acme".parse().unwrap(),
            from: root().verifying_key().into(),
            to: key(next).verifying_key().into(),
            until: Timestamp::from_millis(1),
            second: None,
        };
        let statement = Envelope::seal(&statement, &[&root(), &key(next)]).unwrap();
        let delegate = Delegate {
            tenant: "acme".parse().unwrap(),
            public_key: key(9).verifying_key().into(),
            not_before: Timestamp::from_millis(0),
            not_after: Timestamp::from_millis(1),
            send_until: None,
            uses: Default::default(),
        };
        let mut certificate = Envelope::seal(&delegate, &[&key(next)]).unwrap();
        certificate.attached.push(statement.to_json().unwrap());
        Envelope::seal_delegated(&delegate, &key(9), &certificate).unwrap()
    }

    #[test]
    fn a_root_that_followed_is_known_after_a_restart_and_no_other_can_follow() {
        let directory = tempfile::tempdir().unwrap();
        let config = config(directory.path().to_str().unwrap(), Role::Install);
        let next: PublicKey = key(2).verifying_key().into();

        KnownRoots::open(&config).unwrap().learn(&news(2)).unwrap();
        let again = KnownRoots::open(&config).unwrap();
        let fork = again.learn(&news(3)).unwrap_err();

        assert_eq!(again.now().current(), &next);
        assert!(matches!(fork, EnvelopeError::Succession(SuccessionError::Forked { .. })), "{fork}");
        assert_eq!(again.now().current(), &next);
    }

    #[test]
    fn a_damaged_file_stops_the_start() {
        let directory = tempfile::tempdir().unwrap();
        let config = config(directory.path().to_str().unwrap(), Role::Install);
        std::fs::write(directory.path().join(FILE), "x").unwrap();

        let error = KnownRoots::open(&config).unwrap_err().to_string();

        assert!(error.contains("roots.json") && error.contains("launch the vendor's newest template"), "{error}");
    }
}
