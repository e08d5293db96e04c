//! Runs the commands that are probes of an app. Each runs in a box, with credentials that only read. Its exit code is
//! the answer, and its output goes only into the log.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use freehold_aws_errors::chain;
use freehold_protocol::order::health::{CheckHealth, Health, HealthState};
use tokio::sync::Mutex;

use crate::config::SandboxKind;
use crate::identity::job_aws::JobAws;
use crate::job::Job;
use crate::job::failure::Failure;
use crate::kinds::result::job_aws;
use crate::kinds::templates::Templates;
use crate::sandbox::{self, Ended, Output, Program};

/// The time limit of one command.
pub(super) const TIME: Duration = Duration::from_secs(10);

/// The state that the commands of a job share.
pub(super) struct Commands {
    /// The access to AWS; absent for a job that runs no command.
    aws: Option<JobAws>,
    /// Held by the command that runs. Each box may use the whole limits of the job, so only one box runs at a time.
    turn: Mutex<()>,
}

impl Commands {
    /// Prepares what the commands of `work` need.
    ///
    /// # Errors
    /// A failure for a command on a runner without boxes, and the errors of [`job_aws`].
    pub(super) async fn of(job: &Job, work: &CheckHealth) -> Result<Self, Failure> {
        let mut commands = Self { aws: None, turn: Mutex::new(()) };
        if !work.runs_commands() {
            return Ok(commands);
        }
        // Without a box, a command is a process of the runner's user. It could take the runner's credentials and change something,
        // and no change window stops a check.
        if job.config.sandbox == SandboxKind::None {
            return Err(Failure::new(
                "this component has a probe of type `exec`, and without a box its command could do more than read; set `sandbox = \
                 \"bubblewrap\"` in this runner's config",
            ));
        }
        commands.aws = Some(job_aws(job).await?);
        Ok(commands)
    }

    /// Runs the command of a probe. `what` is the name of the probe in reasons and in the log. A command that does not end
    /// in time counts as unhealthy, and all of its processes are ended.
    ///
    /// # Errors
    /// A failure when a template cannot be rendered or the program does not exist, because a later check would fail as well;
    /// and [`Failure::Stopped`].
    pub(super) async fn ask(
        &self,
        job: &Job,
        templates: &Templates,
        what: &str,
        command: &[String],
    ) -> Result<Health, Failure> {
        let (executable, arguments) = rendered(job, templates, what, command)?;
        let mut environment = sandbox::base_environment(job);
        environment.extend(self.aws.as_ref().map(JobAws::environment).unwrap_or_default());
        let program = Program {
            output: Output::Log { prefix: format!("{what} | ") },
            services: self.aws.as_ref().map(JobAws::services).unwrap_or_default(),
            ..Program::new(&executable, arguments, environment)
        };
        let _turn = self.turn.lock().await;
        let unhealthy = HealthState::Unhealthy;
        let (state, why) = match tokio::time::timeout(TIME, sandbox::run(job, program)).await {
            Ok(Ok(Ended::Code { code: 0, .. })) => return Ok(Health::new(HealthState::Healthy, "")),
            // The reason does not contain the end of the output, because the vendor gets the reason outside of the log.
            Ok(Ok(Ended::Code { code, last_words: _ })) => {
                (unhealthy, format!("the command ended with exit code {code}"))
            }
            Ok(Ok(Ended::Stopped(reason))) => return Err(Failure::stopped(reason)),
            Ok(Err(error)) => (HealthState::Unknown, chain(&error)),
            Err(_) => (unhealthy, format!("the command did not end within {} s", TIME.as_secs())),
        };
        Ok(Health::new(state, &job.log.redacted(&format!("{what}: {why}"))))
    }

    /// Records how the commands used IAM.
    pub(super) async fn finish(&self) {
        if let Some(aws) = &self.aws {
            aws.finish().await;
        }
    }
}

/// Returns the program and the arguments of a command.
fn rendered(
    job: &Job,
    templates: &Templates,
    what: &str,
    command: &[String],
) -> Result<(PathBuf, Vec<String>), Failure> {
    let words = command.iter().map(|word| templates.text(what, word));
    let mut words = words.collect::<Result<Vec<String>, Failure>>()?.into_iter();
    let program = words.next().unwrap_or_default();
    if job.image.get().is_none() && !is_of_machine(&program) {
        return Err(Failure::new(format!(
            "{what}: `{program}` is neither the name of a program nor a path below `/usr` or `/bin`; use a program on the `PATH`"
        )));
    }
    let names = [program.as_str()];
    let executable = sandbox::find_program_of(job, &names).ok_or_else(|| {
        let none = format!("there is no program `{program}` on this runner's `PATH`; install it");
        Failure::new(format!("{what}: {}", sandbox::lacks_program(job, &names, &none)))
    })?;
    Ok((executable, words.collect()))
}

/// Returns whether a text names a program of the machine: by its name, or by a path in the directories of programs.
/// Every other path may lead to a file that somebody else wrote, such as another job.
fn is_of_machine(program: &str) -> bool {
    let path = Path::new(program);
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    let is_below = ["/usr", "/bin"].iter().any(|directory| path.starts_with(directory));
    !program.contains('/') || is_below && path.components().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_a_program_of_the_machine_and_no_other_file() {
        for program in ["check", "/usr/bin/curl", "/bin/sh", "a..b"] {
            assert!(is_of_machine(program), "{program}");
        }
        for program in ["/var/lib/x", "../../x", "./x", "x/y", "/usr/../var/x", "/usrx/y", "/bin/../x"] {
            assert!(!is_of_machine(program), "{program}");
        }
    }
}
