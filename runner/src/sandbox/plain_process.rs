//! Runs a program without a box. The program has only a process group and a working directory of its own.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use super::output::{self, Pump};
use super::program::{Interrupt, Program, SandboxError};
use super::program_end::{Ended, grace};
use crate::job::{Job, StopReason};

/// Runs `program` until it ends or the attempt must stop.
pub(super) async fn run(job: &Job, program: Program<'_>) -> Result<Ended, SandboxError> {
    let name = program.executable.display().to_string();
    let not_run = |source| SandboxError::NotRun { program: name.clone(), source };
    let (mut child, group, pump) = start(job, &program).map_err(not_run)?;
    let ended = tokio::select! {
        status = child.wait() => Ok(status.map_err(not_run)?),
        reason = job.stop.stopped() => Err(reason),
    };
    let ended = match ended {
        Ok(status) => Ok(code(status)),
        Err(reason) => {
            stop(&mut child, &group, program.interrupt, reason).await;
            Err(reason)
        }
    };
    // This kills the program's remaining processes. They may have its output open, and the output is read to its end.
    drop(group);
    let last_words = pump.finish().await;
    Ok(match ended {
        Ok(code) => Ended::Code { code, last_words },
        Err(reason) => Ended::Stopped(reason),
    })
}

fn start(job: &Job, program: &Program<'_>) -> std::io::Result<(Child, Group, Pump)> {
    let (pump, [stdout, stderr]) = output::pump(job, &program.output)?;
    let mut command = Command::new(program.executable);
    command.args(&program.arguments).current_dir(job.workspace.join(program.directory));
    command.env_clear().envs(&program.environment);
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).process_group(0).kill_on_drop(true);
    let child = command.spawn()?;
    let group = Group(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw));
    Ok((child, group, pump))
}

async fn stop(child: &mut Child, group: &Group, interrupt: Interrupt, reason: StopReason) {
    group.signal(interrupt.signal());
    if tokio::time::timeout(grace(reason), child.wait()).await.is_err() {
        group.signal(Signal::KILL);
        // INVARIANT: a killed process ends. If it does not, dropping the child is all that the runner can still do.
        let _ = child.kill().await;
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

/// The process group of a program. Dropping it kills the processes that remain.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        // An error means that the group has no process, which is not a problem.
        let _ = self.0.map(|leader| kill_process_group(leader, signal));
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
