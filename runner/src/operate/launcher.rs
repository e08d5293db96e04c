//! The launcher: the program that the machine starts. It takes orders itself, or starts the program of the last upgrade
//! and waits for it. When the program that takes orders hands over, the launcher tries the new one.

use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use tokio::process::{Child, Command};
use tracing::{error, info, warn};

use crate::aws;
use crate::config::Config;
use crate::config::stack::StackSource;
use crate::job::Execute;
use crate::operate::program::{self, Worked};
use crate::operate::start::StartError;
use crate::process::drain::Signals;
use crate::sandbox::cgroup;
use crate::upgrade::programs::{
    Candidate, LAUNCHER, LAUNCHER_PROCESS, Phase, Programs, Released, is_program, launched_by, own_program, path_of,
};
use crate::upgrade::trial::{self, Verdict, forward};

/// The exit code of a program that hands over to the launcher, which started it.
const HANDED_OVER: u8 = 10;

/// Runs the runner of `config` until it ends, whichever program works, and returns its exit code.
pub async fn run(config: Config, source: Option<StackSource>, kinds: Arc<dyn Execute>) -> ExitCode {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return program::fail(1, &aws::explain(&StartError::Signals(error))),
    };
    if launched_by().is_some() {
        return work_for_launcher(config, source, kinds, &mut signals).await;
    }
    let mut launcher = Launcher { config: &config, started: false };
    loop {
        let next = match launcher.decide() {
            Ok(next) => next,
            Err(error) => {
                warn!(
                    "Cannot read the state of this runner's upgrade, so the program that the machine starts is used: {error}"
                );
                Next::Work
            }
        };
        let ended = match next {
            Next::Work => {
                match program::work(config.clone(), source.clone(), kinds.clone(), None, &mut signals).await {
                    Worked::Ended(code) => Ended::With(code),
                    Worked::HandedOver => Ended::HandedOver,
                }
            }
            Next::Start(released) => launcher.start(&released, &mut signals).await,
            Next::Try(candidate) => launcher.attempt(&candidate, &mut signals).await,
        };
        match ended {
            Ended::With(code) => return code,
            Ended::HandedOver => launcher.started = true,
        }
    }
}

/// Runs as a program that the launcher started. Such a program ends when its launcher does: the machine then starts the
/// launcher again, and two programs must not work on one disk.
async fn work_for_launcher(
    config: Config,
    source: Option<StackSource>,
    kinds: Arc<dyn Execute>,
    signals: &mut Signals,
) -> ExitCode {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return program::fail(1, &format!("cannot end together with the launcher: {error}"));
    }
    // If the launcher ended before this program requested the signal, the signal does not come.
    let launcher = std::env::var(LAUNCHER_PROCESS).ok().and_then(|process| process.parse().ok());
    if launcher != Some(Pid::as_raw(getppid())) {
        return program::fail(1, "the launcher that started this program has ended");
    }
    match program::work(config, source, kinds, None, signals).await {
        Worked::Ended(code) => code,
        Worked::HandedOver => ExitCode::from(HANDED_OVER),
    }
}

/// The next step of the launcher.
enum Next {
    /// Takes orders itself.
    Work,
    Start(Released),
    Try(Candidate),
}

/// The end of a program that had started to work.
enum Ended {
    With(ExitCode),
    /// Another program has to work: the next one, or the old one after a trial that failed.
    HandedOver,
}

struct Launcher<'a> {
    config: &'a Config,
    /// Whether a program has handed over since the launcher started. Before that, a candidate is not tried: its order
    /// is delivered again, and the current program then hands over again.
    started: bool,
}

