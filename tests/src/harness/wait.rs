//! Waits for a condition with a deadline, instead of sleeping.

use std::time::Duration;

use anyhow::bail;
use tokio::time::Instant;

/// How long to wait for anything that happens without a person, in tests that are not about waiting. It costs nothing when
/// the thing happens, so it is long enough for a slow and busy machine.
pub const SOON: Duration = Duration::from_secs(180);

/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Returns what `look` finds, as soon as it finds something.
///
/// # Errors
/// What `look` fails with, or that `what` did not come about within `limit`.
pub async fn until<T, F>(what: &str, limit: Duration, mut look: impl FnMut() -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<Option<T>>>,
{
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            bail!("{what}: not within {} s", limit.as_secs());
        }
        tokio::time::sleep(LOOK).await;
    }
}
