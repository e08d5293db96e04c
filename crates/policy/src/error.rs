//! The reasons why a policy cannot be read or evaluated.

use crate::PACKAGES;

/// The engine's error when a comprehension defines a variable again. OPA permits that.
const SHADOWED: &str = "used before definition below";

/// The reason why a policy cannot be read or evaluated. The change that the policy guards must then not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The text is not Rego, or calls a function that does not exist.
    #[error("{file}:{line}:{column}: {message}")]
    Wrong { file: String, line: u32, column: u32, message: String },
    /// The text cannot be used, for a reason that has no position in the text.
    #[error("{file}: {message}")]
    Unusable { file: String, message: String },
    /// The policy is in a package that is never evaluated.
    #[error("{file}: the policy is in package `{package}`; write `package {}`", PACKAGES[0])]
    OtherPackage { file: String, package: String },
    /// The policy was stopped.
    #[error("{file}: the policy took longer than {secs} s, and was stopped; look for nested iterations in its rules")]
    TooSlow { file: String, secs: u64 },
    /// The process ended without a result for the policy.
    #[error("{file}: the policy needed more than {mib} MiB of memory, or crashed ({how})")]
    Crashed { file: String, mib: u64, how: String },
    /// The process for policies cannot be started.
    #[error("cannot evaluate policies: {0}")]
    NotStarted(String),
}

impl PolicyError {
    /// Returns the error of the engine. Its texts have the form `--> FILE:LINE:COLUMN ... error: MESSAGE`.
    pub(crate) fn of_engine(file: &str, text: &str) -> Self {
        let message = text.rsplit_once("error: ").map_or(text, |(_, message)| message);
        let mut message = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        if message.ends_with(SHADOWED) {
            message.push_str("; give the variable of the comprehension a name that its rule does not use");
        }
        let place = text.lines().find_map(|line| line.trim().strip_prefix("--> "));
        let numbers = place.and_then(|place| {
            let (rest, column) = place.trim().rsplit_once(':')?;
            let (_, line) = rest.rsplit_once(':')?;
            Some((line.parse().ok()?, column.parse().ok()?))
        });
        let file = file.to_owned();
        match numbers {
            Some((line, column)) => Self::Wrong { file, line, column, message },
            None => Self::Unusable { file, message },
        }
    }

    /// Returns the line and the column of the mistake, both from 1, and its description.
    pub fn place(&self) -> Option<(u32, u32, &str)> {
        match self {
            Self::Wrong { line, column, message, .. } => Some((*line, *column, message)),
            Self::Unusable { .. }
            | Self::OtherPackage { .. }
            | Self::TooSlow { .. }
            | Self::Crashed { .. }
            | Self::NotStarted(_) => None,
        }
    }
}
