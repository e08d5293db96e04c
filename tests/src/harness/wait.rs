//! Waits for a condition with a deadline, instead of sleeping.

use std::time::Duration;

use anyhow::bail;
use tokio::time::Instant;

/// How long to wait for anything that happens without a person, in tests that are not about waiting. It costs nothing when
/// the thing happens, so it is long enough for a slow and busy machine.
pub const SOON: Duration = Duration::from_secs(180);

/// The shortest and the longest pause between two looks.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];
/// A pause grows by the length of the look before it for each such time that has passed.
const GROWTH: Duration = Duration::from_secs(2);

/// Returns what `look` finds, as soon as it finds something. A pause is at first as long as the look before it and then
/// grows with the wait, so that looks which start programs leave the processor to what they wait for. Looks that take no
/// time do not become rarer.
///
/// # Errors
/// What `look` fails with, or that `what` did not come about within `limit`.
pub async fn until<T, F>(what: &str, limit: Duration, mut look: impl FnMut() -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<Option<T>>>,
{
    let begun = Instant::now();
    let [shortest, longest] = PAUSES;
    loop {
        let look_begun = Instant::now();
        if let Some(found) = look().await? {
            return Ok(found);
        }
        let waited = begun.elapsed();
        if waited >= limit {
            bail!("{what}: not within {} s", limit.as_secs());
        }
        let growth = 1.0 + waited.as_secs_f64() / GROWTH.as_secs_f64();
        tokio::time::sleep(look_begun.elapsed().mul_f64(growth).clamp(shortest, longest)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits for a minute with looks of this length, and returns how many there were.
    async fn looks_in_a_minute(length: Duration) -> usize {
        let (begun, mut looks) = (Instant::now(), 0);
        let minute_passes = until("a minute passes", SOON, || {
            looks += 1;
            async move {
                tokio::time::sleep(length).await;
                Ok((begun.elapsed() >= Duration::from_secs(60)).then_some(()))
            }
        });
        minute_passes.await.unwrap();
        looks
    }

    #[tokio::test(start_paused = true)]
    async fn looks_that_take_long_become_rarer_and_others_do_not() {
        let long = looks_in_a_minute(Duration::from_millis(100)).await;
        let short = looks_in_a_minute(Duration::ZERO).await;

        assert!((40..80).contains(&long), "{long}");
        assert!(short > 1000, "{short}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_come_about_is_named_with_its_limit() {
        let begun = Instant::now();

        let error = until("the sun rises", SOON, || async { Ok(None::<()>) }).await.unwrap_err();

        assert_eq!(error.to_string(), "the sun rises: not within 180 s");
        assert!(begun.elapsed() < SOON + PAUSES[1], "{:?}", begun.elapsed());
    }
}
