//! EC2 Auto Scaling: asks for the machine of the build runner.

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_autoscaling::Client;
use freehold_app::ports::{BuildMachine, PortError};

use crate::error::port_error;

/// The Auto Scaling group of the build runner, which has one machine or none.
#[derive(Debug, Clone)]
pub struct ScalingGroup {
    client: Client,
    name: String,
}

impl ScalingGroup {
    /// Returns the group with this name.
    pub fn new(config: &SdkConfig, name: impl Into<String>) -> Self {
        Self { client: Client::new(config), name: name.into() }
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

    // The group's machines are protected from scale-in, so this call ends none. A machine ends by itself.
    async fn rest(&self) -> Result<(), PortError> {
        self.set(0).await
    }
}
