//! Exponential backoff with full jitter, up to a cap.

use std::time::Duration;

use freehold_oci::full_jitter;

/// Counts consecutive failures, and computes the wait before each retry.
#[derive(Debug, Clone)]
pub struct Backoff {
    failures: u32,
    base: Duration,
    cap: Duration,
}

impl Backoff {
    /// Returns a counter. The first wait is at most `base`, and no wait is longer than `cap`.
    pub const fn new(base: Duration, cap: Duration) -> Self {
        Self { failures: 0, base, cap }
    }

    /// Resets the count of failures.
    pub const fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Counts a failure and returns how long to wait: a random time up to the current ceiling ([`full_jitter`]).
    pub fn failed(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        full_jitter(self.base.saturating_mul(2_u32.saturating_pow(self.failures - 1)).min(self.cap))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_the_cap_and_start_over_after_a_success() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));

        for failure in 0..100_u32 {
            let ceiling = Duration::from_millis(100).saturating_mul(1 << failure.min(10)).min(Duration::from_secs(5));
            assert!(backoff.failed() <= ceiling);
        }
        backoff.succeeded();

        assert!(backoff.failed() <= Duration::from_millis(100));
    }
}
