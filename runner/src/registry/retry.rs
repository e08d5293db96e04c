//! Tries again after a transient fault, with full jitter.

use std::time::Duration;

use super::RegistryError;

/// How often one request is made at most.
const ATTEMPTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Returns what `operation` returns, after trying again while its error is transient and attempts are left.
///
/// # Errors
/// The last error of `operation`.
pub(super) async fn transient<T, F>(operation: impl Fn() -> F) -> Result<T, RegistryError>
where
    F: Future<Output = Result<T, RegistryError>>,
{
    let mut attempt = 1;
    loop {
        match operation().await {
            Err(error) if error.is_transient() && attempt < ATTEMPTS => {
                tracing::debug!(attempt, "Retries after: {error}");
                tokio::time::sleep(pause(attempt)).await;
                attempt += 1;
            }
            ended => return ended,
        }
    }
}

/// Returns a time between zero and the exponential bound ("full jitter", AWS Architecture Blog).
fn pause(attempt: u32) -> Duration {
    let bound = FIRST_PAUSE.saturating_mul(1 << attempt.min(10)).min(LONGEST_PAUSE);
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    bound.mul_f64(f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn status(status: u16) -> RegistryError {
        RegistryError::Status { host: "h".into(), what: "w".into(), status, detail: String::new() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_transient_fault_is_tried_again_and_a_final_one_is_not() {
        let calls = Cell::new(0);

        let outcome = transient(|| async {
            calls.set(calls.get() + 1);
            if calls.get() < 3 { Err(status(503)) } else { Err::<(), _>(status(400)) }
        })
        .await;

        assert!(matches!(outcome, Err(RegistryError::Status { status: 400, .. })));
        assert_eq!(calls.get(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn trying_again_ends() {
        let calls = Cell::new(0);

        let outcome = transient(|| async {
            calls.set(calls.get() + 1);
            Err::<(), _>(status(429))
        })
        .await;

        assert!(outcome.is_err());
        assert_eq!(calls.get(), ATTEMPTS);
    }
}
