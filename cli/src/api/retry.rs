//! Backoff between retries, and waiting while the API answers that a resource will be ready soon.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::Result;
use crate::progress::Progress;

/// The maximum wait for a resource that will be ready soon.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// The pauses between tries: exponential backoff with full jitter. Each pause is a random part of a limit, and the
/// limit doubles after each pause.
#[derive(Debug)]
pub(crate) struct Backoff {
    limit: Duration,
    longest: Duration,
}

impl Backoff {
    /// Returns pauses whose limits begin at `first` and never exceed `longest`.
    pub(crate) const fn new(first: Duration, longest: Duration) -> Self {
        Self { limit: first, longest }
    }

    /// Returns the pauses between tries of one HTTP request.
    pub(crate) const fn of_request() -> Self {
        Self::new(Duration::from_millis(200), Duration::from_secs(10))
    }

    /// Waits for a random part of the limit, and doubles the limit.
    pub(crate) async fn pause(&mut self) {
        let millis = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
        let random = getrandom::u64().unwrap_or(millis);
        tokio::time::sleep(Duration::from_millis(random % millis.max(1))).await;
        self.limit = self.limit.saturating_mul(2).min(self.longest);
    }
}

/// Repeats `ask` while the API answers that the resource will be ready soon, for at most [`READY_LIMIT`]. `ask` must be
/// idempotent.
pub(crate) async fn until_ready<T>(progress: &Progress, mut ask: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + READY_LIMIT;
    let mut backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(2));
    loop {
        match ask().await {
            Err(error) if error.passes_soon() && Instant::now() + backoff.limit < deadline => {
                progress.now(format!("waiting: {error}"));
                backoff.pause().await;
            }
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, Kind};

    fn not_yet() -> Error {
        Error::from_api(409, br#"{"error":{"kind":"conflict","message":"queue is being made","soon":true}}"#)
    }

    #[tokio::test(start_paused = true)]
    async fn what_will_be_ready_soon_is_asked_for_again() {
        let (mut asked, progress) = (0, Progress::start());

        let answer = until_ready(&progress, async || {
            asked += 1;
            if asked < 5 { Err(not_yet()) } else { Ok(asked) }
        });

        assert_eq!(answer.await, Ok(5));
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_error_is_returned_after_a_minute() {
        let began = Instant::now();

        let error = until_ready(&Progress::start(), async || Err::<(), _>(not_yet())).await.unwrap_err();

        assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Conflict, "queue is being made"));
        assert!((50..=60).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn any_other_conflict_is_returned_at_once() {
        let began = Instant::now();

        let error = until_ready(&Progress::start(), async || Err::<(), _>(Error::conflict("install is busy"))).await;

        assert_eq!(error, Err(Error::conflict("install is busy")));
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
