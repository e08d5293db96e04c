//! The programs of a runner on its disk: which of them is used, and how the last upgrade went. The launcher and the program
//! that works both write this file, never at the same time: see [`Candidate::phase`].

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use freehold_protocol::envelope::PublicKey;
use freehold_protocol::order::upgrade::{NotReleased, RUNNER_PROGRAM};
use freehold_protocol::order::{Order, SignedSums, UpgradeRunner};
use freehold_protocol::{Digest, JobId};
use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::files;

/// The name of the file, and of the directory with the programs, in the state directory.
const FILE: &str = "programs.json";
const DIRECTORY: &str = "programs";

/// The variable by which a program knows that the launcher started it. Its value is the launcher's digest.
pub const LAUNCHER: &str = "FREEHOLD_LAUNCHER";
/// The variable with the id of the launcher's process.
pub const LAUNCHER_PROCESS: &str = "FREEHOLD_LAUNCHER_PROCESS";

/// The name of this machine's architecture in a release.
pub const ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") { "arm64" } else { std::env::consts::ARCH };

/// The programs of a runner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Programs {
    /// The digest of the launcher that wrote the other fields. If the customer installs another program on the machine, that program
    /// is used, and the other fields are ignored.
    pub launcher: Option<Digest>,
    /// The program that an upgrade put in the launcher's place; absent when the launcher itself works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Released>,
    /// The program of the last upgrade, until it has become the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Candidate>,
}

/// A program of a signed release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Released {
    pub version: String,
    pub program: Digest,
    pub release: SignedSums,
}

/// The program that an order requires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    #[serde(flatten)]
    pub released: Released,
    pub job: JobId,
    pub dispatch: u32,
    pub health_secs: u32,
    pub phase: Phase,
}

/// The progress of an upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    /// The program is on the disk. The old program works until its jobs have ended.
    Ready,
    /// The launcher has started the program, and it has not proved its health yet. Only the new program may end this phase
    /// with success, and only the launcher with a failure, after the new program has ended.
    OnTrial,
    /// The program did not prove its health, and the old one works.
    Failed { reason: String },
}

impl Released {
    /// Returns the program that `work` requires.
    pub fn of(work: &UpgradeRunner) -> Self {
        Self { version: work.version.clone(), program: work.program.clone(), release: work.release.clone() }
    }

    /// Checks that `key` signed the program for this machine.
    ///
    /// # Errors
    /// The reason why the customer does not permit the program.
    pub fn permitted_by(&self, key: &PublicKey) -> Result<(), NotReleased> {
        self.release.verify(key, ARCHITECTURE, &self.program)
    }
}

impl Programs {
    /// Reads the programs in `state_dir`. A file that is absent or cannot be used means that the launcher itself works.
    pub fn load(state_dir: &Path) -> Self {
        let path = state_dir.join(FILE);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::default(),
            Err(error) => {
                warn!("Cannot read `{}`, so the program that the machine starts is used: {error}", path.display());
                return Self::default();
            }
        };
        serde_json::from_slice(&text).unwrap_or_else(|error| {
            warn!("`{}` is damaged, so the program that the machine starts is used: {error}", path.display());
            Self::default()
        })
    }

    /// Writes the programs. They are durable when this function returns.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn store(&self, state_dir: &Path) -> io::Result<()> {
        files::write_atomic(&state_dir.join(FILE), &serde_json::to_vec_pretty(self)?)
    }

    /// Returns the programs as the launcher `launcher` finds them when it starts: those of another launcher do not count,
    /// and a trial that nobody watches any more has failed.
    #[must_use]
    pub fn at_start(self, launcher: &Digest) -> Self {
        if self.launcher.as_ref() != Some(launcher) {
            return Self { launcher: Some(launcher.clone()), ..Self::default() };
        }
        match self.candidate {
            Some(Candidate { phase: Phase::OnTrial, .. }) => {
                self.failed("the runner was ended while the new program was on trial")
            }
            Some(_) | None => self,
        }
    }

    /// Returns the programs after the candidate has not proved its health.
    #[must_use]
    pub fn failed(mut self, reason: &str) -> Self {
        if let Some(candidate) = &mut self.candidate {
            candidate.phase = Phase::Failed { reason: reason.to_owned() };
        }
        self
    }

    /// Returns the programs with the candidate in `phase`.
    #[must_use]
    pub fn with_phase(mut self, phase: Phase) -> Self {
        if let Some(candidate) = &mut self.candidate {
            candidate.phase = phase;
        }
        self
    }

    /// Returns the programs after the candidate has proved its health.
    #[must_use]
    pub fn succeeded(self) -> Self {
        let current = self.candidate.map(|candidate| candidate.released).or(self.current);
        Self { current, candidate: None, ..self }
    }

    /// Returns the candidate that `order` requires.
    pub fn candidate_of(&self, order: &Order) -> Option<&Candidate> {
        self.candidate.as_ref().filter(|one| one.job == order.job && one.dispatch == order.dispatch)
    }

    /// Returns the candidate that is on trial, if it is `program`.
    pub fn on_trial(&self, program: &Digest) -> Option<&Candidate> {
        self.candidate.as_ref().filter(|one| one.phase == Phase::OnTrial && one.released.program == *program)
    }

    /// Returns whether `program` works in the launcher's place.
    pub fn is_current(&self, program: &Digest) -> bool {
        self.current.as_ref().is_some_and(|current| current.program == *program)
    }

    /// Removes the programs that are neither the current one nor the candidate.
    pub fn remove_others(&self, state_dir: &Path) {
        let candidate = self.candidate.as_ref().map(|candidate| &candidate.released);
        let kept: Vec<&str> = self.current.iter().chain(candidate).map(|one| one.program.hex()).collect();
        let found = std::fs::read_dir(state_dir.join(DIRECTORY)).into_iter().flatten().flatten();
        for other in found.filter(|entry| !kept.iter().any(|name| entry.file_name() == **name)) {
            if let Err(error) = files::remove_tree(&other.path()) {
                warn!("Cannot remove the old program `{}`: {error}", other.path().display());
            }
        }
    }
}

