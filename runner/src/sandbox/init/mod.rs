//! The first process of a box: opens the listeners, runs the program, and ends the box at its deadline or when the
//! runner has ended.
//!
//! `bwrap` starts the runner's own program as this process inside the namespaces. When this process ends, the kernel
//! ends every process in the box.

mod disk;
mod file_owner;
mod processes;
mod start;
mod user_namespace;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Signal, kill_process_group, set_dumpable_behavior, set_parent_process_death_signal,
};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

use super::frame::{self, FromInit, Received, ToInit};
use super::program::INSIDE;
use super::walls;
use crate::files;
use disk::Watch;
use start::Running;

/// The argument with which this program runs as the first process of a box.
pub(super) const COMMAND: &str = "box-init";
/// The time between two checks for ended processes that became children of this process.
const REAP_EVERY: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// If the command line names a part that the runner starts in a process of its own, runs this part: the first process
/// of a box, the isolation tests, the start of an image build, or policies. Returns `None` for other command lines. A
/// program that runs jobs calls this first.
pub fn run_if_asked() -> Option<ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let command = arguments.first()?.to_str()?;
    let ended = match (command, arguments.get(1..).unwrap_or_default()) {
        (COMMAND, []) => run(),
        (walls::COMMAND, [outside]) => return outside.to_str().map(walls::run),
        (freehold_policy::COMMAND, _) => return freehold_policy::run_if_asked(),
        (user_namespace::COMMAND, rest) => Err(user_namespace::become_program(rest.iter().cloned())),
        _ => return None,
    };
    Some(match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{command}: {error}");
            ExitCode::FAILURE
        }
    })
}

fn run() -> io::Result<()> {
    // When the machine's memory runs out, the kernel kills a job before the runner.
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
    // The box also ends when somebody kills the process of `bwrap` that waits for it.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // This prevents the program from reading this process's memory through `/proc`.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let control = io::stdin().as_fd().try_clone_to_owned()?;
    let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)?;
    let mut init = Init { control, timer, received: Received::default(), watch: None, running: None };
    init.say(&FromInit::Ready, &[])?;
    // The thread is made while the runner prepares the program, which then need not wait for it. If this fails, the
    // start of the program tries it again.
    init.watch = Watch::make().ok();
    init.serve()
}

struct Init {
    control: OwnedFd,
    timer: OwnedFd,
    received: Received,
    /// The thread that scans the workspace, until [`Running`] has it.
    watch: Option<Watch>,
    running: Option<Running>,
}

/// The events for which the process woke up.
struct Woken {
    message: bool,
    time_is_up: bool,
}

impl Init {
    /// Handles the runner's messages until the runner has ended or the deadline has passed.
    fn serve(&mut self) -> io::Result<()> {
        loop {
            let woken = self.wait()?;
            if woken.time_is_up || (woken.message && !self.received.read(&self.control)?) {
                return Ok(());
            }
            while let Some((message, fds)) = self.received.take()? {
                self.obey(message, fds)?;
            }
            self.reap()?;
        }
    }

    fn wait(&self) -> io::Result<Woken> {
        let mut fds = vec![PollFd::new(&self.control, PollFlags::IN), PollFd::new(&self.timer, PollFlags::IN)];
        fds.extend(self.running.iter().map(|running| PollFd::new(&running.handle, PollFlags::IN)));
        // A box without a program does not wake up at intervals, so it costs no processor time.
        let reap = self.running.as_ref().map(|_| &REAP_EVERY);
        match poll(&mut fds, reap) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok(Woken { message: is_ready(0), time_is_up: is_ready(1) })
    }

    fn obey(&mut self, message: ToInit, fds: Vec<OwnedFd>) -> io::Result<()> {
        match message {
            ToInit::Live { until } => self.live_until(until),
            ToInit::Signal(number) => {
                if let (Some(running), Some(signal)) = (&self.running, Signal::from_named_raw(number)) {
                    let _ = kill_process_group(running.program, signal);
                }
                Ok(())
            }
            ToInit::Clear => {
                let error = files::clear(Path::new(INSIDE)).err().map(|error| error.to_string());
                self.say(&FromInit::Cleared { error }, &[])
            }
            ToInit::Start(start) => {
                self.live_until(start.until)?;
                let listeners = start::listen(&start)?;
                self.say(&FromInit::Listening, &listeners.iter().map(|fd| fd.as_fd()).collect::<Vec<_>>())?;
                drop(listeners);
                match Running::start(*start, fds, &self.control, self.watch.take()) {
                    Ok(running) => {
                        self.running = Some(running);
                        self.say(&FromInit::Started, &[])
                    }
                    Err(error) => self.say(&FromInit::NotStarted { reason: error.to_string() }, &[]),
                }
            }
        }
    }

    /// Collects children that have ended. When the program is among them, kills its other processes and reports the
    /// end.
    fn reap(&mut self) -> io::Result<()> {
        let program = self.running.as_ref().map(|running| running.program);
        let Some(code) = processes::reap(program) else { return Ok(()) };
        if let Some(running) = self.running.take() {
            running.clean_up();
        }
        self.say(&FromInit::Ended { code }, &[])
    }

    fn live_until(&self, until: u64) -> io::Result<()> {
        let at = Duration::from_nanos(until.clamp(1, i64::MAX.unsigned_abs()));
        let value =
            Timespec { tv_sec: i64::try_from(at.as_secs()).unwrap_or(i64::MAX), tv_nsec: at.subsec_nanos().into() };
        let interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(
            &self.timer,
            TimerfdTimerFlags::ABSTIME,
            &Itimerspec { it_interval: interval, it_value: value },
        )?;
        Ok(())
    }

    fn say(&self, message: &FromInit, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        frame::send(&self.control, message, fds)
    }
}
