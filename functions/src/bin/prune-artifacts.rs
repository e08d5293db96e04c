//! Lambda function that runs on a schedule and removes unused artifacts from the tenant registry.

use std::sync::Arc;

use freehold_app::artifact::prune_artifacts::{PruneArtifacts, UnusedArtifacts};
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
    let unused = UnusedArtifacts { store: Arc::clone(&store), versions, clock: settings.clock() };
    let prune = PruneArtifacts { unused, registry: settings.artifact_remover()? };
    let prune = &prune;
    lambda_runtime::run(service_fn(|_: LambdaEvent<Value>| async move {
        let pruned = prune.prune().await.map_err(|error| {
            log_failure("cannot prune the registry", &error);
            diagnostic(&error)
        })?;
        tracing::info!(
            kept = pruned.kept,
            marked = pruned.marked,
            restored = pruned.restored,
            removed = pruned.removed,
            failed = pruned.failed,
            "Pruned the registry"
        );
        Ok::<_, lambda_runtime::Diagnostic>(())
    }))
    .await
}
