//! Starts the program of a box, and cleans up after it.

use std::io;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, pidfd_open, setrlimit};

use super::disk::{Watch, Workspace};
use super::{file_owner, processes, user_namespace};
use crate::config::limits::ProcessLimits;
use crate::core_dump;
use crate::sandbox::frame::Start;
use crate::sandbox::purpose::Purpose;

const HOSTS: &str = "/etc/hosts";

/// A program that is running.
pub(super) struct Running {
    pub(super) program: Pid,
    /// The handle (pidfd) of the program. It becomes readable when the program has ended.
    pub(super) handle: OwnedFd,
    /// The directories whose files belong to the program's user while it runs. `None` when the owner does not change.
    borrowed: Option<Vec<std::path::PathBuf>>,
    _watch: Watch,
}

impl Running {
    /// Starts the program that `start` describes. `fds` are its standard output and standard error. `watch` is the
    /// thread that was made before; without one, this makes it.
    pub(super) fn start(start: Start, fds: Vec<OwnedFd>, control: &OwnedFd, watch: Option<Watch>) -> io::Result<Self> {
        let mut fds = fds.into_iter();
        let (Some(stdout), Some(stderr)) = (fds.next(), fds.next()) else {
            return Err(io::Error::other("the outputs of the program are missing"));
        };
        let watch = watch.map_or_else(Watch::make, Ok)?;
        let workspace = Workspace::of(&start, &stdout, control)?;
        write_names(&start)?;
        if let Some(user) = start.user {
            file_owner::give(&start.writable, user)?;
        }
        limit(start.limits)?;
        let mut command = match start.purpose {
            Purpose::Program => Command::new(&start.program),
            Purpose::ImageBuild => user_namespace::command(&start.program)?,
        };
        command.args(&start.arguments).env_clear().envs(&start.environment).current_dir(&start.directory);
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).process_group(0);
        let child = match (start.purpose, start.user) {
            (Purpose::ImageBuild, _) => user_namespace::start(command)?,
            (Purpose::Program, Some(user)) => command.uid(user).gid(user).spawn()?,
            (Purpose::Program, None) => command.spawn()?,
        };
        let program = processes::pid(child.id())?;
        let handle = pidfd_open(program, PidfdFlags::empty())?;
        watch.begin(workspace);
        Ok(Self { program, handle, borrowed: start.user.map(|_| start.writable), _watch: watch })
    }

    /// Kills the remaining processes of the program, and makes the runner the owner of its files again.
    pub(super) fn clean_up(self) {
        let all_gone = processes::kill_all();
        if let Some(borrowed) = self.borrowed.filter(|_| all_gone) {
            // Files that keep the program's user are removed from inside another box after the job
            // (`box_handle/remove.rs`).
            let _ = file_owner::take_back(&borrowed);
        }
    }
}

/// Opens the listeners of the box. This comes before the start of the program, which may connect to them at once.
pub(super) fn listen(start: &Start) -> io::Result<Vec<TcpListener>> {
    start.listen.iter().map(TcpListener::bind).collect()
}

fn write_names(start: &Start) -> io::Result<()> {
    let mut text = "127.0.0.1 localhost job\n::1 localhost\n".to_owned();
    for (address, name) in &start.names {
        text.push_str(&format!("{address} {name}\n"));
    }
    std::fs::OpenOptions::new().write(true).truncate(true).open(HOSTS)?.write_all(text.as_bytes())
}

/// Sets the resource limits of this process. The program inherits these limits and cannot raise them.
fn limit(limits: ProcessLimits) -> io::Result<()> {
    core_dump::forbid()?;
    let each = [
        (Resource::Data, limits.memory),
        (Resource::Nproc, limits.processes),
        (Resource::Nofile, limits.open_files),
        (Resource::Fsize, limits.disk),
    ];
    for (resource, most) in each {
        // If the machine has a lower hard limit, that limit stays.
        let most = rustix::process::getrlimit(resource).maximum.map_or(most, |hard| hard.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}
