//! Finds out whether the machine of the build runner exists. It exists while there is something to build.

use aws_config::SdkConfig;
use aws_sdk_autoscaling::types::LifecycleState;
use serde::Serialize;

use crate::error::{Result, ResultExt};

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
    /// The group is not in this account and region.
    Absent,
    /// There is no machine, and none is wanted.
    Asleep,
    /// A machine is wanted, and is not there yet.
    Starting,
    /// The machine is there. It works, or waits for the next build.
    Up,
    /// The machine is there and is not wanted any more.
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
        let client = aws_sdk_autoscaling::Client::new(config);
        let found = client.describe_auto_scaling_groups().auto_scaling_group_names(group).send().await;
        let found = found.doing(format!("look up Auto Scaling group `{group}`"))?;
        let state = found.auto_scaling_groups().first().map_or(State::Absent, |found| {
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
