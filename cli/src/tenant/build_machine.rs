//! The machine of the build runner, which exists while there is something to build: its state, and its removal.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_autoscaling::Client;
use aws_sdk_autoscaling::types::{AutoScalingGroup, LifecycleState};
use aws_sdk_cloudformation::types::StackStatus;
use freehold_protocol::{TenantName, names};
use serde::Serialize;

use crate::api::poll_until;
use crate::cloudformation::{Stack, Stacks};
use crate::error::{Error, Result, ResultExt};
use crate::progress::Progress;

/// The pause between two checks of a group that is being deleted, and the maximum number of checks.
const POLL_INTERVAL: Duration = Duration::from_secs(3);
const POLLS: u32 = 300;
/// The parameter of the tenant's stack that decides whether the stack has the machine.
pub(super) const SUBNETS: &str = "BuildSubnetIds";

/// The machine of the build runner.
#[derive(Debug, Serialize)]
pub(super) struct BuildMachine {
    group: String,
    pub(super) state: State,
}

/// Whether the machine exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// The machine's Auto Scaling group does not exist in this account and region.
    Absent,
    /// There is no machine, and the group wants none.
    Asleep,
    /// The group wants a machine, which does not run yet.
    Starting,
    /// The machine runs. It builds, or waits for the next build.
    Up,
    /// The machine still runs, but the group wants none any more.
    Ending,
}

impl State {
    fn of(wanted: bool, is_up: bool) -> Self {
        match (wanted, is_up) {
            (false, false) => Self::Asleep,
            (true, false) => Self::Starting,
            (true, true) => Self::Up,
            (false, true) => Self::Ending,
        }
    }
}

impl BuildMachine {
    /// Looks up the machine in the group with this name.
    pub(super) async fn find(config: &SdkConfig, group: &str) -> Result<Self> {
        let found = look_up(&Client::new(config), group).await?;
        let state = found.map_or(State::Absent, |found| {
            let is_up = |one: &aws_sdk_autoscaling::types::Instance| {
                !matches!(one.lifecycle_state(), Some(LifecycleState::Pending | LifecycleState::Terminated))
            };
            State::of(found.desired_capacity() > Some(0), found.instances().iter().any(is_up))
        });
        Ok(Self { group: group.to_owned(), state })
    }

    /// Returns a line for people.
    pub(super) fn line(&self) -> String {
        let what = match self.state {
            State::Absent => "absent; deploy the tenant again",
            State::Asleep => "asleep; a build starts it",
            State::Starting => "starting",
            State::Up => "up; it ends when there is nothing to build",
            State::Ending => "ending",
        };
        format!("build runner's machine (group {}): {what}", self.group)
    }
}

/// Deletes the group of the build runner with its machine, if `stack` has them, and waits until both are gone.
/// CloudFormation deletes a group only after its machine has ended, and the group does not end the machine, because the
/// machine is protected from scale-in. So a deletion of the stack would wait for the end of a build and of the idle
/// time, and for ever for a machine that hangs.
pub(super) async fn remove(
    config: &SdkConfig,
    tenant: &TenantName,
    stack: Option<&Stack>,
    progress: &Progress,
) -> Result<()> {
    if stack.and_then(|stack| stack.parameters.get(SUBNETS)).is_none_or(String::is_empty) {
        return Ok(());
    }
    let (client, group) = (Client::new(config), names::tenant_part(tenant, "build-runner"));
    if look_up(&client, &group).await?.is_none() {
        return Ok(());
    }
    progress.now(format!("ending the build runner's machine (group `{group}`)"));
    let delete = client.delete_auto_scaling_group().auto_scaling_group_name(&group).force_delete(true);
    delete.send().await.doing(format!("delete Auto Scaling group `{group}`"))?;
    let left = poll_until((POLLS, POLL_INTERVAL), async || look_up(&client, &group).await, Option::is_none).await?;
    if left.is_none() {
        return Ok(());
    }
    Err(Error::failed(format!(
        "Auto Scaling group `{group}` still exists {} minutes after its deletion began; look at its machine in the EC2 console, \
         then run the command again",
        (POLL_INTERVAL * POLLS).as_secs() / 60
    )))
}

/// Waits until the update that takes the group out of `stack` has succeeded, and then deletes the group. CloudFormation
/// deletes such a resource in the cleanup after the update, and this cleanup would wait for the machine.
/// Returns only if the removal failed.
pub(super) async fn remove_in_cleanup(
    config: &SdkConfig,
    tenant: &TenantName,
    stack: Option<&Stack>,
    progress: &Progress,
) -> Error {
    let Some(former) = stack else { return std::future::pending().await };
    let stacks = Stacks::new(config);
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        // The function that waits for the update reports a failed request.
        let Ok(Some(now)) = stacks.find(&former.name).await else { continue };
        // During the cleanup of an earlier update, the parameter still has its old value.
        let has_removed = now.parameters.get(SUBNETS).is_none_or(String::is_empty);
        if now.status == StackStatus::UpdateCompleteCleanupInProgress && has_removed {
            break;
        }
    }
    match remove(config, tenant, stack, progress).await {
        Ok(()) => std::future::pending().await,
        Err(error) => error,
    }
}

async fn look_up(client: &Client, group: &str) -> Result<Option<AutoScalingGroup>> {
    let found = client.describe_auto_scaling_groups().auto_scaling_group_names(group).send().await;
    let found = found.doing(format!("look up Auto Scaling group `{group}`"))?;
    Ok(found.auto_scaling_groups.unwrap_or_default().into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_wanted_and_not_there_is_starting() {
        let line = |wanted, is_up| BuildMachine { group: "g".into(), state: State::of(wanted, is_up) }.line();

        assert_eq!(line(false, false), "build runner's machine (group g): asleep; a build starts it");
        assert_eq!(line(true, false), "build runner's machine (group g): starting");
        assert_eq!(line(true, true), "build runner's machine (group g): up; it ends when there is nothing to build");
        assert_eq!(line(false, true), "build runner's machine (group g): ending");
    }
}
