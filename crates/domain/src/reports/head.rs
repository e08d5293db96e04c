//! The newest audit record that runners of an install reported, for which the control plane gives a receipt.

use freehold_protocol::audit::{ChainHead, Receipt};
use freehold_protocol::{InstallId, KeyId, TenantName, Timestamp};
use serde::{Deserialize, Serialize};

/// An audit record that a runner reported as the last one in the customer's bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedHead {
    #[serde(flatten)]
    pub head: ChainHead,
    /// The key that signed the report.
    pub runner: KeyId,
    /// The time at which the reports queue took the report.
    pub received_at: Timestamp,
}

impl ReportedHead {
    /// Returns the head to keep: a record with a higher number than the known one, or else the known one. Reports may
    /// arrive late or twice, and another machine of the install may know less of the chain.
    #[must_use]
    pub fn newest(known: Option<Self>, reported: Option<Self>) -> Option<Self> {
        match (known, reported) {
            (Some(known), Some(reported)) if reported.head.seq <= known.head.seq => Some(known),
            (known, reported) => reported.or(known),
        }
    }

    /// Returns whether the other head has the same number with another digest: the chain in the customer's bucket was
    /// forked, or a runner's key was stolen.
    pub fn contradicts(&self, other: &Self) -> bool {
        self.head.seq == other.head.seq && self.head.digest != other.head.digest
    }

    /// Returns the receipt that confirms the record to the customer.
    pub fn receipt(&self, tenant: TenantName, install: InstallId, issued_at: Timestamp) -> Receipt {
        let Self { head, runner, received_at } = self.clone();
        Receipt { tenant, install, head, runner, received_at, issued_at }
    }
}

#[cfg(test)]
mod tests {
    use freehold_protocol::Digest;

    use super::*;

    fn head(seq: u64, text: &str) -> ReportedHead {
        ReportedHead {
            head: ChainHead { seq, digest: Digest::of(text.as_bytes()) },
            runner: serde_json::from_str("\"7300c0ae1429cd153252736a781b78f4\"").unwrap(),
            received_at: Timestamp::from_millis(seq),
        }
    }

    #[test]
    fn only_a_later_record_takes_the_place_of_the_known_one() {
        let known = || Some(head(4, "a"));

        assert_eq!(ReportedHead::newest(known(), Some(head(5, "b"))), Some(head(5, "b")));
        assert_eq!(ReportedHead::newest(known(), Some(head(3, "b"))), known());
        assert_eq!(ReportedHead::newest(known(), Some(head(4, "b"))), known());
        assert_eq!(ReportedHead::newest(known(), None), known());
        assert_eq!(ReportedHead::newest(None, known()), known());
    }

    #[test]
    fn one_number_with_two_contents_is_a_contradiction() {
        assert!(head(4, "a").contradicts(&head(4, "b")));
        assert!(!head(4, "a").contradicts(&head(4, "a")) && !head(4, "a").contradicts(&head(5, "b")));
    }
}
