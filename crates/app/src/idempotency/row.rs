//! The row of an idempotency key: the body of its request, and the answer.

use freehold_protocol::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

/// The beginning of the sort keys of these rows. A row is in the partition of the thing that its request is about.
pub(crate) const REQUESTS_PREFIX: &str = "request#";

/// A request that came with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeyedRequest {
    /// The digest of the request's body.
    pub(super) body: Digest,
    /// The id of the HTTP request that wrote the row. Without it, two requests at the same time could write the same
    /// row, and a commit takes an equal row for its own earlier try.
    pub(super) by: String,
    /// The time of the last write.
    pub(super) at: Timestamp,
    /// The generation of the install that the request is about. Absent for a request about something else, and until a
    /// new install is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) generation: Option<u32>,
    pub(super) progress: Progress,
}

/// The progress of a request that came with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Progress {
    /// A function performs the request. It has ended by `until`, even if it was stopped.
    Performing { until: Timestamp },
    /// The last try failed, perhaps after its effect.
    Failed,
    /// The request was performed. Absent is an answer that is not kept.
    Performed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
    },
}