impl Launcher<'_> {
    /// Decides what comes next. A program of an upgrade is started only while the customer's stack names the key that
    /// signed its release.
    fn decide(&self) -> std::io::Result<Next> {
        let state_dir = self.state_dir();
        let found = Programs::load(state_dir);
        if found == Programs::default() {
            return Ok(Next::Work);
        }
        let programs = if self.started { found } else { self.at_start(found)? };
        if let Some(candidate) = &programs.candidate
            && self.started
            && candidate.phase == Phase::Ready
        {
            if self.may_start(&candidate.released) {
                return Ok(Next::Try(candidate.clone()));
            }
            self.record(&programs.clone().failed("the program is not on the disk any more, or not permitted"));
        }
        Ok(programs.current.filter(|current| self.may_start(current)).map_or(Next::Work, Next::Start))
    }

    fn at_start(&self, found: Programs) -> std::io::Result<Programs> {
        let programs = found.clone().at_start(&own_program()?);
        if programs != found {
            self.record(&programs);
        }
        Ok(programs)
    }

    /// Writes the result of a candidate's trial. If the disk is full, the launcher must not start an older program than
    /// the current one.
    fn record(&self, programs: &Programs) {
        if let Err(error) = programs.store(self.state_dir()) {
            error!("Cannot record the state of an upgrade in `{}`: {error}", self.state_dir().display());
        }
    }

    fn may_start(&self, released: &Released) -> bool {
        let Released { version, program, .. } = released;
        let Some(key) = &self.config.release_key else {
            warn!(
                "Program {version} of an upgrade is not started: the install stack names no `RunnerReleaseKey` any more"
            );
            return false;
        };
        if let Err(error) = released.permitted_by(key) {
            warn!("Program {version} of an upgrade is not started: {error}");
            return false;
        }
        let path = path_of(self.state_dir(), program);
        let is_right = is_program(&path, program);
        if !is_right {
            error!("Program {version} of an upgrade is not started: `{}` is not the program {program}", path.display());
        }
        is_right
    }

    /// Starts the current program, and waits until it ends.
    async fn start(&self, released: &Released, signals: &mut Signals) -> Ended {
        match self.spawn(released) {
            Ok(mut child) => self.wait(&mut child, signals).await,
            Err(error) => Ended::With(program::fail(1, &format!("cannot start program {}: {error}", released.version))),
        }
    }

    /// Tries the candidate. When it has proved its health, it continues until it ends.
    async fn attempt(&self, candidate: &Candidate, signals: &mut Signals) -> Ended {
        let Candidate { released, health_secs, .. } = candidate;
        info!("Trying program {} ({}) for up to {health_secs} s", released.version, released.program);
        match self.try_program(released, *health_secs, signals).await {
            Ok(ended) => ended,
            Err(error) => self.back(&format!("the new program cannot be started: {error}")),
        }
    }

    async fn try_program(
        &self,
        released: &Released,
        health_secs: u32,
        signals: &mut Signals,
    ) -> std::io::Result<Ended> {
        self.set_phase(Phase::OnTrial)?;
        let mut child = self.spawn(released)?;
        match trial::watch(&mut child, signals, (self.state_dir(), &released.program), health_secs).await? {
            Verdict::Healthy => {
                info!("Program {} works", released.version);
                Ok(self.wait(&mut child, signals).await)
            }
            Verdict::Failed(reason) => Ok(self.back(&reason)),
            Verdict::Ended(status) => {
                // The customer ended the runner. The order comes again, and the program is tried again.
                self.set_phase(Phase::Ready)?;
                Ok(Ended::With(code(status)))
            }
        }
    }

    /// Lets the old program work again.
    fn back(&self, reason: &str) -> Ended {
        error!("Rolled back to the old program: {reason}");
        if let Err(error) = Programs::load(self.state_dir()).failed(reason).store(self.state_dir()) {
            return Ended::With(program::fail(1, &format!("cannot record that the upgrade failed: {error}")));
        }
        Ended::HandedOver
    }

    fn set_phase(&self, phase: Phase) -> std::io::Result<()> {
        Programs::load(self.state_dir()).with_phase(phase).store(self.state_dir())
    }

    fn spawn(&self, released: &Released) -> std::io::Result<Child> {
        if let Err(error) = cgroup::step_aside() {
            warn!("The jobs of program {} have no limits as a whole: {error}", released.version);
        }
        let launcher = own_program()?.to_string();
        let mut command = Command::new(path_of(self.state_dir(), &released.program));
        command.args(std::env::args_os().skip(1)).env(LAUNCHER, launcher);
        command.env(LAUNCHER_PROCESS, std::process::id().to_string()).kill_on_drop(true);
        command.spawn()
    }

    /// Waits until a program ends, and passes it the signals of this process.
    async fn wait(&self, child: &mut Child, signals: &mut Signals) -> Ended {
        loop {
            tokio::select! {
                ended = child.wait() => {
                    return match ended {
                        Ok(status) if status.code() == Some(i32::from(HANDED_OVER)) => Ended::HandedOver,
                        Ok(status) => Ended::With(code(status)),
                        Err(error) => Ended::With(program::fail(1, &format!("cannot wait for the runner: {error}"))),
                    };
                }
                () = signals.next() => forward(child),
            }
        }
    }

    fn state_dir(&self) -> &Path {
        &self.config.state_dir
    }
}

