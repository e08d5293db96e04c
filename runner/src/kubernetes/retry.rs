//! Decides whether a call to the API server of a cluster is made again, and when.

use std::time::Duration;

use super::error::ClusterError;
use crate::backoff::Backoff;

/// The maximum number of retries of one call. With the waits below, they take 7.5 seconds on average. This is long enough
/// for the restart of a control plane.
const RETRIES: u32 = 4;
/// The maximum of the first wait. It doubles with each wait.
const FIRST: Duration = Duration::from_secs(1);
/// The maximum of every wait.
const LONGEST: Duration = Duration::from_secs(8);

/// The retries that one call still has.
#[derive(Debug)]
pub(super) struct Retries {
    left: u32,
    backoff: Backoff,
}

impl Retries {
    pub(super) const fn new() -> Self {
        Self { left: RETRIES, backoff: Backoff::new(FIRST, LONGEST) }
    }

    /// Returns how long to wait before the call is made again, or `None` when its error is final.
    pub(super) fn wait_after(&mut self, error: &ClusterError) -> Option<Duration> {
        let is_unavailable =
            matches!(error, ClusterError::Silent { .. } | ClusterError::Refused { status: 429 | 503, .. });
        self.left = self.left.checked_sub(1).filter(|_| is_unavailable)?;
        Some(self.backoff.failed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16) -> ClusterError {
        let (what, message) = ("to read Pod `api`".to_owned(), "no".to_owned());
        ClusterError::Refused { cluster: "main".to_owned(), what, status, message, owners: Vec::new() }
    }

    #[test]
    fn an_api_server_that_stays_unavailable_is_asked_five_times_within_fifteen_seconds() {
        let (endpoint, why) = ("https://main.example".to_owned(), "connection refused".to_owned());
        let silent = ClusterError::Silent { cluster: "main".to_owned(), endpoint, why };
        let mut retries = Retries::new();

        let waits: Vec<_> =
            [silent, refused(503), refused(429), refused(503)].iter().map_while(|e| retries.wait_after(e)).collect();

        assert_eq!(waits.len(), 4);
        for (wait, longest) in waits.into_iter().zip([1, 2, 4, 8]) {
            assert!(wait <= Duration::from_secs(longest), "{wait:?}");
        }
        assert_eq!(retries.wait_after(&refused(503)), None);
    }

    #[test]
    fn any_other_refusal_is_final() {
        let mut retries = Retries::new();

        assert_eq!(retries.wait_after(&refused(409)), None);
        assert_eq!(retries.wait_after(&refused(500)), None);
    }
}
