//! Lambda function that a state machine calls: creates an install's orders queue, and permits its runner to send
//! reports.

use freehold_app::install::register_install::RegisterInstall;
use freehold_app::subject;
use freehold_functions::settings::Settings;
use freehold_functions::{diagnostic, init_logs, log_failure};
use freehold_protocol::WorkflowId;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde::Deserialize;
use tracing::Instrument as _;

/// The input from a state of a state machine.
#[derive(Debug, Deserialize)]
struct Register {
    workflow: WorkflowId,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    init_logs();
    let settings = Settings::read()?;
    let register = RegisterInstall { store: settings.store()?, queues: settings.queue_admin()? };
    let register = &register;
    lambda_runtime::run(service_fn(|event: LambdaEvent<Register>| {
        let work = subject::of_workflow(&event.payload.workflow);
        let answer = async move {
            register.register(&event.payload.workflow).await.map_err(|error| {
                log_failure("cannot register an install", &error);
                diagnostic(&error)
            })
        };
        answer.instrument(work)
    }))
    .await
}
