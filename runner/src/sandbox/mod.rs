//! Runs one program of a job in a box: namespaces of its own, a read-only root, limits, and no way out but the runner.
//!
//! What holds: the job's workspace is the only place on disk it can write to (except for directories that its kind names);
//! it sees no other process, no home directory, no runner state; its network has a loopback alone, whose addresses the
//! runner serves; it has no capability, and where the machine allows it another user than the runner; it ends with the
//! runner, however the runner ends, and when the runner does not renew its time. docs/runner.md has a picture.

mod boxed;
mod bubblewrap;
pub mod cgroup;
mod channel;
mod check;
mod egress;
mod ended;
mod environment;
mod frame;
pub mod init;
mod output;
mod plain;
mod program;
mod purpose;
mod run;
mod seccomp;
mod service;
mod users;
mod walls;
mod warm;

pub use boxed::{remove, use_init};
pub use check::{check, user, walls};
pub use egress::own_loopback;
pub use ended::Ended;
pub use environment::{base_environment, find_program};
pub(crate) use frame::ProcessLimits;
pub use output::{Output, Printed};
pub use program::{Interrupt, Program, SandboxError, inside};
pub use service::{Serve, Service};
pub use users::JobUser;
pub use walls::Wall;
pub use warm::WarmBoxes;

use purpose::Purpose;

use crate::config::SandboxKind;
use crate::work::job::Job;

/// Runs `program` until it ends or the attempt must stop; then none of its processes is left.
///
/// # Errors
/// [`SandboxError`] when it could not be started.
pub async fn run(job: &Job, program: Program<'_>) -> Result<Ended, SandboxError> {
    run_for(job, program, Purpose::Program).await
}

/// Runs a program that makes an image: it is root in a user namespace inside its box, may mount and make namespaces there,
/// and reaches the hosts that it names and no others.
///
/// # Errors
/// As [`run`], and when the machine has no users for it.
pub async fn run_image_build(job: &Job, program: Program<'_>) -> Result<Ended, SandboxError> {
    run_for(job, program, Purpose::ImageBuild).await
}

async fn run_for(job: &Job, program: Program<'_>, purpose: Purpose) -> Result<Ended, SandboxError> {
    if let Some(reason) = job.stop.reason() {
        return Ok(Ended::Stopped(reason));
    }
    match job.config.sandbox {
        SandboxKind::Bubblewrap => run::run(job, program, purpose).await,
        SandboxKind::None => plain::run(job, program).await,
    }
}
