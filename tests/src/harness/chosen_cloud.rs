//! Starts the cloud that the environment chooses.

use super::cloud::Started;
#[cfg(feature = "localstack")]
use super::localstack;
use super::{aws, ministack, running_localstack};

/// Starts the cloud that `FREEHOLD_CLOUD` names: `ministack` (the default), `localstack` or `aws`.
///
/// # Errors
/// When it should start and does not.
pub(super) async fn start(state: &std::path::Path) -> anyhow::Result<Started> {
    match std::env::var("FREEHOLD_CLOUD").as_deref() {
        Err(_) | Ok("" | "ministack") => Ok(Started::Cloud(Box::new(ministack::MiniStack::start(state).await?))),
        Ok("localstack") if std::env::var_os(running_localstack::ENDPOINT).is_some() => {
            Ok(Started::Cloud(Box::new(running_localstack::find()?)))
        }
        #[cfg(feature = "localstack")]
        Ok("localstack") => localstack::start().await,
        #[cfg(not(feature = "localstack"))]
        Ok("localstack") => Ok(Started::Skip("built without `--features localstack`, and none runs".to_owned())),
        Ok("aws") => aws::start().await,
        Ok(other) => anyhow::bail!("FREEHOLD_CLOUD is `{other}`; there are ministack, localstack and aws"),
    }
}
