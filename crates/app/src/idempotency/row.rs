//! The row of an idempotency key: the body of its request, and the answer.

use freehold_protocol::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

/// The beginning of the sort keys of these rows. A row is in the partition of the thing that its request is about.
pub(crate) const REQUESTS_PREFIX: &str = "request#";

/// A request that came with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeyedRequest {
    /// The digest of the request's body without the ciphertexts of its sealed values.
    pub(super) body: Digest,
    /// The digest of the body with the ciphertexts; absent for a body without sealed values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sealed: Option<Digest>,
    /// The principal that sent the request. Empty in a row of an earlier version.
    #[serde(default)]
    pub(super) caller: String,
    /// The id of the HTTP request that wrote the row. Without it, two requests at the same time could write the same
    /// row, and a commit takes an equal row for its own earlier try.
    pub(super) by: String,
    /// The time of the last write.
    pub(super) at: Timestamp,
    /// The generation of the install that the request is about. Absent for a request about something else, and until a
    /// new install is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) generation: Option<u32>,
    pub(super) progress: RequestProgress,
}

impl KeyedRequest {
    /// Returns whether `caller` may have sent the request.
    pub(super) fn is_from(&self, caller: &str) -> bool {
        self.caller.is_empty() || self.caller == caller
    }
}

/// The progress of a request that came with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RequestProgress {
    /// A function performs the request. It has ended by `until`, even if it was stopped.
    Performing { until: Timestamp },
    /// The last try failed, perhaps after its effect.
    Failed,
    /// The request was performed. `answer` is absent if the answer is not kept.
    Performed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_and_written_as_in_the_golden_rows() {
        let rows: Vec<serde_json::Value> = serde_json::from_str(include_str!("../../golden/rows.json")).unwrap();
        let rows: Vec<_> = rows.iter().filter(|row| row["type"] == "KeyedRequest").collect();

        assert_eq!(rows.len(), 3);
        for row in rows {
            let request: KeyedRequest = serde_json::from_value(row["body"].clone()).unwrap();

            assert!(row["sk"].as_str().is_some_and(|name| name.starts_with(REQUESTS_PREFIX)));
            assert_eq!(serde_json::to_value(request).unwrap(), row["body"]);
        }
    }

    #[test]
    fn a_row_of_an_earlier_version_is_from_any_caller() {
        let mut row = serde_json::json!({
            "body": Digest::of(b"{}"), "caller": "ann", "by": "request-1", "at": 1_795_250_000_000_u64,
            "progress": "failed",
        });
        let request: KeyedRequest = serde_json::from_value(row.clone()).unwrap();
        row.as_object_mut().unwrap().remove("caller");
        let earlier: KeyedRequest = serde_json::from_value(row).unwrap();

        assert!(request.is_from("ann") && !request.is_from("ben"));
        assert!(earlier.is_from("ann") && earlier.is_from("ben"));
    }
}
