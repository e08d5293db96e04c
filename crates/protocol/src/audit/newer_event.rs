//! Events of audit records that only a newer version can read.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The maximum number of characters of a kind in messages.
const SHORT: usize = 40;

/// An event with a kind or a value that this version does not know. Its record is a link of the chain like any other
/// record: the signature and the digests cover the bytes as they were written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewerEvent {
    /// The kind, which this version may know with other values.
    pub event: String,
    /// All other fields.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl NewerEvent {
    /// Returns the kind for messages, with at most 40 characters.
    pub fn kind(&self) -> String {
        self.event.chars().take(SHORT).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::AuditEvent;
    use super::*;
    use crate::Digest;

    fn read(event: &Value) -> AuditEvent {
        serde_json::from_value(event.clone()).unwrap()
    }

    #[test]
    fn an_event_of_an_unknown_kind_or_with_an_unknown_value_is_of_a_newer_version_and_written_again_as_it_was() {
        let job = "job_00000000000000000001";
        let (fence, of) = (json!({ "dispatch": 1, "receive": 1 }), Digest::of(b"message"));
        for event in [
            json!({ "event": "resumed", "job": job, "times": u64::MAX, "parts": [{ "name": null }] }),
            json!({ "event": "resumed" }),
            json!({ "event": "cancelled", "job": job, "dispatch": 1, "asked_by": { "by": "vote" }, "message": of }),
            json!({ "event": "ended", "job": job, "fence": fence, "result": { "word": "succeeded" } }),
        ] {
            let found = read(&event);

            assert!(matches!(&found, AuditEvent::Newer(newer) if newer.event == event["event"]), "{found:?}");
            assert_eq!(serde_json::to_value(&found).unwrap(), event);
        }
    }

    #[test]
    fn a_known_event_with_a_field_of_a_newer_version_is_read_as_if_the_field_were_not_there() {
        let found = read(&json!({ "event": "joined", "host": "i-1", "version": "9.0.0", "zone": { "name": "a" } }));

        assert_eq!(found, AuditEvent::Joined { host: "i-1".into(), version: "9.0.0".into() });
    }

    #[test]
    fn what_does_not_name_its_kind_once_is_not_an_event() {
        for text in ["{}", "[]", "\"joined\"", r#"{"event":7}"#, r#"{"event":"sent","event":"resumed"}"#] {
            let refused = serde_json::from_str::<AuditEvent>(text).unwrap_err().to_string();
            assert!(refused.starts_with("the event of an audit record is an object"), "{text}: {refused}");
        }
    }

    #[test]
    fn a_long_kind_is_cut_in_messages() {
        let event = NewerEvent { event: "ä".repeat(100), fields: Map::new() };

        assert_eq!(event.kind(), "ä".repeat(40));
    }
}
