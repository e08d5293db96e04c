//! Retries requests after transient errors, within a budget. A pause is random (full jitter), or as long as the
//! registry asks for.

use std::time::Duration;

use super::RegistryError;

/// The highest number of retries of one transfer, even when it makes progress.
const MAX_CUTS: u32 = 200;
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The limits of the waits and tries of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The idle time: the longest time without progress.
    pub idle: Duration,
    /// The commit time: the longest wait for a registry to store a blob after its last byte.
    pub commit: Duration,
    /// The highest number of tries of one request. Progress of a transfer resets the count.
    pub attempts: u32,
    /// The base of the random pauses. The first pause is at most twice this long. The upper bound doubles with each
    /// failure, up to 10 s.
    pub pause: Duration,
    /// The longest total time of all pauses of one request, including the waits that the registry asks for.
    pub pauses: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(30),
            commit: Duration::from_secs(300),
            attempts: 5,
            pause: Duration::from_millis(250),
            pauses: Duration::from_secs(120),
        }
    }
}

/// The retry budget of one request.
#[derive(Debug)]
pub(crate) struct Retries {
    policy: RetryPolicy,
    failures: u32,
    cuts: u32,
    left: Duration,
}

impl Retries {
    pub(crate) fn new(policy: RetryPolicy) -> Self {
        Self { policy, failures: 0, cuts: 0, left: policy.pauses }
    }

    /// Resets the budget, because the transfer made progress since the last failure.
    pub(crate) fn progressed(&mut self) {
        self.failures = 0;
        self.left = self.policy.pauses;
    }

    /// Pauses before the next try when `error` is transient and the budget allows another try.
    ///
    /// # Errors
    /// `error` itself when it is not transient or the budget is used up.
    pub(crate) async fn again(&mut self, error: RegistryError) -> Result<(), RegistryError> {
        if error.is_transient() { self.anyway(error).await } else { Err(error) }
    }

    /// Pauses before the next try, even when `error` is not transient, because the next request will be a different
    /// request.
    pub(crate) async fn anyway(&mut self, error: RegistryError) -> Result<(), RegistryError> {
        self.failures += 1;
        self.cuts += 1;
        let pause = match error.retry_after() {
            // The jitter spreads the retries of clients that got the same `Retry-After`.
            Some(asked) => asked.saturating_add(full_jitter(self.policy.pause)),
            None => full_jitter(self.bound()),
        };
        if self.failures >= self.policy.attempts || self.cuts >= MAX_CUTS || pause > self.left {
            return Err(error);
        }
        self.left = self.left.saturating_sub(pause);
        tracing::debug!(failures = self.failures, "Trying again after an error: {error}");
        tokio::time::sleep(pause).await;
        Ok(())
    }

    fn bound(&self) -> Duration {
        self.policy.pause.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE)
    }
}

/// Returns the result of `operation`. Retries it while its error is transient and the budget allows another try.
///
/// # Errors
/// The last error of `operation`.
pub(crate) async fn transient<T, F>(policy: RetryPolicy, operation: impl Fn() -> F) -> Result<T, RegistryError>
where
    F: Future<Output = Result<T, RegistryError>>,
{
    let mut retries = Retries::new(policy);
    loop {
        match operation().await {
            Ok(done) => return Ok(done),
            Err(error) => retries.again(error).await?,
        }
    }
}

/// Returns a random time between zero and `bound` ("full jitter": AWS Architecture Blog, "Exponential backoff and
/// jitter"), or `bound` when the system provides no random bytes.
pub fn full_jitter(bound: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    bound.mul_f64(f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn status(status: u16, retry_after: Option<u64>) -> RegistryError {
        let retry_after = retry_after.map(Duration::from_secs);
        RegistryError::Status { host: "h".into(), what: "w".into(), status, detail: String::new(), retry_after }
    }

    #[tokio::test(start_paused = true)]
    async fn a_transient_fault_is_tried_again_and_a_final_one_is_not() {
        let calls = Cell::new(0);

        let outcome = transient(RetryPolicy::default(), || async {
            calls.set(calls.get() + 1);
            if calls.get() < 3 { Err(status(503, None)) } else { Err::<(), _>(status(400, None)) }
        })
        .await;

        assert!(matches!(outcome, Err(RegistryError::Status { status: 400, .. })));
        assert_eq!(calls.get(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn trying_again_ends() {
        let calls = Cell::new(0);

        let outcome = transient(RetryPolicy::default(), || async {
            calls.set(calls.get() + 1);
            Err::<(), _>(status(429, None))
        })
        .await;

        assert!(outcome.is_err());
        assert_eq!(calls.get(), RetryPolicy::default().attempts);
    }

    #[tokio::test(start_paused = true)]
    async fn a_registry_is_given_the_time_that_it_asks_for_within_the_budget() {
        let started = tokio::time::Instant::now();
        let mut retries = Retries::new(RetryPolicy::default());

        retries.again(status(429, Some(50))).await.expect("again");
        let waited = started.elapsed();
        let second = retries.again(status(429, Some(50))).await;
        let third = retries.again(status(429, Some(50))).await;

        assert!(waited >= Duration::from_secs(50), "{waited:?}");
        assert!(second.is_ok() && third.is_err(), "three times 50 s are more than the budget of 120 s");
    }

    #[tokio::test(start_paused = true)]
    async fn a_transfer_that_makes_progress_is_tried_more_often_but_not_for_ever() {
        let mut retries = Retries::new(RetryPolicy::default());
        let mut tries = 0;

        while retries.again(status(503, None)).await.is_ok() {
            retries.progressed();
            tries += 1;
        }

        assert_eq!(tries, MAX_CUTS - 1);
    }
}
