//! The error type of all use cases: a public kind and a message.

use std::error::Error;

use freehold_domain::absence::Absence;
use freehold_domain::contract::ConsentError;
use freehold_domain::install::InstallError;
use freehold_domain::install::follows::OtherRelease;
use freehold_domain::plan::PlanError;
use freehold_domain::plan::teardown::TeardownError;
use freehold_domain::runbook::{RunInputsError, RunbookError};
use freehold_domain::toggles::ToggleError;
use freehold_domain::workflow::ContinuationError;
use freehold_protocol::api::ErrorKind;

use crate::ports::PortError;

/// The kind of an error; it chooses the HTTP status, the retry and the log level.
pub type Kind = ErrorKind;

/// The reason why a use case failed or refused a request.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct AppError {
    pub kind: Kind,
    pub message: String,
    /// Whether the cause is usually gone within about a minute, so that a client may wait and retry.
    pub soon: bool,
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl AppError {
    /// Returns an error of `kind` without a cause.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), soon: false, source: None }
    }

    /// Returns an error for a request that is invalid in every state of the tenant.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, message)
    }

    /// Returns an error for a request that the caller may not make.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(Kind::Forbidden, message)
    }

    /// Returns an error for a thing that does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, message)
    }

    /// Returns an error for a request that the current state does not allow.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(Kind::Conflict, message)
    }

    /// Returns an error for a request that the current state does not allow yet, because something will be ready within
    /// about a minute.
    pub fn not_yet(message: impl Into<String>) -> Self {
        Self { soon: true, ..Self::conflict(message) }
    }

    /// Returns an error for a defect of the control plane.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, message)
    }

    /// Returns the error of a read after a change. A refusal of the read becomes transient, because it does not mean that
    /// nothing was changed: the idempotency key stays with its request, which is performed again.
    #[must_use]
    pub fn after_change(self) -> Self {
        match self.kind {
            Kind::Transient | Kind::Internal => self,
            Kind::Invalid | Kind::Unauthorized | Kind::Forbidden | Kind::NotFound | Kind::Conflict => {
                let message = format!("the change was made, but its result cannot be read: {}", self.message);
                Self { kind: Kind::Transient, message, soon: false, source: self.source }
            }
        }
    }

    /// Returns whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self.kind, Kind::Transient)
    }

    /// Returns the message of a refusal: the request is wrong, or the current state does not permit it. The same call
    /// is refused again until somebody changes the request or the state.
    ///
    /// # Errors
    /// The error itself if it is not a refusal.
    pub fn refusal(self) -> Result<String, Self> {
        match self.kind {
            Kind::Invalid | Kind::NotFound | Kind::Conflict => Ok(self.message),
            Kind::Unauthorized | Kind::Forbidden | Kind::Transient | Kind::Internal => Err(self),
        }
    }
}

impl From<PortError> for AppError {
    fn from(error: PortError) -> Self {
        let (kind, message) = match &error {
            PortError::Transient { what, .. } => (Kind::Transient, format!("{what} did not answer; try again")),
            PortError::Denied { what, .. } => (Kind::Internal, format!("AWS denies this function access to {what}")),
            PortError::Failed { what, .. } => (Kind::Internal, format!("{what} failed")),
        };
        Self { kind, message, soon: false, source: Some(Box::new(error)) }
    }
}

impl From<PlanError> for AppError {
    fn from(error: PlanError) -> Self {
        let kind = match error {
            PlanError::Removal(error) => return error.into(),
            PlanError::NotBuilt { .. }
            | PlanError::StepNotBuilt { .. }
            | PlanError::SandboxLacks(_)
            | PlanError::Off(_)
            | PlanError::NeedsOff(_)
            | PlanError::StillNeeded { .. } => Kind::Conflict,
            PlanError::UnknownComponent { .. } | PlanError::UnknownAction { .. } | PlanError::UnknownRole(_) => {
                Kind::NotFound
            }
            PlanError::NotDeployable { .. } | PlanError::RoleNotAgreed(_) | PlanError::Unwritable(_) => Kind::Invalid,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<Absence> for AppError {
    fn from(error: Absence) -> Self {
        let kind = match &error {
            Absence::Install(_)
            | Absence::App(_)
            | Absence::Version { .. }
            | Absence::Release { .. }
            | Absence::Channel { .. }
            | Absence::Webhook(_)
            | Absence::Run(_)
            | Absence::Action { .. } => Kind::NotFound,
            Absence::BuildRunner => Kind::Conflict,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<RunbookError> for AppError {
    fn from(error: RunbookError) -> Self {
        let kind = match &error {
            RunbookError::Unknown { .. } => Kind::NotFound,
            RunbookError::Empty(_)
            | RunbookError::Inputs(_)
            | RunbookError::LongRunbook { .. }
            | RunbookError::LargeRun { .. } => Kind::Invalid,
            RunbookError::Open(_) | RunbookError::Succeeded(_) | RunbookError::ResumedTooOften { .. } => Kind::Conflict,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<RunInputsError> for AppError {
    fn from(error: RunInputsError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<ConsentError> for AppError {
    fn from(error: ConsentError) -> Self {
        Self::conflict(error.to_string())
    }
}

impl From<OtherRelease> for AppError {
    fn from(error: OtherRelease) -> Self {
        Self::conflict(error.to_string())
    }
}

impl From<TeardownError> for AppError {
    fn from(error: TeardownError) -> Self {
        let kind = match &error {
            TeardownError::Absent(_) | TeardownError::InUse(_) => Kind::Conflict,
            TeardownError::UnknownRole(_) => Kind::NotFound,
            TeardownError::Unwritable(_) => Kind::Internal,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<ToggleError> for AppError {
    fn from(error: ToggleError) -> Self {
        let kind = match &error {
            ToggleError::Unknown { .. } => Kind::NotFound,
            ToggleError::Fixed(_) | ToggleError::Needed(_) => Kind::Invalid,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<freehold_domain::inputs::InputsError> for AppError {
    fn from(error: freehold_domain::inputs::InputsError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<freehold_domain::workflow::GraphError> for AppError {
    fn from(error: freehold_domain::workflow::GraphError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<InstallError> for AppError {
    fn from(error: InstallError) -> Self {
        let kind = match &error {
            InstallError::NoApp(_) => Kind::Invalid,
            _ => Kind::Conflict,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<ContinuationError> for AppError {
    fn from(error: ContinuationError) -> Self {
        let kind = if matches!(error, ContinuationError::NoNode { .. }) { Kind::NotFound } else { Kind::Conflict };
        Self::new(kind, error.to_string())
    }
}

impl From<serde_json::Error> for AppError {
    fn from(error: serde_json::Error) -> Self {
        Self {
            kind: Kind::Internal,
            message: "a record in the table cannot be read".into(),
            soon: false,
            source: Some(Box::new(error)),
        }
    }
}

impl From<freehold_protocol::EnvelopeError> for AppError {
    fn from(error: freehold_protocol::EnvelopeError) -> Self {
        Self {
            kind: Kind::Internal,
            message: "a message cannot be signed".into(),
            soon: false,
            source: Some(Box::new(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_what_the_same_call_would_meet_again() {
        let refused = |kind: &Kind| AppError::new(*kind, "install `globex` is gone").refusal().is_ok();

        let refusals: Vec<Kind> = Kind::ALL.into_iter().filter(refused).collect();

        assert_eq!(refusals, [Kind::Invalid, Kind::NotFound, Kind::Conflict]);
        assert_eq!(AppError::conflict("install `globex` is gone").refusal().unwrap(), "install `globex` is gone");
    }
}