/// Returns the directory of `program` in `state_dir`.
fn directory_of(state_dir: &Path, program: &Digest) -> PathBuf {
    state_dir.join(DIRECTORY).join(program.hex())
}

/// Returns the path of `program` in `state_dir`.
pub fn path_of(state_dir: &Path, program: &Digest) -> PathBuf {
    directory_of(state_dir, program).join(RUNNER_PROGRAM)
}

/// Renames the directory `unpacked`, which has `program`, to its place in `state_dir`. After a crash, the whole program is
/// there or nothing is.
///
/// # Errors
/// When the program cannot be written.
pub fn keep(unpacked: &Path, state_dir: &Path, program: &Digest) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let (new, place) = (unpacked.join(RUNNER_PROGRAM), directory_of(state_dir, program));
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755))?;
    File::open(&new)?.sync_all()?;
    files::make_private_dir(&state_dir.join(DIRECTORY))?;
    if place.exists() {
        files::remove_tree(&place)?;
    }
    std::fs::rename(unpacked, &place)?;
    files::sync_parent(&place)
}

/// Returns whether the file at `path` is `program`.
pub fn is_program(path: &Path, program: &Digest) -> bool {
    File::open(path).and_then(|file| files::digest(&file)).is_ok_and(|found| found == *program)
}

/// Returns the digest of the launcher that started this process; `None` in the launcher itself.
pub fn launched_by() -> Option<Digest> {
    std::env::var(LAUNCHER).ok()?.parse().ok()
}

/// Returns the digest of the program of this process.
///
/// # Errors
/// When it cannot be read.
pub fn own_program() -> io::Result<Digest> {
    files::digest(&File::open("/proc/self/exe")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{job_id, order};

    fn released(name: &str) -> Released {
        let release = SignedSums { sums: String::new(), signature: String::new() };
        Released { version: "0.2.0".to_owned(), program: Digest::of(name.as_bytes()), release }
    }

    fn programs(phase: Phase) -> Programs {
        let (job, released) = (job_id(1), released("new"));
        Programs {
            launcher: Some(Digest::of(b"launcher")),
            current: Some(self::released("old")),
            candidate: Some(Candidate { released, job, dispatch: 1, health_secs: 60, phase }),
        }
    }

    #[test]
    fn the_programs_of_the_version_before_are_read_and_nothing_of_them_is_lost() {
        crate::testing::check_golden_values::<Programs>("Programs");
    }

    #[test]
    fn a_trial_that_its_launcher_did_not_survive_has_failed_and_the_old_program_stays() {
        let found = programs(Phase::OnTrial).at_start(&Digest::of(b"launcher"));

        let reason = "the runner was ended while the new program was on trial".to_owned();
        assert_eq!(found, programs(Phase::Failed { reason }));
        assert!(found.is_current(&Digest::of(b"old")));
    }

    #[test]
    fn a_program_that_waits_for_the_jobs_of_the_old_one_still_waits_after_a_restart() {
        assert_eq!(programs(Phase::Ready).at_start(&Digest::of(b"launcher")), programs(Phase::Ready));
    }

    #[test]
    fn a_launcher_that_the_customer_replaced_uses_itself() {
        let found = programs(Phase::OnTrial).at_start(&Digest::of(b"another"));

        assert_eq!(found, Programs { launcher: Some(Digest::of(b"another")), ..Programs::default() });
    }

    #[test]
    fn a_program_that_proved_its_health_is_the_current_one() {
        let found = programs(Phase::OnTrial).succeeded();

        assert!(found.is_current(&Digest::of(b"new")) && found.candidate.is_none());
    }

    #[test]
    fn only_the_order_that_asked_for_the_candidate_has_it() {
        let programs = programs(Phase::Ready);
        let again = freehold_protocol::order::Order { dispatch: 2, ..order(1, 7) };

        let found = [order(1, 7), again, order(2, 7)].map(|order| programs.candidate_of(&order).is_some());

        assert_eq!(found, [true, false, false]);
    }

    #[test]
    fn what_is_stored_is_read_again_and_a_damaged_file_means_the_launcher() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(Programs::load(state.path()), Programs::default());

        programs(Phase::Ready).store(state.path()).unwrap();
        assert_eq!(Programs::load(state.path()), programs(Phase::Ready));

        std::fs::write(state.path().join(FILE), "{").unwrap();
        assert_eq!(Programs::load(state.path()), Programs::default());
    }

    #[test]
    fn programs_that_nothing_needs_are_removed() {
        let state = tempfile::tempdir().unwrap();
        for name in ["old", "new", "older"] {
            let path = path_of(state.path(), &Digest::of(name.as_bytes()));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        }

        programs(Phase::Ready).remove_others(state.path());

        let left = |name: &str| {
            let digest = Digest::of(name.as_bytes());
            is_program(&path_of(state.path(), &digest), &digest)
        };
        assert_eq!(["old", "new", "older"].map(left), [true, true, false]);
    }
}
