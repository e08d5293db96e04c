//! Lambda function that state machines call: waits for the runner, plans the graph of a workflow, and starts its jobs.

use freehold_app::workflow::plan_workflow::{Next, PlanWorkflow};
use freehold_functions::settings::Settings;
use freehold_functions::{diagnostic, init_logs, log_failure};
use freehold_protocol::WorkflowId;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde::{Deserialize, Serialize};

/// The input from a state of a state machine.
#[derive(Debug, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
enum Phase {
    AwaitRunner { workflow: WorkflowId, token: String },
    Plan { workflow: WorkflowId },
    Run { workflow: WorkflowId, token: String },
}

/// The output, which a `Choice` state reads. States that wait for a callback ignore it.
#[derive(Debug, Serialize)]
struct Answer {
    next: Next,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    init_logs();
    let settings = Settings::read()?;
    let store = settings.store()?;
    let versions = settings.versions(&store)?;
    let plan = PlanWorkflow { store, versions, outbox: settings.outbox()?, clock: settings.clock() };
    let plan = &plan;
    lambda_runtime::run(service_fn(|event: LambdaEvent<Phase>| async move {
        let next = match event.payload {
            Phase::AwaitRunner { workflow, token } => plan.await_runner(&workflow, token).await.map(|()| Next::Run),
            Phase::Plan { workflow } => plan.plan(&workflow).await,
            Phase::Run { workflow, token } => plan.run(&workflow, token).await.map(|()| Next::Run),
        };
        next.map(|next| Answer { next }).map_err(|error| {
            log_failure("cannot wait for the runner, plan a workflow or start its jobs", &error);
            diagnostic(&error)
        })
    }))
    .await
}
