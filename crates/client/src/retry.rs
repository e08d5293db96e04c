//! The tries of a request: how many there are, and the pauses between them.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;

/// The maximum number of tries for one request.
pub const TRIES: u32 = 5;
/// The maximum wait for an earlier try of the same request. The API refuses another try for 16 seconds after the first
/// one, even if the function that performed it was stopped.
const PERFORMED: Duration = Duration::from_secs(60);

/// The pauses between tries: exponential backoff with full jitter. Each pause is a random part of a limit, or the whole
/// limit if the system provides no random bytes. The limit doubles after each pause.
#[derive(Debug)]
pub struct Backoff {
    limit: Duration,
    longest: Duration,
}

impl Backoff {
    /// Returns pauses whose limits begin at `first` and never exceed `longest`.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { limit: first, longest }
    }

    /// Returns the pauses between the tries of a request.
    pub const fn of_request() -> Self {
        Self::new(Duration::from_millis(200), Duration::from_secs(10))
    }

    /// Returns the limit of the next pause.
    pub const fn limit(&self) -> Duration {
        self.limit
    }

    /// Waits for a random part of the limit, and doubles the limit.
    pub async fn pause(&mut self) {
        let random = getrandom::u32().unwrap_or(u32::MAX);
        tokio::time::sleep(self.limit.mul_f64(f64::from(random) / f64::from(u32::MAX))).await;
        self.limit = self.limit.saturating_mul(2).min(self.longest);
    }
}

/// The tries of one request.
#[derive(Debug)]
pub(crate) struct Tries {
    left: u32,
    backoff: Backoff,
    /// The pauses while the API performs an earlier try.
    performed: Backoff,
    deadline: Instant,
}

impl Tries {
    pub(crate) fn new() -> Self {
        Self {
            left: TRIES,
            backoff: Backoff::of_request(),
            performed: Backoff::new(Duration::from_millis(500), Duration::from_secs(2)),
            deadline: Instant::now() + PERFORMED,
        }
    }

    /// Waits before the next try. Calls `is_waiting` before a pause in which the API performs an earlier try.
    ///
    /// # Errors
    /// Returns `error` when another try cannot help, or when there were enough.
    pub(crate) async fn pause_after(&mut self, error: Error, is_waiting: &mut impl FnMut()) -> Result<(), Error> {
        if error.is_being_performed() {
            if Instant::now() + self.performed.limit() >= self.deadline {
                return Err(error);
            }
            is_waiting();
            self.performed.pause().await;
            (self.left, self.backoff) = (TRIES, Backoff::of_request());
            return Ok(());
        }
        if self.left <= 1 || !error.may_succeed_later() {
            return Err(error);
        }
        self.left -= 1;
        self.backoff.pause().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, kind: &str, soon: bool) -> Error {
        let body = serde_json::json!({ "error": { "kind": kind, "message": "the reason", "soon": soon } });
        Error::of_answer(status, None, body.to_string().as_bytes())
    }

    fn busy() -> Error {
        answer(503, "transient", false)
    }

    fn being_performed() -> Error {
        answer(503, "transient", true)
    }

    /// Gives `answers` in turn to the tries of a request. Returns the result, the number of tries, and the time that
    /// they took.
    async fn tried(answers: Vec<Result<u8, Error>>) -> (Result<u8, Error>, u32, Duration) {
        let (began, mut tries) = (Instant::now(), Tries::new());
        for (count, answer) in (1_u32..).zip(answers) {
            match answer {
                Ok(value) => return (Ok(value), count, began.elapsed()),
                Err(error) => {
                    if let Err(error) = tries.pause_after(error, &mut || {}).await {
                        return (Err(error), count, began.elapsed());
                    }
                }
            }
        }
        panic!("more tries than answers");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_fails_for_now_is_sent_again_after_a_pause() {
        let (ended, tries, took) = tried(vec![Err(busy()), Err(busy()), Ok(7)]).await;

        assert_eq!((ended.unwrap(), tries), (7, 3));
        assert!(took <= Duration::from_millis(200 + 400), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_of_all_tries_gives_the_error_and_no_pause_follows_it() {
        let (ended, tries, took) = tried((0..9).map(|_| Err(busy())).collect()).await;

        assert_eq!((ended.unwrap_err().to_string().as_str(), tries), ("the reason", TRIES));
        assert!(took <= Duration::from_millis(200 + 400 + 800 + 1600), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_fails_for_good_is_sent_once() {
        for error in [answer(409, "conflict", true), answer(500, "internal", false), answer(400, "invalid", false)] {
            let (ended, tries, took) = tried(vec![Err(error), Ok(7)]).await;

            assert!(ended.is_err());
            assert_eq!((tries, took), (1, Duration::ZERO));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_being_performed_is_sent_again_for_a_minute() {
        let (began, mut tries, mut waits) = (Instant::now(), Tries::new(), 0);

        let ended = loop {
            if let Err(error) = tries.pause_after(being_performed(), &mut || waits += 1).await {
                break error;
            }
        };

        assert!(ended.is_being_performed() && waits > 20, "{ended} after {waits} waits");
        assert!((50..=60).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn the_tries_begin_anew_after_an_earlier_try_has_ended() {
        let first = (0..4).map(|_| Err(busy())).chain([Err(being_performed())]);
        let again = (0..4).map(|_| Err(busy())).chain([Ok(7)]);

        let (ended, tries, _) = tried(first.chain(again).collect()).await;

        assert_eq!((ended.unwrap(), tries), (7, 10));
    }
}
