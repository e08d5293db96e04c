//! Asks the questions of one check at the same time. A question without an answer in time is named in the reason, and
//! does not delay the other questions.

use std::time::Duration;

use freehold_protocol::order::health::{Health, HealthState};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use tokio::time::{Instant, timeout_at};

use crate::job::failure::Failure;

/// The number of questions that are asked at the same time.
const AT_ONCE: usize = 10;

/// One question of a check.
pub(super) struct Question<'a> {
    /// The name of the question, for the reason when there is no answer.
    name: String,
    /// The time limit of the answer, from the start of the check.
    limit: Duration,
    answer: BoxFuture<'a, Result<Health, Failure>>,
}

impl<'a> Question<'a> {
    /// Returns the question `name`. The future gives its answer, which counts until `limit` after the start of the
    /// check.
    pub(super) fn of(
        name: String,
        limit: Duration,
        answer: impl Future<Output = Result<Health, Failure>> + Send + 'a,
    ) -> Self {
        Self { name, limit, answer: Box::pin(answer) }
    }
}

/// Returns the answers in the order of the questions. The answer is unknown for a question whose limit, counted from
/// now, passes first.
///
/// # Errors
/// The failure of the first question that cannot be asked.
pub(super) async fn ask(questions: Vec<Question<'_>>) -> Result<Vec<Health>, Failure> {
    let began = Instant::now();
    let mut answers = Vec::new();
    for question in questions {
        answers.push(answered(question, began));
    }
    stream::iter(answers).buffered(AT_ONCE).try_collect().await
}

/// Returns the answer to a question, or an unknown health when there is no answer within its limit.
async fn answered(Question { name, limit, answer }: Question<'_>, began: Instant) -> Result<Health, Failure> {
    let Ok(answer) = timeout_at(began + limit, answer).await else {
        return Ok(Health::new(HealthState::Unknown, &format!("{name}: no answer within {} s", limit.as_secs())));
    };
    answer
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    fn well() -> Health {
        Health::new(HealthState::Healthy, "")
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_hangs_is_named_and_the_others_are_answered() {
        let mut questions: Vec<Question<'_>> =
            (0..30).map(|at| Question::of(format!("probe `{at}`"), LIMIT, async { Ok(well()) })).collect();
        questions[3] = Question::of("probe `slow`".to_owned(), LIMIT, std::future::pending());
        let began = Instant::now();

        let found = ask(questions).await.unwrap();

        assert_eq!(began.elapsed(), LIMIT);
        assert_eq!(found[3], Health::new(HealthState::Unknown, "probe `slow`: no answer within 30 s"));
        assert_eq!(found.iter().filter(|one| **one == well()).count(), 29);
    }

    #[tokio::test(start_paused = true)]
    async fn at_most_ten_are_asked_at_once_and_all_end_in_time() {
        let (open, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let asked = (0..40).map(|at| {
            let answer = async {
                most.fetch_max(open.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(10)).await;
                open.fetch_sub(1, Ordering::Relaxed);
                Ok(well())
            };
            Question::of(format!("probe `{at}`"), LIMIT, answer)
        });
        let began = Instant::now();

        let found = ask(asked.collect()).await.unwrap();

        assert_eq!((began.elapsed(), most.load(Ordering::Relaxed)), (LIMIT, 10));
        let late = found.iter().filter(|one| one.state == HealthState::Unknown).count();
        assert!(late >= 10, "{late} of 40");
    }

    #[tokio::test(start_paused = true)]
    async fn questions_that_wait_for_each_other_are_all_answered_when_their_limit_has_time_for_all() {
        let turn = tokio::sync::Mutex::new(());
        let asked = (0..8).map(|at| {
            let answer = async {
                let _turn = turn.lock().await;
                tokio::time::sleep(Duration::from_secs(10)).await;
                Ok(well())
            };
            Question::of(format!("probe `{at}`"), LIMIT + Duration::from_secs(80), answer)
        });

        let found = ask(asked.collect()).await.unwrap();

        assert_eq!(found, vec![well(); 8]);
    }
}
