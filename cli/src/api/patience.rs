//! Waiting for what the API says will be there in a moment.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::Result;
use crate::progress::Progress;

/// How long a person waits for it before they are told.
const LONGEST: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Asks until the answer is no longer that something is still being made; for a minute at most. What is asked must be
/// repeatable.
pub(crate) async fn patiently<T>(progress: &Progress, mut ask: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + LONGEST;
    let mut pause = FIRST_PAUSE;
    loop {
        match ask().await {
            Err(error) if error.passes_soon() && Instant::now() + pause < deadline => {
                progress.now(format!("waiting: {error}"));
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
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
    async fn what_is_being_made_is_waited_for() {
        let (mut asked, progress) = (0, Progress::start());

        let answer = patiently(&progress, async || {
            asked += 1;
            if asked < 5 { Err(not_yet()) } else { Ok(asked) }
        });

        assert_eq!(answer.await, Ok(5));
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_come_within_a_minute_is_told() {
        let began = Instant::now();

        let error = patiently(&Progress::start(), async || Err::<(), _>(not_yet())).await.unwrap_err();

        assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Conflict, "queue is being made"));
        assert!((50..=60).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn any_other_conflict_is_told_at_once() {
        let began = Instant::now();

        let error = patiently(&Progress::start(), async || Err::<(), _>(Error::conflict("install is busy"))).await;

        assert_eq!(error, Err(Error::conflict("install is busy")));
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
