//! Renews the key of a runner after a notice that another key has replaced its own. Each step is stored before the next
//! one begins, so that a start after a crash continues where the last process ended.
//!
//! | file in the state directory | content |
//! |---|---|
//! | `retired.json` | the notice about the key that the runner had when the notice came |
//! | `renewed.json` | the last renewal: the key that it replaces, and its time |

use std::path::{Path, PathBuf};

use freehold_protocol::order::Retired;
use freehold_protocol::{InstallId, KeyId, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::files;
use crate::keys::enrolment_marker;
use crate::keys::runner_key::{Identity, IdentityError};

const NOTICE: &str = "retired.json";
const RENEWAL: &str = "renewed.json";
/// The minimum time between two renewals, in seconds. Without it, two machines of one install would replace each
/// other's key for ever.
const AGAIN_SECS: u64 = 24 * 3600;

/// The notice that a key of this runner was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Notice {
    runner: KeyId,
    replaced_by: KeyId,
}

/// The last renewal of the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Renewal {
    from: KeyId,
    /// The time at which the renewal began, by this machine's clock.
    at: Timestamp,
}

/// The reason why the runner has no key with which it can start.
#[derive(Debug, thiserror::Error)]
pub enum RenewalError {
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A file of the renewal cannot be used.
    #[error("cannot use `{path}`; make `state_dir` a directory that this user may write, or remove the file")]
    Io { path: PathBuf, source: std::io::Error },
    /// The key was replaced a second time.
    #[error(
        "runner key `{key}` of install `{install}` was replaced by key `{by}`, within a day after this machine had made a new \
         key: another machine runs as the runner of this install too; stop one of the two machines, `freehold install \
         show {install}` names the host of the other machine; to make this machine the runner, stop the other \
         machine, remove `{path}` and start this runner again"
    )]
    Again { key: KeyId, install: InstallId, by: KeyId, path: PathBuf },
}

/// Stores that `key`, the key of this runner, was replaced. The next start renews the key.
///
/// # Errors
/// [`RenewalError::Io`].
pub fn learn(state_dir: &Path, notice: &Retired) -> Result<(), RenewalError> {
    let notice = Notice { runner: notice.runner.clone(), replaced_by: notice.replaced_by.clone() };
    write(&state_dir.join(NOTICE), &notice)
}

/// Returns the identity of the runner in `state_dir`. Makes a new key first, if the present one was replaced.
///
/// # Errors
/// A [`RenewalError`].
pub fn identity(state_dir: &Path, install: &InstallId, now: Timestamp) -> Result<Identity, RenewalError> {
    let current = Identity::load_or_make(state_dir)?;
    let notice: Option<Notice> = read(&state_dir.join(NOTICE))?;
    match notice.filter(|notice| notice.runner == *current.id()) {
        Some(notice) => renew(state_dir, install, &current, &notice, now),
        None => Ok(current),
    }
}

fn renew(
    state_dir: &Path,
    install: &InstallId,
    current: &Identity,
    notice: &Notice,
    now: Timestamp,
) -> Result<Identity, RenewalError> {
    let path = state_dir.join(RENEWAL);
    let last: Option<Renewal> = read(&path)?;
    let begun = last.as_ref().is_some_and(|last| last.from == *current.id());
    if !begun {
        // If the clock was ahead at the last renewal, the runner must not wait for that time.
        if last.as_ref().is_some_and(|last| last.at <= now && now.since(last.at) < AGAIN_SECS * 1000) {
            let (key, by) = (current.id().clone(), notice.replaced_by.clone());
            return Err(RenewalError::Again { key, install: install.clone(), by, path });
        }
        write(&path, &Renewal { from: current.id().clone(), at: now })?;
    }
    // The marker states that the reports queue has the hello of the old key. Without a marker, the runner takes no
    // orders until the queue has the hello of the new key.
    let marker = enrolment_marker::marker(state_dir);
    match std::fs::remove_file(&marker) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            return Err(RenewalError::Io { path: marker, source });
        }
        Ok(()) | Err(_) => {}
    }
    let next = Identity::replace(state_dir)?;
    warn!(
        runner.key = %next.id(),
        "Runner key `{}` was replaced by key `{}`: this machine enrols anew with key `{}`",
        current.id(),
        notice.replaced_by,
        next.id()
    );
    Ok(next)
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, RenewalError> {
    let io = |source| RenewalError::Io { path: path.to_owned(), source };
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| io(error.into())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io(error)),
    }
}

fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), RenewalError> {
    let io = |source| RenewalError::Io { path: path.to_owned(), source };
    let bytes = serde_json::to_vec(value).map_err(|error| io(error.into()))?;
    files::write_atomic(path, &bytes).map_err(io)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_795_000_000_000);

    #[test]
    fn what_the_version_before_noted_about_its_key_is_read_and_nothing_of_it_is_lost() {
        crate::testing::check_golden_values::<Notice>("Notice");
        crate::testing::check_golden_values::<Renewal>("Renewal");
    }

    fn notice(runner: &KeyId) -> Retired {
        let other = Identity::from_key(ed25519_dalek::SigningKey::from_bytes(&[9; 32]));
        Retired {
            tenant: "acme".parse().unwrap(),
            install: "globex".parse().unwrap(),
            runner: runner.clone(),
            replaced_by: other.id().clone(),
            replaced_at: NOW,
            issued_at: NOW,
            not_after: NOW.plus_secs(3600),
        }
    }

    fn start(state: &Path, now: Timestamp) -> Result<Identity, RenewalError> {
        identity(state, &"globex".parse().unwrap(), now)
    }

    /// Returns a state directory whose key was announced, and that key.
    fn enrolled() -> (tempfile::TempDir, Identity) {
        let state = tempfile::tempdir().unwrap();
        let first = start(state.path(), NOW).unwrap();
        std::fs::write(enrolment_marker::marker(state.path()), b"").unwrap();
        (state, first)
    }

    #[test]
    fn a_replaced_key_is_renewed_once_and_must_be_announced() {
        let (state, first) = enrolled();
        learn(state.path(), &notice(first.id())).unwrap();

        let second = start(state.path(), NOW).unwrap();
        let third = start(state.path(), NOW.plus_secs(90_000)).unwrap();

        assert_ne!(first.id(), second.id());
        assert_eq!(second.id(), third.id(), "a notice about a former key changes nothing");
        assert!(!enrolment_marker::marker(state.path()).exists());
    }

    #[test]
    fn a_second_replacement_within_a_day_stops_the_runner_and_names_the_way_out() {
        let (state, first) = enrolled();
        learn(state.path(), &notice(first.id())).unwrap();
        let second = start(state.path(), NOW).unwrap();
        learn(state.path(), &notice(second.id())).unwrap();

        let error = start(state.path(), NOW.plus_secs(86_399)).unwrap_err();
        let again = start(state.path(), NOW.plus_secs(86_399)).unwrap_err();
        let kept = Identity::load_or_make(state.path()).unwrap();
        let third = start(state.path(), NOW.plus_secs(86_400)).unwrap();

        assert!(error.to_string().contains("another machine runs as the runner of this install too"), "{error}");
        assert!(error.to_string().contains("renewed.json"), "{error}");
        assert_eq!((again.to_string(), kept.id()), (error.to_string(), second.id()));
        assert_ne!(third.id(), second.id());
    }

    #[test]
    fn a_clock_that_ran_ahead_stops_no_later_renewal() {
        let (state, first) = enrolled();
        learn(state.path(), &notice(first.id())).unwrap();
        let second = start(state.path(), NOW.plus_secs(30 * 86_400)).unwrap();
        learn(state.path(), &notice(second.id())).unwrap();

        assert_ne!(start(state.path(), NOW).unwrap().id(), second.id());
    }

    #[test]
    fn the_way_out_that_the_message_names_works() {
        let (state, first) = enrolled();
        learn(state.path(), &notice(first.id())).unwrap();
        let second = start(state.path(), NOW).unwrap();
        learn(state.path(), &notice(second.id())).unwrap();
        let RenewalError::Again { path, .. } = start(state.path(), NOW).unwrap_err() else { panic!("another error") };

        std::fs::remove_file(path).unwrap();

        assert_ne!(start(state.path(), NOW).unwrap().id(), second.id());
    }

    /// Each prefix of the writes of a renewal is a state that a kill leaves.
    #[test]
    fn a_start_after_a_kill_at_any_step_ends_with_one_new_key() {
        for killed_after in 0..3 {
            let (state, first) = enrolled();
            learn(state.path(), &notice(first.id())).unwrap();
            if killed_after >= 1 {
                write(&state.path().join(RENEWAL), &Renewal { from: first.id().clone(), at: NOW }).unwrap();
            }
            if killed_after >= 2 {
                std::fs::remove_file(enrolment_marker::marker(state.path())).unwrap();
            }

            let second = start(state.path(), NOW.plus_secs(5)).unwrap();
            let third = start(state.path(), NOW.plus_secs(10)).unwrap();

            assert_ne!(first.id(), second.id(), "killed after step {killed_after}");
            assert_eq!(second.id(), third.id(), "killed after step {killed_after}");
            assert!(!enrolment_marker::marker(state.path()).exists(), "killed after step {killed_after}");
        }
    }

    #[test]
    fn a_notice_about_another_key_changes_nothing() {
        let (state, first) = enrolled();
        let other = Identity::from_key(ed25519_dalek::SigningKey::from_bytes(&[8; 32]));
        learn(state.path(), &notice(other.id())).unwrap();

        assert_eq!(start(state.path(), NOW).unwrap().id(), first.id());
        assert!(enrolment_marker::marker(state.path()).exists());
    }

    #[test]
    fn a_file_that_cannot_be_read_stops_the_runner_and_is_named() {
        let (state, _) = enrolled();
        std::fs::write(state.path().join(NOTICE), b"{").unwrap();

        let error = start(state.path(), NOW).unwrap_err();

        assert!(error.to_string().contains("retired.json"), "{error}");
    }
}
