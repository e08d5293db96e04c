//! Restarts a loop that makes no progress for too long, ends, or panics.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tracing::error;

/// The counter by which a loop shows its progress.
#[derive(Debug, Clone, Default)]
pub struct Beat(Arc<AtomicU64>);

impl Beat {
    /// Shows that the loop makes progress.
    pub fn alive(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs the loop that `start` creates. Restarts it when it does not call [`Beat::alive`] for `limit`, panics, or ends
/// before `done` returns true.
pub async fn supervise<F>(name: &'static str, limit: Duration, done: impl Fn() -> bool, start: impl Fn(Beat) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        let beat = Beat::default();
        // Dropping the set aborts the loop in it.
        let mut task = JoinSet::new();
        task.spawn(start(beat.clone()));
        let mut seen = beat.count();
        let why = loop {
            match tokio::time::timeout(limit, task.join_next()).await {
                Ok(Some(Err(error))) => break format!("panicked: {error}"),
                Ok(_) if done() => return,
                Ok(_) => break "ended".to_owned(),
                Err(_) if beat.count() == seen => break format!("was stuck for {} s", limit.as_secs()),
                Err(_) => seen = beat.count(),
            }
        };
        error!("The `{name}` loop {why}; starting it again");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stuck_loop_a_panicking_one_and_one_that_ends_are_started_again() {
        let starts = Arc::new(AtomicU64::new(0));
        let (counted, finished) = (starts.clone(), starts.clone());

        supervise(
            "test",
            Duration::from_secs(90),
            move || finished.load(Ordering::Relaxed) == 4,
            move |beat| {
                let start = counted.fetch_add(1, Ordering::Relaxed);
                async move {
                    match start {
                        0 => std::future::pending::<()>().await,
                        1 => panic!("on purpose"),
                        2 => {}
                        _ => {
                            for _ in 0..10 {
                                beat.alive();
                                tokio::time::sleep(Duration::from_secs(60)).await;
                            }
                        }
                    }
                }
            },
        )
        .await;

        assert_eq!(starts.load(Ordering::Relaxed), 4);
    }
}