/// Returns the exit code of a process; 1 when a signal ended it.
fn code(status: ExitStatus) -> ExitCode {
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use freehold_protocol::Digest;

    use super::*;
    use crate::config::Role;
    use crate::testing::{config, job_id, release_key, upgrade_to};

    /// A state directory with an upgraded program, and the config of a customer who names the key that signed it.
    fn upgraded(candidate: Option<Phase>) -> (tempfile::TempDir, Config, Programs) {
        let state = tempfile::tempdir().unwrap();
        let (program, key) = (b"#!/bin/sh\n", release_key(7).verifying_key().into());
        let released = Released::of(&upgrade_to(&Digest::of(program), 7));
        let path = path_of(state.path(), &released.program);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, program).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let other = Released::of(&upgrade_to(&Digest::of(b"newer"), 7));
        let candidate =
            candidate.map(|phase| Candidate { released: other, job: job_id(1), dispatch: 1, health_secs: 60, phase });
        let programs = Programs { launcher: Some(own_program().unwrap()), current: Some(released), candidate };
        programs.store(state.path()).unwrap();
        let config = Config { release_key: Some(key), ..config(&state.path().display().to_string(), Role::Install) };
        (state, config, programs)
    }

    fn started(config: &Config, started: bool) -> Option<Digest> {
        match (Launcher { config, started }).decide().unwrap() {
            Next::Work => None,
            Next::Start(released) => Some(released.program),
            Next::Try(candidate) => panic!("{candidate:?} is tried"),
        }
    }

    #[test]
    fn the_upgraded_program_is_started_only_while_it_is_whole_and_its_key_is_named() {
        let (state, config, programs) = upgraded(None);
        let current = programs.current.unwrap().program;
        let without = Config { release_key: None, ..config.clone() };
        let other = Config { release_key: Some(release_key(8).verifying_key().into()), ..config.clone() };

        assert_eq!(started(&config, false), Some(current.clone()));
        assert_eq!((started(&without, false), started(&other, false)), (None, None));
        std::fs::write(path_of(state.path(), &current), "#!/bin/sh\nexit\n").unwrap();
        assert_eq!(started(&config, false), None);
    }

    #[test]
    fn a_trial_that_nobody_watches_goes_back_to_the_current_program_even_if_the_disk_takes_no_more() {
        let (state, config, programs) = upgraded(Some(Phase::OnTrial));
        let current = programs.current.clone().unwrap().program;
        std::fs::create_dir(state.path().join("programs.json.new")).unwrap();
        assert!(programs.store(state.path()).is_err(), "the file can be written");

        assert_eq!(started(&config, false), Some(current.clone()));
        std::fs::remove_dir(state.path().join("programs.json.new")).unwrap();
        assert_eq!(started(&config, false), Some(current));
        let phase = Programs::load(state.path()).candidate.unwrap().phase;
        assert!(matches!(phase, Phase::Failed { .. }), "{phase:?}");
    }

    #[test]
    fn a_candidate_that_is_not_on_the_disk_is_not_tried_and_its_order_learns_why() {
        let (state, config, programs) = upgraded(Some(Phase::Ready));

        assert_eq!(started(&config, true), Some(programs.current.unwrap().program));
        let phase = Programs::load(state.path()).candidate.unwrap().phase;
        assert!(matches!(&phase, Phase::Failed { reason } if reason.contains("not on the disk")), "{phase:?}");
    }
}
