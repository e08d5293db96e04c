//! Runs a program in a box: makes the box, serves its addresses, extends its deadline, and ends it.

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::box_handle::Boxed;
use super::bubblewrap::{Spec, canonical};
use super::frame::{FromInit, Start};
use super::loopback::Service;
use super::program::{INSIDE, Interrupt, Program, SandboxError, inside};
use super::program_end::{Ended, grace};
use super::purpose::Purpose;
use super::users::JobUser;
use super::warm_boxes::WaitingBox;
use super::{egress, output, program_digest};
use crate::job::{Job, StopReason};
use crate::tool_image::ToolImage;

/// Runs `program` until it ends or the attempt must stop.
pub(super) async fn run(job: &Job, program: Program<'_>, purpose: Purpose) -> Result<Ended, SandboxError> {
    let image = job.image.get();
    // A path inside an image is not a path of this machine.
    let executable = image.map_or_else(|| canonical(program.executable), |_| program.executable.to_owned());
    let name = executable.display().to_string();
    let not_run = |source| SandboxError::NotRun { program: name.clone(), source };
    if purpose == Purpose::ImageBuild && !JobUser::find().can_build_images() {
        return Err(SandboxError::NoUsers);
    }
    let own_program = image.is_none().then(|| executable.clone());
    let spec = Spec {
        purpose,
        image: image.map(ToolImage::root),
        workspace: job.workspace.clone(),
        shown: program.readable.iter().cloned().chain(own_program).collect(),
        writable: program.writable.clone(),
        memory_files: job.config.limits.memory_files(),
    };
    program_digest::check_in_box(&job.config, image, program.executable, &spec.hidden()).await?;
    let mut made = take_or_make_box(job, &spec).await?;
    let services = services(job, &program, purpose, made.program_user);
    let (pump, outputs) = output::pump(job, &program.output).map_err(not_run)?;
    let start = Start {
        program: executable,
        arguments: program.arguments,
        environment: program.environment,
        directory: inside(job, program.directory),
        listen: services.iter().map(|service| service.at).collect(),
        names: services.iter().filter_map(Service::host_line).collect(),
        user: made.program_user,
        purpose,
        writable: spec.writable.iter().cloned().chain([INSIDE.into()]).collect(),
        limits: job.config.limits.of_process(),
        until: job.stop.may_run_until(),
    };
    let listeners = made.start(start, outputs).await.map_err(not_run)?;
    // Dropping the set ends the tasks that serve the box.
    let _serving = serve(&services, listeners).map_err(not_run)?;
    let ended = until_ended(job, &mut made, program.interrupt).await;
    drop(made);
    let last_words = pump.finish().await;
    Ok(match ended {
        Ok(code) => Ended::Code { code, last_words },
        Err(reason) => Ended::Stopped(reason),
    })
}

/// Returns the services of a box that runs its program as `program_user`. Writes a line into the log for each service that
/// this box cannot have.
fn services(job: &Job, program: &Program<'_>, purpose: Purpose, program_user: Option<u32>) -> Vec<Service> {
    let wanted = egress::services(job, program, purpose).into_iter().chain(program.services.clone());
    let (services, absent): (Vec<Service>, Vec<Service>) = wanted.partition(|service| service.fits(program_user));
    for service in absent {
        job.log.line(&service.absence());
    }
    services
}

/// Returns the box that waits for the job's first program, if the program fits into it, and otherwise a new box.
async fn take_or_make_box(job: &Job, spec: &Spec) -> Result<Boxed, SandboxError> {
    let waiting = job.first_box.take::<WaitingBox>();
    let fits = |waiting: &WaitingBox| spec.is_plain() && waiting.shows(job.image.get()) && waiting.made.is_alive();
    match waiting.filter(fits) {
        Some(waiting) => Ok(waiting.made),
        None => Boxed::make(spec, &JobUser::find(), &job.config.limits).await,
    }
}

/// Waits until the program has ended, and returns its exit code. If the attempt must stop, stops the program and
/// returns the reason.
async fn until_ended(job: &Job, made: &mut Boxed, interrupt: Interrupt) -> Result<i32, StopReason> {
    let ended = tokio::select! {
        code = follow(job, made) => Ok(code),
        reason = job.stop.stopped() => Err(reason),
    };
    if let Err(reason) = ended {
        stop(made, interrupt, reason).await;
    }
    ended
}

fn serve(services: &[Service], listeners: Vec<std::net::TcpListener>) -> std::io::Result<JoinSet<()>> {
    let mut serving = JoinSet::new();
    for (service, listener) in services.iter().zip(listeners) {
        listener.set_nonblocking(true)?;
        let (listener, serve) = (TcpListener::from_std(listener)?, Arc::clone(&service.serve));
        serving.spawn(async move { serve.serve(listener).await });
    }
    Ok(serving)
}

/// Extends the deadline of the box whenever the job's lease is renewed, until the program has ended. Returns the exit
/// code.
async fn follow(job: &Job, made: &mut Boxed) -> i32 {
    let mut lease = job.stop.lease();
    loop {
        tokio::select! {
            message = made.next() => match message {
                Some(FromInit::Ended { code }) => return code,
                Some(FromInit::OverDisk { bytes, files }) => {
                    job.log.line(&job.config.limits.over_disk(bytes, files));
                    return KILLED;
                }
                Some(
                    FromInit::Ready
                    | FromInit::Listening
                    | FromInit::Started
                    | FromInit::NotStarted { .. }
                    | FromInit::Cleared { .. },
                ) => {}
                // The box has ended with all its processes: it was out of memory, or its deadline passed.
                None => return KILLED,
            },
            until = lease.renewed() => made.live_until(until).await,
        }
    }
}

/// The exit code of a program that was killed.
const KILLED: i32 = 128 + 9;

async fn stop(made: &mut Boxed, interrupt: Interrupt, reason: StopReason) {
    // The runner signals only once: at a second signal, Terraform ends without writing its state.
    made.signal(interrupt.signal()).await;
    let ended = async {
        while let Some(message) = made.next().await {
            if matches!(message, FromInit::Ended { .. }) {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(grace(reason), ended).await;
}
