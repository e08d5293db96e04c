//! Step Functions: starts executions, and ends states that wait for a callback.

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_sfn::Client;
use aws_sdk_sfn::operation::send_task_heartbeat::SendTaskHeartbeatError;
use aws_sdk_sfn::operation::send_task_success::SendTaskSuccessError;
use aws_sdk_sfn::operation::start_execution::StartExecutionError;
use freehold_app::ports::{Callbacks, Machines, PortError};
use freehold_domain::workflow::WorkflowKind;
use freehold_protocol::{InstallId, WorkflowId};
use serde_json::{Value, json};

use crate::error::port_error;

/// Starts executions of the tenant's state machines.
#[derive(Debug, Clone)]
pub struct SfnMachines {
    client: Client,
    /// The first part of each state machine's ARN: `arn:aws:states:<region>:<account>:stateMachine:fh-<tenant>--`.
    arn_prefix: String,
}

impl SfnMachines {
    /// Returns the tenant's state machines.
    pub fn new(config: &SdkConfig, arn_prefix: impl Into<String>) -> Self {
        Self { client: Client::new(config), arn_prefix: arn_prefix.into() }
    }
}

#[async_trait]
impl Machines for SfnMachines {
    async fn start(
        &self,
        kind: WorkflowKind,
        workflow: &WorkflowId,
        install: &InstallId,
        attempt: u32,
    ) -> Result<(), PortError> {
        let name = if attempt == 0 { workflow.to_string() } else { format!("{workflow}-{attempt}") };
        let started = self
            .client
            .start_execution()
            .state_machine_arn(format!("{}{}", self.arn_prefix, kind.machine()))
            .name(name)
            .input(json!({ "workflow": workflow, "install": install, "attempt": attempt }).to_string())
            .send()
            .await;
        match started {
            Ok(_) => Ok(()),
            Err(error) => match error.as_service_error() {
                // Execution names are unique for 90 days, so this execution was started before.
                Some(StartExecutionError::ExecutionAlreadyExists(_)) => Ok(()),
                _ => Err(port_error("state machine", error)),
            },
        }
    }
}

/// Ends states that wait for a callback.
#[derive(Debug, Clone)]
pub struct SfnCallbacks(Client);

impl SfnCallbacks {
    /// Returns a sender of callbacks.
    pub fn new(config: &SdkConfig) -> Self {
        Self(Client::new(config))
    }
}

#[async_trait]
impl Callbacks for SfnCallbacks {
    async fn succeed(&self, token: &str, output: &Value) -> Result<(), PortError> {
        let sent = self.0.send_task_success().task_token(token).output(output.to_string()).send().await;
        match sent {
            Ok(_) => Ok(()),
            Err(error) => match error.as_service_error().and_then(of_success) {
                Some(unusable) => {
                    unusable.log();
                    Ok(())
                }
                None => Err(port_error("state machine", error)),
            },
        }
    }

    async fn heartbeat(&self, token: &str) -> Result<(), PortError> {
        match self.0.send_task_heartbeat().task_token(token).send().await {
            Ok(_) => Ok(()),
            Err(error) => match error.as_service_error().and_then(of_heartbeat) {
                Some(unusable) => {
                    unusable.log();
                    Ok(())
                }
                None => Err(port_error("state machine", error)),
            },
        }
    }
}

/// The reason why a token ends no state any more (Step Functions API reference, `SendTaskSuccess`, "Errors"). It is not
/// an error of the call: the function that ends a state also ends workflows and forgets installs, and must not wait for
/// a token for which no further attempt helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unusable {
    /// The token was used before, or its state has timed out.
    Used,
    /// Step Functions did not make this token. Its state waits until it times out.
    Invalid,
}

impl Unusable {
    fn log(self) {
        match self {
            Self::Used => {}
            Self::Invalid => tracing::error!(
                "Step Functions does not know the form of a stored task token, so the state that waits for it ends \
                 only by its time limit; check whether something else writes into the table"
            ),
        }
    }
}

const fn of_success(error: &SendTaskSuccessError) -> Option<Unusable> {
    match error {
        SendTaskSuccessError::TaskDoesNotExist(_) | SendTaskSuccessError::TaskTimedOut(_) => Some(Unusable::Used),
        SendTaskSuccessError::InvalidToken(_) => Some(Unusable::Invalid),
        _ => None,
    }
}

const fn of_heartbeat(error: &SendTaskHeartbeatError) -> Option<Unusable> {
    match error {
        SendTaskHeartbeatError::TaskDoesNotExist(_) | SendTaskHeartbeatError::TaskTimedOut(_) => Some(Unusable::Used),
        SendTaskHeartbeatError::InvalidToken(_) => Some(Unusable::Invalid),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_sfn::types::error::{InvalidOutput, InvalidToken, TaskDoesNotExist, TaskTimedOut};

    use super::*;

    #[test]
    fn a_used_token_is_told_from_an_invalid_one_and_both_from_errors() {
        let (gone, late) = (TaskDoesNotExist::builder().build(), TaskTimedOut::builder().build());
        let invalid = InvalidToken::builder().build();
        let output = SendTaskSuccessError::InvalidOutput(InvalidOutput::builder().build());

        assert_eq!(of_success(&SendTaskSuccessError::TaskDoesNotExist(gone.clone())), Some(Unusable::Used));
        assert_eq!(of_success(&SendTaskSuccessError::TaskTimedOut(late.clone())), Some(Unusable::Used));
        assert_eq!(of_success(&SendTaskSuccessError::InvalidToken(invalid.clone())), Some(Unusable::Invalid));
        assert_eq!(of_success(&output), None);
        assert_eq!(of_heartbeat(&SendTaskHeartbeatError::TaskDoesNotExist(gone)), Some(Unusable::Used));
        assert_eq!(of_heartbeat(&SendTaskHeartbeatError::TaskTimedOut(late)), Some(Unusable::Used));
        assert_eq!(of_heartbeat(&SendTaskHeartbeatError::InvalidToken(invalid)), Some(Unusable::Invalid));
    }
}
