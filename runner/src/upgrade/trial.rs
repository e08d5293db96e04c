//! The trial of a new program: the program runs, and has to prove its health within a time limit.

use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use freehold_protocol::Digest;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;
use tokio::time::Instant;

use crate::process::drain::Signals;
use crate::upgrade::programs::Programs;

/// The time between two checks whether the program has proved its health.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How a trial ended.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The program has proved its health, and continues to run.
    Healthy,
    /// The program has ended, or was ended, without having proved its health.
    Failed(String),
    /// The runner was asked to end, and the program has ended with this status.
    Ended(ExitStatus),
}

/// Watches the new program `child` until it has proved its health, has ended, or `health_secs` have passed.
///
/// # Errors
/// When the process cannot be waited for.
pub(crate) async fn watch(
    child: &mut Child,
    signals: &mut Signals,
    (state_dir, program): (&Path, &Digest),
    health_secs: u32,
) -> io::Result<Verdict> {
    let deadline = Instant::now() + Duration::from_secs(u64::from(health_secs));
    let mut asked_to_end = false;
    loop {
        let ended = tokio::select! {
            ended = child.wait() => Some(ended?),
            () = signals.next() => {
                asked_to_end = true;
                forward(child);
                None
            }
            () = tokio::time::sleep_until(deadline), if !asked_to_end => {
                child.kill().await?;
                None
            }
            () = tokio::time::sleep(POLL_INTERVAL) => None,
        };
        let has_ended = ended.is_some() || child.try_wait()?.is_some();
        // The file is read after the check whether the program has ended: an ended program no longer writes the file.
        if is_healthy(state_dir, program) {
            return Ok(Verdict::Healthy);
        }
        match ended {
            Some(status) if asked_to_end => return Ok(Verdict::Ended(status)),
            Some(status) => {
                return Ok(Verdict::Failed(format!("the new program ended with {status} before it proved its health")));
            }
            None if has_ended => {
                return Ok(Verdict::Failed(format!("the new program did not prove its health within {health_secs} s")));
            }
            None => {}
        }
    }
}

fn is_healthy(state_dir: &Path, program: &Digest) -> bool {
    let programs = Programs::load(state_dir);
    programs.is_current(program) && programs.candidate.is_none()
}

/// Sends a program the signal that asks it to end.
pub(crate) fn forward(child: &Child) {
    let pid = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
    if let Some(pid) = pid {
        // The process may have ended by now.
        let _ = kill_process(pid, Signal::TERM);
    }
}
