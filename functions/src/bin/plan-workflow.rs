//! Lambda function that state machines call: stores that a workflow waits for its runner, plans the
//! workflow's graph, and starts its jobs.

use freehold_app::subject;
use freehold_app::workflow::plan_workflow::{Next, PlanWorkflow};
use freehold_functions::settings::Settings;
use freehold_functions::{diagnostic, init_logs, log_failure};
use freehold_protocol::WorkflowId;
use lambda_runtime::{Diagnostic, Error, LambdaEvent, service_fn};
use serde::{Deserialize, Serialize};
use tracing::Instrument as _;

/// The input from a state of a state machine.
#[derive(Debug, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
enum Phase {
    AwaitRunner {
        workflow: WorkflowId,
        token: String,
    },
    Plan {
        workflow: WorkflowId,
        #[serde(default)]
        attempt: u32,
    },
    Run {
        workflow: WorkflowId,
        /// The number of the execution of the workflow, from 0. Executions of the previous version have no number.
        #[serde(default)]
        attempt: u32,
        token: String,
    },
}

impl Phase {
    const fn workflow(&self) -> &WorkflowId {
        match self {
            Self::AwaitRunner { workflow, .. } | Self::Plan { workflow, .. } | Self::Run { workflow, .. } => workflow,
        }
    }
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
    lambda_runtime::run(service_fn(|event: LambdaEvent<Phase>| {
        let work = subject::of_workflow(event.payload.workflow());
        perform(plan, event.payload).instrument(work)
    }))
    .await
}

/// Performs one phase of a workflow.
async fn perform(plan: &PlanWorkflow, phase: Phase) -> Result<Answer, Diagnostic> {
    let (next, failure) = match phase {
        Phase::AwaitRunner { workflow, token } => (
            plan.await_runner(&workflow, token).await.map(|()| Next::Run),
            format!("cannot store that workflow `{workflow}` waits for its runner"),
        ),
        Phase::Plan { workflow, attempt } => {
            (plan.plan(&workflow, attempt).await, format!("cannot plan workflow `{workflow}`"))
        }
        Phase::Run { workflow, attempt, token } => (
            plan.run(&workflow, attempt, token).await.map(|()| Next::Run),
            format!("cannot start the jobs of workflow `{workflow}`"),
        ),
    };
    next.map(|next| Answer { next }).map_err(|error| {
        log_failure(&failure, &error);
        diagnostic(&error)
    })
}
