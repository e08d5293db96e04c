//! Waits for a condition with a deadline, instead of sleeping.

use std::time::Duration;

use anyhow::bail;
use tokio::time::Instant;

/// How long to wait for anything that happens without a person, in tests that are not about waiting. It costs nothing when
/// the thing happens, so it is long enough for a slow and busy machine.
pub const SOON: Duration = Duration::from_secs(180);

/// The shortest and the longest pause between two looks.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(500)];

/// Returns what `look` finds, as soon as it finds something. A pause is as long as the look before it, so that looks which
/// start programs leave the processor to what they wait for.
///
/// # Errors
/// What `look` fails with, or that `what` did not come about within `limit`.
pub async fn until<T, F>(what: &str, limit: Duration, mut look: impl FnMut() -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<Option<T>>>,
{
    let deadline = Instant::now() + limit;
    let [shortest, longest] = PAUSES;
    loop {
        let begun = Instant::now();
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            bail!("{what}: not within {} s", limit.as_secs());
        }
        tokio::time::sleep(begun.elapsed().clamp(shortest, longest)).await;
    }
}
