//! The Auto Scaling group of the build runner's machine.

use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_autoscaling::Client;
use freehold_runner::aws;
use freehold_runner::config::Config;
use freehold_runner::work::standby::{MachineGroup, Membership};

/// A group in EC2 Auto Scaling. Its machines are protected from scale-in, so a lower capacity ends none of them.
#[derive(Debug)]
struct ScalingGroup {
    client: Client,
    name: String,
}

/// Returns the group that the config names, if the machine exists only while there is work.
pub async fn membership(config: &Config) -> Option<Membership> {
    let group = config.scaling_group.as_ref()?;
    let client = Client::new(&aws::sdk_config(&config.region, None).await);
    Some(Membership { group: Arc::new(ScalingGroup { client, name: group.name.clone() }), idle: group.idle })
}

#[async_trait]
impl MachineGroup for ScalingGroup {
    async fn set(&self, machines: u8) -> Result<(), String> {
        let set = self.client.set_desired_capacity().auto_scaling_group_name(&self.name);
        let set = set.desired_capacity(i32::from(machines)).send().await;
        set.map(drop).map_err(|error| format!("group `{}`: {}", self.name, aws::explain(&error)))
    }
}
