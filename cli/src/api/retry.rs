//! Retries of HTTP requests to other servers, waiting for a resource that the API reports as ready soon, and polling.

use std::time::Duration;

use freehold_client::Backoff;
use tokio::time::Instant;

use crate::error::{Error, Result};
use crate::progress::Progress;

/// The maximum wait for a resource that will be ready soon.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// An error of one try, and whether another try can help.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The same request may succeed later.
    ForNow(Error),
    /// The same request would fail again.
    ForGood(Error),
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::ForNow(error) | Failed::ForGood(error) => error,
        }
    }
}

/// Sends a request with `send` until the request succeeds or fails for good. Makes at most `tries` tries, with a pause
/// after each failed try except the last. `send` must be idempotent.
pub(crate) async fn with_retries<T>(
    tries: u32,
    mut send: impl AsyncFnMut() -> std::result::Result<T, Failed>,
) -> Result<T> {
    let mut backoff = Backoff::of_request();
    for _ in 1..tries {
        match send().await {
            Err(Failed::ForNow(_)) => backoff.pause().await,
            ended => return Ok(ended?),
        }
    }
    Ok(send().await?)
}

/// Repeats `ask` while the API reports that the resource will be ready soon, for at most [`READY_LIMIT`]. `ask` must be
/// idempotent.
pub(crate) async fn until_ready<T>(progress: &Progress, mut ask: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + READY_LIMIT;
    let mut backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(2));
    loop {
        match ask().await {
            Err(error) if error.passes_soon() && Instant::now() + backoff.limit() < deadline => {
                progress.now(format!("waiting: {error}"));
                backoff.pause().await;
            }
            answer => return answer,
        }
    }
}

/// Repeats `ask` until `is_done` accepts its answer, at most `polls` times with pauses of `interval`. Returns the last
/// answer.
pub(crate) async fn poll_until<T>(
    (polls, interval): (u32, Duration),
    mut ask: impl AsyncFnMut() -> Result<T>,
    is_done: impl Fn(&T) -> bool,
) -> Result<T> {
    let mut answer = ask().await?;
    for _ in 1..polls {
        if is_done(&answer) {
            break;
        }
        tokio::time::sleep(interval).await;
        answer = ask().await?;
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn not_yet() -> Error {
        let body = br#"{"error":{"kind":"conflict","message":"queue is being made","soon":true}}"#;
        freehold_client::Error::of_answer(409, None, body).into()
    }

    /// Answers the tries in turn by `answers`. Returns the result, the number of tries and the time that they took.
    async fn tried(tries: u32, answers: Vec<std::result::Result<u8, Failed>>) -> (Result<u8>, usize, Duration) {
        let (began, count) = (Instant::now(), answers.len());
        let mut answers = answers.into_iter();

        let ended = with_retries(tries, async || answers.next().unwrap()).await;

        (ended, count - answers.len(), began.elapsed())
    }

    fn busy(try_number: u8) -> std::result::Result<u8, Failed> {
        Err(Failed::ForNow(Error::transient(format!("busy at try {try_number}"))))
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_fails_for_now_is_sent_again_after_a_pause() {
        let (ended, tries, took) = tried(5, vec![busy(1), busy(2), Ok(7)]).await;

        assert_eq!((ended, tries), (Ok(7), 3));
        assert!(took <= Duration::from_millis(200 + 400), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_of_all_tries_gives_the_error_and_no_pause_follows_it() {
        let (ended, tries, took) = tried(3, vec![busy(1), busy(2), busy(3), Ok(7)]).await;

        assert_eq!((ended, tries), (Err(Error::transient("busy at try 3")), 3));
        assert!(took <= Duration::from_millis(200 + 400), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_fails_for_good_is_sent_once() {
        let (ended, tries, took) = tried(5, vec![Err(Failed::ForGood(Error::denied("no"))), Ok(7)]).await;

        assert_eq!((ended, tries, took), (Err(Error::denied("no")), 1, Duration::ZERO));
    }

    /// Polls at most three times, every two seconds, until the answer is `wanted`. Each answer is its poll number.
    /// Returns the last answer, and the seconds that the polling took.
    async fn polled(wanted: u32) -> (Result<u32>, u64) {
        let (mut asked, began) = (0, Instant::now());

        let answer = poll_until(
            (3, Duration::from_secs(2)),
            async || {
                asked += 1;
                Ok(asked)
            },
            |answer: &u32| *answer == wanted,
        );

        (answer.await, began.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn polling_ends_with_the_wanted_answer_or_with_the_last_poll() {
        assert_eq!(polled(1).await, (Ok(1), 0));
        assert_eq!(polled(2).await, (Ok(2), 2));
        assert_eq!(polled(9).await, (Ok(3), 4));
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
