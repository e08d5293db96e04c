//! Lambda function on a schedule: removes from the tenant registry what nobody uses.

use std::sync::Arc;

use freehold_app::tend_registry::{Retention, TendRegistry};
use freehold_functions::settings::Settings;
use freehold_functions::{diagnostic, init_logs, log_failure};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    init_logs();
    let settings = Settings::read()?;
    let store = settings.store()?;
    let versions = settings.versions(&store)?;
    let retention = Retention { store: Arc::clone(&store), versions, clock: settings.clock() };
    let tend = TendRegistry { retention, registry: settings.registry_care()? };
    let tend = &tend;
    lambda_runtime::run(service_fn(|_: LambdaEvent<Value>| async move {
        let tended = tend.tend().await.map_err(|error| {
            log_failure("tending the registry failed", &error);
            diagnostic(&error)
        })?;
        tracing::info!(
            kept = tended.kept,
            retired = tended.retired,
            restored = tended.restored,
            removed = tended.removed,
            failed = tended.failed,
            "Tended the registry"
        );
        Ok::<_, lambda_runtime::Diagnostic>(())
    }))
    .await
}
