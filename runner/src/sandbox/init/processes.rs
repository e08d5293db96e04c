//! Waits for and kills the processes of a box other than its first process.

use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};

/// The time limit for processes to end after they were killed.
const KILL_TIME: Duration = Duration::from_secs(3);

/// Collects the children that have ended. Returns the exit code of `program` if it is one of them.
pub(super) fn reap(program: Option<Pid>) -> Option<i32> {
    let mut code = None;
    while let Ok(Some((ended, status))) = wait(WaitOptions::NOHANG) {
        if Some(ended) == program {
            code = Some(exit_code(status));
        }
    }
    code
}

/// Returns the exit code of a process. After a signal it is 128 plus the signal's number.
fn exit_code(status: WaitStatus) -> i32 {
    status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

/// Kills every process of the box but the first. Returns whether all of them have ended.
pub(super) fn kill_all() -> bool {
    let started = Instant::now();
    while started.elapsed() < KILL_TIME {
        let others = others();
        if others.is_empty() {
            return true;
        }
        for process in others {
            let _ = kill_process(process, Signal::KILL);
        }
        reap(None);
        std::thread::yield_now();
    }
    false
}

fn others() -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|id| *id != 1).filter_map(Pid::from_raw).collect()
}

/// Converts a process id that the standard library returned.
pub(super) fn pid(number: u32) -> io::Result<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
