//! The sensitive outputs of deployed parts. The control plane has their names and keyed digests; the runner keeps the
//! values in the customer's account (decision 0067).

use std::collections::BTreeMap;

use freehold_protocol::Digest;
use freehold_protocol::report::Fence;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The sensitive outputs of one deployed part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensitiveOutputs {
    /// The attempt whose success was recorded. Only the values that this attempt stored are read.
    pub fence: Fence,
    /// The keyed digest of each output.
    pub digests: BTreeMap<String, Digest>,
}

impl SensitiveOutputs {
    /// Returns the sensitive outputs of an attempt; `None` when it has none.
    pub fn of(fence: Fence, digests: &BTreeMap<String, Digest>) -> Option<Self> {
        (!digests.is_empty()).then(|| Self { fence, digests: digests.clone() })
    }
}

/// Returns `outputs` with an entry for each sensitive output, so that a caller can look for an output and see whether
/// it changed. A sensitive output is represented by its keyed digest.
pub fn with_digests(outputs: &BTreeMap<String, Value>, digests: &BTreeMap<String, Digest>) -> BTreeMap<String, Value> {
    let sensitive = digests.iter().map(|(name, digest)| (name.clone(), json!({ "sensitive": digest })));
    outputs.clone().into_iter().chain(sensitive).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sensitive_output_counts_as_there_and_a_new_digest_as_a_change() {
        let plain = BTreeMap::from([("vpc".to_owned(), json!("a"))]);
        let digests = |text: &str| BTreeMap::from([("token".to_owned(), Digest::of(text.as_bytes()))]);

        let before = with_digests(&plain, &digests("1"));

        assert_eq!(before.keys().collect::<Vec<_>>(), ["token", "vpc"]);
        assert_eq!(before, with_digests(&plain, &digests("1")));
        assert_ne!(before, with_digests(&plain, &digests("2")));
        // A plain output with the text of the digest is another value.
        let text = BTreeMap::from([("token".to_owned(), json!(Digest::of(b"1")))]);
        assert_ne!(before["token"], text["token"]);
    }
}
