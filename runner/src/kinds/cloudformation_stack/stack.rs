//! The state of one stack, and the wait for the end of a change.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_cloudformation::Client;
use aws_sdk_cloudformation::error::ProvideErrorMetadata as _;
use serde_json::Value;

use super::events::Events;
use crate::kinds::bucket::explain;
use crate::kinds::failure::Failure;
use crate::work::job::Job;

/// A stack as CloudFormation describes it.
#[derive(Debug, Clone)]
pub(super) struct Stack {
    pub(super) status: String,
    pub(super) outputs: BTreeMap<String, Value>,
    pub(super) tags: BTreeMap<String, String>,
    /// The ARN of the service role that CloudFormation works with instead of the caller's permissions.
    pub(super) role: Option<String>,
    /// Whether it has termination protection.
    pub(super) protected: bool,
}

/// The state of a stack, by what can be done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The stack does not exist, or a change set has only reserved its name.
    Absent,
    /// A change is in progress.
    Working,
    /// The stack can be updated.
    Sound,
    /// The creation failed, so the stack can only be deleted.
    NeverMade,
    /// A person has to repair the stack.
    Stuck,
}

impl Stack {
    /// Maps the status codes of the AWS CloudFormation user guide, "Stack status codes".
    pub(super) fn state(&self) -> State {
        match self.status.as_str() {
            "REVIEW_IN_PROGRESS" | "DELETE_COMPLETE" => State::Absent,
            "ROLLBACK_COMPLETE" | "ROLLBACK_FAILED" | "CREATE_FAILED" => State::NeverMade,
            "UPDATE_ROLLBACK_FAILED" | "DELETE_FAILED" | "UPDATE_FAILED" => State::Stuck,
            status if status.ends_with("_IN_PROGRESS") => State::Working,
            _ => State::Sound,
        }
    }

    /// Returns whether the last change succeeded.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.status.as_str(), "CREATE_COMPLETE" | "UPDATE_COMPLETE" | "IMPORT_COMPLETE")
    }
}

/// Returns the stack called `name`, if there is one.
pub(super) async fn describe(client: &Client, name: &str) -> Result<Option<Stack>, Failure> {
    let answer = match client.describe_stacks().stack_name(name).send().await {
        Ok(answer) => answer,
        // CloudFormation does not have a separate error code for an absent stack.
        Err(error) if error.message().is_some_and(|message| message.contains("does not exist")) => return Ok(None),
        Err(error) => return Err(Failure::new(format!("could not describe stack `{name}`: {}", explain(&error)))),
    };
    let Some(stack) = answer.stacks().first() else { return Ok(None) };
    let status = stack.stack_status().map_or_else(String::new, |status| status.as_str().to_owned());
    if status == "DELETE_COMPLETE" {
        return Ok(None);
    }
    let outputs = stack
        .outputs()
        .iter()
        .filter_map(|output| Some((output.output_key()?.to_owned(), Value::from(output.output_value()?))));
    let tags = stack.tags().iter().filter_map(|tag| Some((tag.key()?.to_owned(), tag.value()?.to_owned())));
    let role = stack.role_arn().filter(|role| !role.is_empty()).map(str::to_owned);
    let protected = stack.enable_termination_protection().unwrap_or(false);
    Ok(Some(Stack { status, outputs: outputs.collect(), tags: tags.collect(), role, protected }))
}

/// Waits for the end of a change and logs its events; returns the stack, or nothing when the stack is gone.
pub(super) async fn settle(
    job: &Job,
    client: &Client,
    name: &str,
    events: &mut Events,
) -> Result<Option<Stack>, Failure> {
    let mut pause = Pause::default();
    loop {
        let stack = describe(client, name).await?;
        // Events are read after the state, so that the last events are not missed.
        events.follow(job, client, name).await;
        match stack {
            Some(stack) if stack.state() == State::Working => pause.wait().await,
            settled => return Ok(settled),
        }
    }
}

/// The time between two polls: short at first, then long enough for many stacks to stay below CloudFormation's call
/// rates.
#[derive(Debug)]
pub(super) struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Self(Duration::from_millis(200))
    }
}

impl Pause {
    pub(super) async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = self.0.mul_f32(1.6).min(Duration::from_secs(4));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_says_what_can_be_done() {
        for (status, state) in [
            ("REVIEW_IN_PROGRESS", State::Absent),
            ("CREATE_IN_PROGRESS", State::Working),
            ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", State::Working),
            ("ROLLBACK_COMPLETE", State::NeverMade),
            ("UPDATE_ROLLBACK_COMPLETE", State::Sound),
            ("CREATE_COMPLETE", State::Sound),
            ("UPDATE_ROLLBACK_FAILED", State::Stuck),
        ] {
            let stack = Stack {
                status: status.to_owned(),
                outputs: BTreeMap::new(),
                tags: BTreeMap::new(),
                role: None,
                protected: false,
            };

            assert_eq!(stack.state(), state, "{status}");
        }
    }
}
