//! EC2 Auto Scaling: asks for the machine of the build runner.

use std::time::Duration;

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_autoscaling::Client;
use aws_smithy_types::timeout::TimeoutConfig;
use freehold_app::ports::{BuildMachine, PortError};

use crate::error::port_error;

/// The longest time that a call may take, retries included. `dispatch-job` makes the call after it has sent the orders,
/// when its own time limit may be near; after a failure, `sweep` calls a minute later.
const CALL: Duration = Duration::from_secs(2);

/// The Auto Scaling group of the build runner, which has one machine or none.
#[derive(Debug, Clone)]
pub struct ScalingGroup {
    client: Client,
    name: String,
}

impl ScalingGroup {
    /// Returns the group with this name.
    pub fn new(config: &SdkConfig, name: impl Into<String>) -> Self {
        let limits = TimeoutConfig::builder().operation_attempt_timeout(CALL).operation_timeout(CALL).build();
        let config = aws_sdk_autoscaling::config::Builder::from(config).timeout_config(limits);
        Self { client: Client::from_conf(config.build()), name: name.into() }
    }

    async fn set(&self, machines: i32) -> Result<(), PortError> {
        let set = self.client.set_desired_capacity().auto_scaling_group_name(&self.name).desired_capacity(machines);
        set.send().await.map_err(|error| port_error(&format!("Auto Scaling group `{}`", self.name), error))?;
        Ok(())
    }
}

#[async_trait]
impl BuildMachine for ScalingGroup {
    async fn wake(&self) -> Result<(), PortError> {
        self.set(1).await
    }

    // A machine in service is protected from scale-in, so it stays until it ends by itself. Auto Scaling may end a machine
    // that is still starting.
    async fn rest(&self) -> Result<(), PortError> {
        self.set(0).await
    }
}

#[cfg(test)]
mod tests {
    use crate::silence::Silence;

    use super::*;

    #[tokio::test]
    async fn a_service_that_does_not_answer_holds_a_call_for_two_seconds() {
        let silence = Silence::new();
        let group = ScalingGroup::new(&silence.config(), "builders");

        let error = group.wake().await.unwrap_err();

        assert!(matches!(error, PortError::Transient { .. }), "{error}");
        assert!(error.to_string().contains(&format!("occurred after {CALL:?}")), "{error}");
    }
}
