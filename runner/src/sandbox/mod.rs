//! Runs one program of a job isolated from the machine: its own namespaces, a read-only root, a clean environment.
//!
//! What holds: the job's workspace is the only place on disk it can write to (except for directories that its kind names);
//! it sees no other process, no home directory, no runner state; it dies with the runner, however the runner dies.
//! What does not hold in this first form: the network is the runner's own, so a job can reach whatever the runner's
//! security group lets out, the instance metadata service included; and there is no memory or CPU limit.

mod bubblewrap;
mod environment;
mod output;
mod program;

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;
use tokio::process::{Child, Command};

pub use environment::{base_environment, find_program};
pub use output::Output;
use program::{Group, Started, spawn};
pub use program::{Interrupt, Program, SandboxError, inside};

use crate::config::SandboxKind;
use crate::work::job::{Job, StopReason};

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// By itself; 128 and the signal's number when a signal ended it.
    Code { code: i32, last_words: String },
    /// The attempt had to stop.
    Stopped(StopReason),
}

/// Runs `program` until it ends or the attempt must stop; then none of its processes is left.
///
/// # Errors
/// [`SandboxError`] when it could not be started.
pub async fn run(job: &Job, program: Program<'_>) -> Result<Ended, SandboxError> {
    run_in(job.config.sandbox, job, program).await
}

/// Runs a program that makes its own namespaces, which is not possible inside a sandbox. It gets a clean environment and
/// starts in the workspace, without any other isolation.
///
/// # Errors
/// As [`run`].
pub async fn run_outside(job: &Job, program: Program<'_>) -> Result<Ended, SandboxError> {
    run_in(SandboxKind::None, job, program).await
}

async fn run_in(kind: SandboxKind, job: &Job, program: Program<'_>) -> Result<Ended, SandboxError> {
    if let Some(reason) = job.stop.reason() {
        return Ok(Ended::Stopped(reason));
    }
    let name = program.executable.display().to_string();
    let not_run = |source| SandboxError::NotRun { program: name.clone(), source };
    let Started { mut child, group } = match kind {
        SandboxKind::Bubblewrap => bubblewrap::start(job, &program).await?,
        SandboxKind::None => start_plainly(job, &program).map_err(not_run)?,
    };
    let pump = output::pump(job, &mut child, &program.output).map_err(not_run)?;
    let ended = tokio::select! {
        status = child.wait() => Ok(status.map_err(not_run)?),
        reason = job.stop.stopped() => Err(reason),
    };
    let status = match ended {
        Ok(status) => status,
        Err(reason) => {
            stop(&mut child, &group, program.interrupt, reason).await;
            drop(group);
            pump.finish().await;
            return Ok(Ended::Stopped(reason));
        }
    };
    // What it left behind goes before its output is read to the end: it may hold the other end of the pipe.
    drop(group);
    let last_words = pump.finish().await;
    if kind == SandboxKind::Bubblewrap && status.code() == Some(1) && last_words.starts_with("bwrap: ") {
        return Err(SandboxError::NotMade(last_words));
    }
    Ok(Ended::Code { code: code(status), last_words })
}

fn start_plainly(job: &Job, program: &Program<'_>) -> std::io::Result<Started> {
    let mut command = Command::new(program.executable);
    command.args(&program.arguments).current_dir(job.workspace.join(program.directory));
    command.env_clear().envs(&program.environment);
    let child = spawn(&mut command, &program.output)?;
    let group = Group::of(child.id(), true);
    Ok(Started { child, group })
}

async fn stop(child: &mut Child, group: &Group, interrupt: Interrupt, reason: StopReason) {
    let signal = match interrupt {
        Interrupt::Terminate => Signal::TERM,
        Interrupt::Interrupt => Signal::INT,
    };
    let asked = async {
        // A sandbox that is only being made has no group yet. Once is enough: Terraform takes a second signal as an order
        // to end without writing its state.
        while !group.signal(signal) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        std::future::pending::<()>().await;
    };
    let ended = async {
        tokio::select! {
            _ = child.wait() => {}
            () = asked => {}
        }
    };
    if tokio::time::timeout(grace(reason), ended).await.is_err() {
        group.signal(Signal::KILL);
        // INVARIANT: a killed process ends; if the kernel disagrees, dropping the child is all that is left.
        let _ = child.kill().await;
    }
}

/// Returns how long a program has to end by itself, less than [`crate::work::job::STOP_GRACE`]. Terraform writes its state then;
/// a lost lease leaves little time, as another attempt is about to start.
const fn grace(reason: StopReason) -> Duration {
    match reason {
        StopReason::Cancelled | StopReason::TimedOut | StopReason::Draining => Duration::from_secs(15),
        StopReason::LeaseLost | StopReason::SwitchedOff => Duration::from_secs(4),
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}
