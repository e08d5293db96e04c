//! Lambda function on a schedule: recovers work that was lost between two steps.

use freehold_app::workflow::sweep::Sweep;
use freehold_functions::settings::Settings;
use freehold_functions::{diagnostic, init_logs, log_failure};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    init_logs();
    let settings = Settings::read()?;
    let sweep = Sweep {
        store: settings.store()?,
        outbox: settings.outbox()?,
        callbacks: settings.callbacks(),
        machines: settings.machines()?,
        clock: settings.clock(),
    };
    let sweep = &sweep;
    lambda_runtime::run(service_fn(|_: LambdaEvent<Value>| async move {
        let swept = sweep.sweep().await.map_err(|error| {
            log_failure("sweep failed", &error);
            diagnostic(&error)
        })?;
        // The metric filter of the tenant stack counts `stuck_workflows`.
        tracing::info!(
            open = swept.open,
            resent = swept.resent,
            lost = swept.lost,
            stuck_workflows = swept.stuck,
            failed = swept.failed,
            "Swept"
        );
        Ok::<_, lambda_runtime::Diagnostic>(())
    }))
    .await
}
