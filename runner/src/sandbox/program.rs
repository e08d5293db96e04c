//! A program of a job: what is run, its processes, and why it could not be run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use super::output::Output;
use crate::config::SandboxKind;
use crate::work::job::Job;

/// Where a job finds its workspace inside the sandbox.
pub(super) const INSIDE: &str = "/workspace";

/// One program to run.
#[derive(Debug)]
pub struct Program<'a> {
    /// An absolute path outside the sandbox.
    pub executable: &'a Path,
    pub arguments: Vec<String>,
    /// All of the program's environment.
    pub environment: BTreeMap<String, String>,
    /// Where it starts, relative to the workspace.
    pub directory: &'a str,
    pub output: Output,
    /// What it gets first when it must stop.
    pub interrupt: Interrupt,
    /// Directories outside the workspace that it may write to, under the same path.
    pub writable: Vec<PathBuf>,
}

/// How a program is asked to stop, before it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// `SIGTERM` to all of its processes.
    Terminate,
    /// `SIGINT`, as Ctrl-C in a terminal: what Terraform's plugins ignore, so that Terraform can end them itself.
    Interrupt,
}

/// Why a program could not be run.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error(
        "`bwrap` is not installed; install the Debian package `bubblewrap` (Amazon Linux: `bubblewrap`), or write \
         `sandbox = \"none\"` into the runner's config"
    )]
    NoBubblewrap,
    #[error("the sandbox could not be made: {0}; user namespaces may be switched off on this machine")]
    NotMade(String),
    #[error("could not run `{program}`")]
    NotRun {
        program: String,
        #[source]
        source: std::io::Error,
    },
}

/// Returns where the job sees `path` of its workspace.
pub fn inside(job: &Job, path: &str) -> String {
    let base = match job.config.sandbox {
        SandboxKind::Bubblewrap => INSIDE.to_owned(),
        SandboxKind::None => job.workspace.display().to_string(),
    };
    if path.is_empty() { base } else { format!("{base}/{path}") }
}

/// A program that runs.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) group: Group,
}

/// The processes of a program.
pub(super) struct Group {
    /// The group's leader as this machine numbers it; the program itself may be another process.
    leader: Option<Pid>,
    /// Whether the remaining processes are killed when this is dropped.
    ends_with_this: bool,
}

impl Group {
    /// Returns the group that `leader` leads.
    pub(super) fn of(leader: Option<u32>, ends_with_this: bool) -> Self {
        Self { leader: leader.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw), ends_with_this }
    }

    /// Sends `signal` to the group; returns whether there was one.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        self.leader.is_some_and(|leader| kill_process_group(leader, signal).is_ok())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.ends_with_this {
            self.signal(Signal::KILL);
        }
    }
}

/// Starts `command` in a process group of its own.
pub(super) fn spawn(command: &mut Command, output: &Output) -> std::io::Result<Child> {
    let stdout = output.stdout()?;
    command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).process_group(0).kill_on_drop(true).spawn()
}
