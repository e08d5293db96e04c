//! The error responses of the API.

use serde::{Deserialize, Serialize};

/// The body of every error response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorBody {
    pub error: ErrorDetail,
}

/// The kind and the message of an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorDetail {
    pub kind: ErrorKind,
    /// A message for people that names the cause and the solution.
    pub message: String,
    /// Whether the cause is usually gone within about a minute. The client may then repeat the request with the same
    /// key.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub soon: bool,
}

/// The kind of an error. Each kind has one HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// 400: the request is wrong. The same request will fail again.
    Invalid,
    /// 401: the caller is not authenticated: a call of a webhook has no signature that the tenant knows, or no
    /// authorizer has authenticated the request.
    Unauthorized,
    /// 403: the caller is authenticated and may not do this: the policies do not permit it, or the caller is not a
    /// member.
    Forbidden,
    /// 404: the requested thing does not exist.
    NotFound,
    /// 409: the current state of the resource does not allow the request.
    Conflict,
    /// 503: the same request may succeed later.
    Transient,
    /// 500: a defect of Freehold.
    Internal,
}

impl ErrorKind {
    /// Every kind, in the order of their statuses.
    pub const ALL: [Self; 7] = [
        Self::Invalid,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::Conflict,
        Self::Internal,
        Self::Transient,
    ];

    /// Returns the HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            Self::Invalid => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::Transient => 503,
            Self::Internal => 500,
        }
    }
}
