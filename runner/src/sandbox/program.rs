//! A program of a job: what is run, and why it could not be run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use super::output::Output;
use super::purpose::IMAGE_USERS;
use super::service::Service;
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
    /// Directories outside the workspace that it may read, under the same path.
    pub readable: Vec<PathBuf>,
    /// What answers inside its box beside the way out that its contract allows.
    pub services: Vec<Service>,
    /// The hosts that it may reach beyond those of the contract.
    pub hosts: Vec<String>,
}

/// How a program is asked to stop, before it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// `SIGTERM` to all of its processes.
    Terminate,
    /// `SIGINT`, as Ctrl-C in a terminal. Terraform's plugins ignore this signal, so that Terraform can end them itself.
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
    #[error(
        "this machine gives the runner no {IMAGE_USERS} users for the steps of a Dockerfile; install the package `uidmap` \
         (Amazon Linux: `shadow-utils`) and give the runner's user a range of that many in `/etc/subuid` and `/etc/subgid`"
    )]
    NoUsers,
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
