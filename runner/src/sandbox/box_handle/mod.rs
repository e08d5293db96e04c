//! The runner's handle of a box: makes the box with `bwrap`, exchanges messages with it, and ends it when dropped.

mod remove;

use std::fs::File;
use std::io::{PipeReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use command_fds::CommandFdExt as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};

use crate::config::limits::Limits;
use crate::sandbox::bubblewrap::{Options, Spec};
use crate::sandbox::cgroup::{self, Group};
use crate::sandbox::channel::Channel;
use crate::sandbox::environment::find_program;
use crate::sandbox::frame::{FromInit, Start, ToInit};
use crate::sandbox::program::SandboxError;
use crate::sandbox::purpose::Purpose;
use crate::sandbox::users::{JobUser, OtherUser};

pub use remove::remove;

/// The time limit for `bwrap` to make a box.
const MAKE: Duration = Duration::from_secs(20);
/// The length of `bwrap`'s standard error that an error message contains, in bytes.
const LAST_WORDS: u64 = 4096;

/// The program that runs as the first process of a box, with the argument `box-init`. By default it is this process's
/// own program.
static INIT: OnceLock<PathBuf> = OnceLock::new();

/// Sets the program that runs as the first process of each box. Tests need this, because their own program does not
/// understand `box-init`.
pub fn use_init(program: impl Into<PathBuf>) {
    // Only the first call has an effect.
    let _ = INIT.set(program.into());
}

/// An existing box. It runs at most one program.
#[derive(Debug)]
pub(super) struct Boxed {
    channel: Channel,
    /// The handle (pidfd) of the box's first process.
    init: Option<OwnedFd>,
    bwrap: Child,
    group: Option<Group>,
    /// The user id inside the box under which its program runs; `None` for the box's own user.
    pub(super) program_user: Option<u32>,
}

impl Boxed {
    /// Makes a box as `spec` describes it.
    ///
    /// `bwrap` has two processes until the box exists: the child waits for the parent, and the parent may wait for the
    /// runner. If the runner is killed in this time, the parent must not die with it: a child without a parent would wait
    /// for ever. A parent that lives on releases the child. The child then ends by itself, because the users of its box are
    /// not mapped, or because the socket to the runner is closed.
    pub(super) async fn make(spec: &Spec, user: &JobUser, limits: &Limits) -> Result<Self, SandboxError> {
        let bwrap = find_program(&["bwrap"]).ok_or(SandboxError::NoBubblewrap)?;
        let not_run = |source| SandboxError::NotRun { program: bwrap.display().to_string(), source };
        let (channel, theirs) = Channel::pair().map_err(not_run)?;
        let (info_out, info_in) = info_pipe().map_err(not_run)?;
        let (ready_out, ready_in) = std::io::pipe().map_err(not_run)?;
        let other = match user {
            JobUser::Same => None,
            JobUser::Other(other) => Some(other),
        };
        let stdout = other.map_or_else(Stdio::null, |_| Stdio::from(OwnedFd::from(ready_out)));
        let (words, inherited) = Options::new(spec, user, &own_program().map_err(not_run)?)
            .and_then(|options| options.finish(info_in, other.is_some()))
            .map_err(not_run)?;
        let mut command = Command::new(&bwrap);
        command.env_clear().args(words).stdin(theirs).stdout(stdout).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        command.fd_mappings(inherited).map_err(|error| not_run(std::io::Error::other(error)))?;
        let mut child = command.spawn().map_err(not_run)?;
        // Closes the runner's copies of the file descriptors that the child inherited.
        drop(command);
        let mut stderr = child.stderr.take();
        let program_user = user.inside(spec.purpose);
        let mut made = Self { channel, init: None, bwrap: child, group: None, program_user };
        let users = other.map(|other| (other, spec.purpose));
        let ready = tokio::time::timeout(MAKE, made.begin(info_out, users, ready_in.into(), limits)).await;
        match ready {
            Ok(Ok(())) => Ok(made),
            Ok(Err(error)) => {
                drop(made);
                let mut words = Vec::new();
                if let Some(stderr) = &mut stderr {
                    let _ = stderr.take(LAST_WORDS).read_to_end(&mut words).await;
                }
                let words = String::from_utf8_lossy(&words).trim().to_owned();
                Err(SandboxError::NotMade(if words.is_empty() { error.to_string() } else { words }))
            }
            Err(_) => Err(SandboxError::NotMade(format!("`bwrap` did not make the box within {} s", MAKE.as_secs()))),
        }
    }

