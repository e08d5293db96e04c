//! The description of a program of a job, and the errors of running it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use freehold_aws_errors::chain;
use freehold_egress::AccountHosts;
use rustix::process::Signal;

use super::loopback::Service;
use super::output::Output;
use super::purpose::IMAGE_USERS;
use crate::config::SandboxKind;
use crate::job::Job;
use crate::job::failure::Failure;

/// The path of a job's workspace inside a box.
pub(super) const INSIDE: &str = "/workspace";

/// One program to run.
#[derive(Debug)]
pub struct Program<'a> {
    /// The absolute path of the program: on this machine, or in the image of the job.
    pub executable: &'a Path,
    pub arguments: Vec<String>,
    /// The program's environment variables. The program gets no other variables.
    pub environment: BTreeMap<String, String>,
    /// The working directory of the program, relative to the workspace.
    pub directory: &'a str,
    pub output: Output,
    /// The signal that asks the program to stop.
    pub interrupt: Interrupt,
    /// Directories outside the workspace that the program may write to, under the same path.
    pub writable: Vec<PathBuf>,
    /// Files and directories outside the workspace that the program may read, under the same path.
    pub readable: Vec<PathBuf>,
    /// The services inside the box beside the proxy and the hosts that the contract allows.
    pub services: Vec<Service>,
    /// The hosts that the program may reach in addition to the hosts of the contract.
    pub hosts: Vec<String>,
    /// Like `hosts`, but a name may resolve to an address of a private network: the endpoint of the install's cluster,
    /// and hosts that the runner's own config names.
    pub inside_hosts: Vec<String>,
    /// The hosts of the customer's account that the program may reach although they are not in `hosts` or
    /// `inside_hosts`.
    pub account_hosts: Option<Arc<dyn AccountHosts>>,
}

impl<'a> Program<'a> {
    /// Returns a program that works in the workspace, writes to the job's log, stops at `SIGTERM`, and reaches nothing
    /// beside the hosts of the contract.
    pub const fn new(executable: &'a Path, arguments: Vec<String>, environment: BTreeMap<String, String>) -> Self {
        Self {
            executable,
            arguments,
            environment,
            directory: "",
            output: Output::log(),
            interrupt: Interrupt::Terminate,
            writable: Vec::new(),
            readable: Vec::new(),
            services: Vec::new(),
            hosts: Vec::new(),
            inside_hosts: Vec::new(),
            account_hosts: None,
        }
    }
}

/// The signal that asks a program to stop before it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// `SIGTERM`, to the program's process group.
    Terminate,
    /// `SIGINT`, as Ctrl-C in a terminal. Terraform's plugins ignore it, so that Terraform itself can end them.
    Interrupt,
}

impl Interrupt {
    pub(super) const fn signal(self) -> Signal {
        match self {
            Self::Terminate => Signal::TERM,
            Self::Interrupt => Signal::INT,
        }
    }
}

/// The reason why a program could not be run.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error(
        "`bwrap` is not installed; install the package `bubblewrap` (Debian and Amazon Linux), or write \
         `sandbox = \"none\"` into the runner's config"
    )]
    NoBubblewrap,
    #[error("the box could not be made: {0}; user namespaces may be switched off on this machine")]
    NotMade(String),
    #[error(
        "the steps of a Dockerfile need {IMAGE_USERS} users, which this machine does not give the runner; install the \
         package `uidmap` (Amazon Linux: `shadow-utils`) and give the runner's user a range of that many in \
         `/etc/subuid` and `/etc/subgid`"
    )]
    NoUsers,
    #[error("{0}")]
    OtherProgram(String),
    #[error("could not run `{program}`")]
    NotRun {
        program: String,
        #[source]
        source: std::io::Error,
    },
}

impl From<SandboxError> for Failure {
    fn from(error: SandboxError) -> Self {
        Self::new(chain(&error))
    }
}

/// Returns the path under which the job sees `path`, which is relative to its workspace.
pub fn inside(job: &Job, path: &str) -> String {
    let base = match job.config.sandbox {
        SandboxKind::Bubblewrap => INSIDE.to_owned(),
        SandboxKind::None => job.workspace.display().to_string(),
    };
    if path.is_empty() { base } else { format!("{base}/{path}") }
}
