//! Lambda function that state machines call at their end: writes the final state of the workflow. After a step of a
//! runbook, also starts the next step. After a verified deploy that failed, also starts the deploy that rolls it back.

use std::sync::Arc;

use freehold_app::ports::Machines;
use freehold_app::runbook::advance_run::AdvanceRun;
use freehold_app::subject;
use freehold_app::workflow::finish_workflow::FinishWorkflow;
use freehold_app::workflow::roll_back::RollBackDeploy;
use freehold_functions::settings::Settings;
use freehold_functions::{diagnostic, init_logs, log_failure};
use freehold_protocol::WorkflowId;
use lambda_runtime::{Diagnostic, Error, LambdaEvent, service_fn};
use serde::Deserialize;
use serde_json::{Value, json};
use tracing::Instrument as _;

/// The input from a state. The state that catches all errors adds `error`.
#[derive(Debug, Deserialize)]
struct Finish {
    workflow: WorkflowId,
    /// The number of the execution of the workflow, from 0. Executions of the previous version have no number.
    #[serde(default)]
    attempt: u32,
    #[serde(default)]
    error: Option<Caught>,
}

/// An error in the form of Step Functions.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Caught {
    #[serde(default)]
    error: String,
    #[serde(default)]
    cause: String,
}

impl Caught {
    /// Returns the message of the function that failed, or the description by Step Functions when there is no message.
    fn sentence(&self) -> String {
        let cause: Option<Value> = serde_json::from_str(&self.cause).ok();
        let message = cause.as_ref().and_then(|cause| cause.get("errorMessage")?.as_str());
        match (self.error.as_str(), message) {
            (_, Some(message)) => message.to_owned(),
            ("States.Timeout", None) => {
                "a phase of the workflow (wait for the runner, plan or run) took longer than its time limit".to_owned()
            }
            ("States.HeartbeatTimeout", None) => {
                "no report about the workflow's jobs came in time; check that the install's runner is running"
                    .to_owned()
            }
            (error, None) if self.cause.is_empty() => error.to_owned(),
            (error, None) => format!("{error}: {}", self.cause),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    init_logs();
    let settings = Settings::read()?;
    let (store, clock) = (settings.store()?, settings.clock());
    let versions = settings.versions(&store)?;
    let machines: Arc<dyn Machines> = settings.machines()?;
    let roll_back =
        RollBackDeploy { versions: versions.clone(), machines: Arc::clone(&machines), clock: Arc::clone(&clock) };
    let advance = AdvanceRun::new(Arc::clone(&store), versions, machines, Arc::clone(&clock));
    let finish = FinishWorkflow { store, outbox: settings.outbox()?, clock };
    let (finish, advance, roll_back) = (&finish, &advance, &roll_back);
    lambda_runtime::run(service_fn(|event: LambdaEvent<Finish>| {
        let work = subject::of_workflow(&event.payload.workflow);
        let answer = async move {
            let error = event.payload.error.as_ref().map(Caught::sentence);
            let finished = finish
                .finish(&event.payload.workflow, event.payload.attempt, error.as_deref())
                .await
                .map_err(|error| {
                    log_failure("cannot finish a workflow", &error);
                    diagnostic(&error)
                })?;
            // The workflow has ended even if the advance of the run fails: a sweep advances the run too.
            if let Some(run) = &finished.run
                && let Err(error) = advance.advance(run).await
            {
                log_failure("cannot advance a run of a runbook; the next sweep tries again", &error);
            }
            if finished.rolls_back
                && let Err(error) = roll_back.roll_back(&event.payload.workflow).await
            {
                log_failure("cannot roll a deploy back; the next sweep tries again", &error);
            }
            Ok::<Value, Diagnostic>(json!({ "state": finished.state }))
        };
        answer.instrument(work)
    }))
    .await
}
