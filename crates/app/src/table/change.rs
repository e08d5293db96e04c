//! The retry loop for all rows that have several writers: it loads, decides and commits, and repeats this after a
//! conflict.

use std::fmt::Display;

use crate::ports::{Committed, Store, Write};
use crate::{AppError, Kind};

/// The maximum number of tries of a change. All required checks of a component may be reported at the same moment, and
/// the reports write the same row: the last one then loses to each of the nine others, and perhaps to a sweep.
pub const TRIES: u32 = 14;

/// The decision after one read of the rows.
#[derive(Debug)]
#[must_use]
pub enum Decided<T> {
    /// Nothing is written; the value is the result.
    Keep(T),
    /// These writes are committed; the value is the result once they are done.
    Commit(Vec<Write>, T),
}

/// Calls `decide`, which loads rows and makes a decision, and commits the decision. A conflict means that another
/// writer changed one of the rows; `decide` is then called again, [`TRIES`] times in total. `noun` and `id` name the
/// row in the error.
///
/// There is no pause between two tries: a conflict means that another writer made progress. After the last try, the
/// caller (a queue, a state machine or a client) retries with a backoff.
///
/// # Errors
/// The errors of `decide` and of the store, or Transient after the last try.
pub async fn change<T, F>(
    store: &dyn Store,
    (noun, id): (&'static str, &(impl Display + Sync)),
    decide: impl Fn() -> F + Send,
) -> Result<T, AppError>
where
    F: Future<Output = Result<Decided<T>, AppError>> + Send,
{
    for _ in 0..TRIES {
        match decide().await? {
            Decided::Keep(answer) => return Ok(answer),
            Decided::Commit(writes, answer) => {
                if store.commit(writes).await? == Committed::Done {
                    return Ok(answer);
                }
            }
        }
    }
    Err(contended(noun, id))
}

/// Returns the error of a change that lost against other writers.
pub(crate) fn contended(noun: &str, id: impl Display) -> AppError {
    AppError::new(Kind::Transient, format!("{noun} `{id}` is being changed by other requests; try again"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;
    use freehold_protocol::order::health::MAX_REQUIRED_CHECKS;

    use super::*;
    use crate::ports::{Key, PortError, Row};

    /// A table in which another writer wins the first commits.
    struct Contended {
        lost: u32,
        commits: AtomicU32,
    }

    #[async_trait]
    impl Store for Contended {
        async fn get(&self, _: &Key) -> Result<Option<Row>, PortError> {
            Ok(None)
        }

        async fn query(&self, _: &str, _: &str, _: Option<&str>, _: u32) -> Result<Vec<Row>, PortError> {
            Ok(Vec::new())
        }

        async fn commit(&self, _: Vec<Write>) -> Result<Committed, PortError> {
            let key = Key { pk: "a".into(), sk: "b".into() };
            let lost = self.commits.fetch_add(1, Ordering::Relaxed) < self.lost;
            Ok(if lost { Committed::Conflict(key) } else { Committed::Done })
        }
    }

    async fn changed(lost: u32) -> (Result<u32, AppError>, u32) {
        let store = Contended { lost, commits: AtomicU32::new(0) };
        let looks = AtomicU32::new(0);
        let look = || async { Ok(Decided::Commit(Vec::new(), looks.fetch_add(1, Ordering::Relaxed) + 1)) };
        let answer = change(&store, ("install", &"globex"), look).await;
        (answer, store.commits.into_inner())
    }

    #[tokio::test]
    async fn a_lost_race_is_decided_again() {
        let (answer, commits) = changed(2).await;

        assert_eq!(answer.unwrap(), 3);
        assert_eq!(commits, 3);
    }

    #[tokio::test]
    async fn the_last_report_of_all_checks_of_a_component_at_the_same_moment_is_stored() {
        let checks = u32::try_from(MAX_REQUIRED_CHECKS).unwrap();

        let (answer, commits) = changed(checks - 1).await;

        assert_eq!((answer.unwrap(), commits), (checks, checks));
    }

    #[tokio::test]
    async fn a_row_that_others_keep_changing_is_given_up() {
        let (answer, commits) = changed(u32::MAX).await;

        let error = answer.unwrap_err();
        assert!(error.is_transient());
        assert_eq!(error.message, "install `globex` is being changed by other requests; try again");
        assert_eq!(commits, TRIES);
    }

    #[tokio::test]
    async fn nothing_is_committed_when_nothing_changes() {
        let store = Contended { lost: 0, commits: AtomicU32::new(0) };

        let answer = change(&store, ("install", &"globex"), || async { Ok(Decided::Keep("as it was")) }).await;

        assert_eq!(answer.unwrap(), "as it was");
        assert_eq!(store.commits.into_inner(), 0);
    }
}