    async fn begin(
        &mut self,
        info: PipeReader,
        users: Option<(&OtherUser, Purpose)>,
        ready: OwnedFd,
        limits: &Limits,
    ) -> std::io::Result<()> {
        let init = tokio::task::spawn_blocking(move || first_process(info)).await.map_err(std::io::Error::other)??;
        let number = i32::try_from(init).ok().and_then(Pid::from_raw);
        self.init = number.and_then(|init| pidfd_open(init, PidfdFlags::empty()).ok());
        self.group = cgroup::new_group(&format!("box-{init}"), limits)?;
        if let Some(group) = &self.group {
            group.add(init)?;
            self.bwrap.id().map_or(Ok(()), |bwrap| group.add(bwrap))?;
        }
        if let Some((other, purpose)) = users {
            other.map(init, purpose).await?;
        }
        // When the job runs as a user other than the runner's, `bwrap` waits for this byte. Otherwise nobody reads it.
        let _ = File::from(ready).write_all(b"!");
        match self.channel.receive().await? {
            Some((FromInit::Ready, _)) => Ok(()),
            Some((other, _)) => {
                Err(std::io::Error::other(format!("its first process sent the unexpected message `{}`", other.name())))
            }
            None => Err(std::io::Error::other("its first process ended at once")),
        }
    }

    /// Starts a program with the given standard output and standard error. Returns the listeners that `start` requests.
    pub(super) async fn start(&mut self, start: Start, outputs: [OwnedFd; 2]) -> std::io::Result<Vec<TcpListener>> {
        let wanted = start.listen.len();
        let fds: Vec<BorrowedFd<'_>> = outputs.iter().map(|output| output.as_fd()).collect();
        self.channel.send(&ToInit::Start(Box::new(start)), &fds).await?;
        let gone = || std::io::Error::other("the box ended before its program started");
        let listeners = match self.channel.receive().await?.ok_or_else(gone)? {
            (FromInit::Listening, listeners) if listeners.len() == wanted => listeners,
            (other, _) => {
                return Err(std::io::Error::other(format!("the box sent the unexpected message `{}`", other.name())));
            }
        };
        match self.channel.receive().await?.ok_or_else(gone)? {
            (FromInit::Started, _) => Ok(listeners.into_iter().map(TcpListener::from).collect()),
            (FromInit::NotStarted { reason }, _) => Err(std::io::Error::other(reason)),
            (other, _) => Err(std::io::Error::other(format!("the box sent the unexpected message `{}`", other.name()))),
        }
    }

    /// Returns the next message of the box, or `None` when the box has ended. The future may be dropped without losing
    /// a message.
    pub(super) async fn next(&mut self) -> Option<FromInit> {
        self.channel.receive().await.ok().flatten().map(|(message, _)| message)
    }

    /// Returns whether the box's first process is still running.
    pub(super) fn is_alive(&self) -> bool {
        let Some(init) = &self.init else { return false };
        // The handle of a process is readable when the process has ended.
        let mut handle = [PollFd::new(init, PollFlags::IN)];
        poll(&mut handle, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
    }

    /// Sends `signal` to the process group of the program.
    pub(super) async fn signal(&self, signal: Signal) {
        let _ = self.channel.send(&ToInit::Signal(signal.as_raw()), &[]).await;
    }

    /// Sets the deadline at which the box ends (`CLOCK_BOOTTIME`, in nanoseconds).
    pub(super) async fn live_until(&self, until: u64) {
        let _ = self.channel.send(&ToInit::Live { until }, &[]).await;
    }
}

impl Drop for Boxed {
    fn drop(&mut self) {
        // When the first process ends, the kernel kills all other processes of the box.
        if let Some(init) = &self.init {
            let _ = pidfd_send_signal(init, Signal::KILL);
            return;
        }
        // The first process is not known yet. Without `bwrap` it would wait for ever, so this kills `bwrap`'s whole process group.
        let bwrap = self.bwrap.id().and_then(|bwrap| i32::try_from(bwrap).ok()).and_then(Pid::from_raw);
        if let Some(bwrap) = bwrap {
            let _ = kill_process_group(bwrap, Signal::KILL);
        }
    }
}

/// Makes the pipe for `bwrap`'s JSON about the box. `bwrap`'s end is also open for reading: if the runner is killed,
/// the pipe still has a reader, so that writing to it does not kill `bwrap` before it has released its child.
fn info_pipe() -> std::io::Result<(PipeReader, OwnedFd)> {
    let (out, into) = std::io::pipe()?;
    let both = File::options().read(true).write(true).open(format!("/proc/self/fd/{}", into.as_raw_fd()))?;
    Ok((out, both.into()))
}

/// Returns the program that runs as the first process of a box, which is the runner's own.
pub(crate) fn own_program() -> std::io::Result<PathBuf> {
    INIT.get().map_or_else(std::env::current_exe, |program| Ok(program.clone()))
}

/// Reads the process id of the box's first process, as the machine numbers it, from `bwrap`'s JSON.
fn first_process(mut info: PipeReader) -> std::io::Result<u32> {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    struct Info {
        child_pid: u32,
    }
    let mut text = Vec::new();
    let mut chunk = [0; 256];
    while let read @ 1.. = info.read(&mut chunk)? {
        text.extend_from_slice(chunk.get(..read).unwrap_or_default());
        if let Ok(info) = serde_json::from_slice::<Info>(&text) {
            return Ok(info.child_pid);
        }
    }
    Err(std::io::Error::other("`bwrap` ended before it made the box"))
}
