//! The errors that the API answers.

use serde::{Deserialize, Serialize};

/// The one shape of every error answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorBody {
    pub error: ErrorDetail,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorDetail {
    pub kind: ErrorKind,
    /// A sentence that names the thing and the way out.
    pub message: String,
    /// Whether the cause passes without help within about a minute: send the request again with the same key.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub soon: bool,
}

/// The public kinds of errors; each has one HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// 400: the request itself is wrong; the same request fails again.
    Invalid,
    /// 404.
    NotFound,
    /// 409: the current state of the resource does not allow it.
    Conflict,
    /// 503: a later try may succeed.
    Transient,
    /// 500: a defect of Freehold.
    Internal,
}

impl ErrorKind {
    /// Every kind, in the order of their statuses.
    pub const ALL: [Self; 5] = [Self::Invalid, Self::NotFound, Self::Conflict, Self::Internal, Self::Transient];

    /// Returns the HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            Self::Invalid => 400,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::Transient => 503,
            Self::Internal => 500,
        }
    }
}
