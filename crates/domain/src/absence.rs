//! The errors for things that a tenant does not have. They are in this crate so that tests of the command can use their
//! texts.

use freehold_protocol::{AppName, InstallId};

/// A thing that a request names or needs, and that the tenant does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Absence {
    #[error("install `{0}` does not exist; `freehold install list` shows all installs")]
    Install(InstallId),
    #[error("app `{0}` does not exist; sync it with `freehold app sync DIR`")]
    App(AppName),
    #[error("tenant has no build runner yet; register one with `freehold tenant build-runner`")]
    BuildRunner,
}
