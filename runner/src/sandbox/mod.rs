//! Runs one program of a job in a box. A box has its own namespaces, a read-only root and resource limits, and it has
//! no network connections except those that the runner serves.
//!
//! A box guarantees the following, and docs/runner.md has a diagram:
//! - The program can write to disk only in the job's workspace and in the directories that [`Program::writable`] names.
//! - The program does not see processes outside of the box, home directories, or the runner's state.
//! - The network of the box is only a loopback, and the runner serves its addresses.
//! - The program has no capability. Where the machine allows it, the program runs as a user other than the runner's.
//! - The box ends when the runner ends, for whatever reason, and when the runner does not extend its deadline.

mod box_handle;
mod bubblewrap;
pub mod cgroup;
mod channel;
mod check;
mod egress;
mod environment;
mod frame;
mod host_listener;
pub mod init;
mod loopback;
mod output;
mod plain_process;
mod program;
mod program_digest;
mod program_end;
mod purpose;
mod run;
mod seccomp;
mod users;
mod walls;
mod warm_boxes;

pub(crate) use box_handle::own_program;
pub use box_handle::{remove, use_init};
pub use check::{check, user, walls};
pub use egress::own_loopback;
pub use environment::{base_environment, check_user, find_program, find_program_of, lacks_program};
pub use host_listener::{Outside, Through, connect_permitted};
pub use loopback::{Serve, Service};
pub use output::{Output, Printed};
pub use program::{Interrupt, Program, SandboxError, inside};
pub use program_digest::{Pinned, check as check_program, check_of_job as check_program_of, pinned};
pub use program_end::Ended;
pub use users::JobUser;
pub use walls::Wall;
pub use warm_boxes::WarmBoxes;

use purpose::Purpose;

use crate::config::SandboxKind;
use crate::job::Job;

/// Runs `program` until it ends or the attempt must stop. When this function returns, all of its processes have ended.
///
/// # Errors
/// A [`SandboxError`] when the program could not be started.
pub async fn run(job: &Job, program: Program<'_>) -> Result<Ended, SandboxError> {
    run_for(job, program, Purpose::Program).await
}

/// Runs a program that makes an image. The program is root in a user namespace inside its box and may mount and make
/// namespaces there. It reaches only the hosts in [`Program::hosts`].
///
/// # Errors
/// The same errors as [`run()`], and [`SandboxError::NoUsers`] when the machine does not have enough users for an
/// image.
pub async fn run_image_build(job: &Job, program: Program<'_>) -> Result<Ended, SandboxError> {
    run_for(job, program, Purpose::ImageBuild).await
}

async fn run_for(job: &Job, program: Program<'_>, purpose: Purpose) -> Result<Ended, SandboxError> {
    if let Some(reason) = job.stop.reason() {
        return Ok(Ended::Stopped(reason));
    }
    match job.config.sandbox {
        SandboxKind::Bubblewrap => run::run(job, program, purpose).await,
        SandboxKind::None => {
            program_digest::check(&job.config, program.executable).await?;
            plain_process::run(job, program).await
        }
    }
}
