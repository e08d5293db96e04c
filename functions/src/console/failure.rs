//! Why the console shows a page of an error, or the page for signing in.

use freehold_app::{AppError, Kind};
use freehold_client::Error;

/// Why a request has no page of its own.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nobody is signed in, or the session has ended.
    SignedOut,
    /// The console itself refuses the request or fails.
    Own(AppError),
    /// The API refuses the request or does not answer.
    Api(Error),
}

impl Failure {
    /// Returns the kind, which chooses the status.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::SignedOut => Kind::Unauthorized,
            Self::Own(error) => error.kind,
            Self::Api(error) => error.kind(),
        }
    }

    /// Returns the message for the person.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::SignedOut => "nobody is signed in; sign in".to_owned(),
            Self::Own(error) => error.message.clone(),
            Self::Api(error) => error.to_string(),
        }
    }

    /// Returns the id of the request to the API, for whoever looks for it in the logs.
    pub(crate) fn request_id(&self) -> Option<&str> {
        match self {
            Self::SignedOut | Self::Own(_) => None,
            Self::Api(error) => error.request_id(),
        }
    }
}

impl From<AppError> for Failure {
    fn from(error: AppError) -> Self {
        Self::Own(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match &error {
            // The API does not take the token any more, although it has not expired: its issuer or client has changed.
            Error::TokenRefused { answer, .. } if answer.status == 401 => Self::SignedOut,
            _ => Self::Api(error),
        }
    }
}
