//! Reads the state of a stack, and waits for the end of a change.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_cloudformation::Client;
use aws_sdk_cloudformation::error::ProvideErrorMetadata as _;
use serde_json::Value;

use super::events::Events;
use crate::job::Job;
use crate::job::bucket::explain;
use crate::job::failure::Failure;

/// A stack as CloudFormation describes it.
#[derive(Debug, Clone)]
pub(super) struct Stack {
    pub(super) status: String,
    pub(super) outputs: BTreeMap<String, Value>,
    pub(super) tags: BTreeMap<String, String>,
    /// The ARN of the service role, whose permissions CloudFormation uses instead of the caller's.
    pub(super) role: Option<String>,
    /// Whether the stack has termination protection.
    pub(super) protected: bool,
}

/// The state of a stack, which decides what the runner can do with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The stack does not exist, or it exists only as a name that a change set has reserved.
    Absent,
    /// A change is in progress.
    Working,
    /// The stack can be updated.
    Sound,
    /// The creation failed. The stack can only be deleted.
    NeverMade,
    /// A person has to repair the stack.
    Stuck,
}

impl Stack {
    /// Returns the state for the stack's status code (AWS CloudFormation user guide, "Stack status codes").
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

    /// Returns a stack that has only a status.
    #[cfg(test)]
    pub(super) fn with_status(status: &str) -> Self {
        Self {
            status: status.to_owned(),
            outputs: BTreeMap::new(),
            tags: BTreeMap::new(),
            role: None,
            protected: false,
        }
    }
}

/// Returns the stack called `name`, or `None` when it does not exist.
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

/// Waits for the end of a change and logs its events. Returns the stack, or `None` when it was deleted.
pub(super) async fn settle(
    job: &Job,
    client: &Client,
    name: &str,
    events: &mut Events,
) -> Result<Option<Stack>, Failure> {
    let mut pause = Pause::default();
    loop {
        let stack = describe(client, name).await?;
        // Reading the events after the state ensures that the log contains the last events.
        events.follow(job, client, name).await;
        match stack {
            Some(stack) if stack.state() == State::Working => pause.wait().await,
            settled => return Ok(settled),
        }
    }
}

/// The wait before the next poll. It is short at first and then grows, so that polls of many stacks stay below
/// CloudFormation's rate limits.
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
            assert_eq!(Stack::with_status(status).state(), state, "{status}");
        }
    }
}
