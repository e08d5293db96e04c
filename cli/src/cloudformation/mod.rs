//! Describes, changes and deletes CloudFormation stacks. A template is applied through a change set.

mod apply;
mod events;
mod parameters;
mod stack;

use std::collections::BTreeSet;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_cloudformation::Client;
use aws_sdk_cloudformation::error::ProvideErrorMetadata;
use aws_sdk_cloudformation::types::{ResourceStatus, StackEvent, StackStatus};

pub(crate) use apply::{Change, Outcome, Template};
pub(crate) use parameters::{ACCEPTED_CONTRACT, BREAK_GLASS_UNTIL};
pub(crate) use stack::Stack;

use crate::error::{Error, Result, ResultExt};
use crate::progress::Progress;
use events::Events;

/// The first pause between two requests for a stack's state. It grows to [`LONGEST_POLL_INTERVAL`].
const POLL_INTERVAL: Duration = Duration::from_millis(250);
const LONGEST_POLL_INTERVAL: Duration = Duration::from_secs(3);

/// The stacks of one account and region.
#[derive(Debug, Clone)]
pub(crate) struct Stacks {
    client: Client,
}

/// A resource of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resource {
    /// The type, such as `AWS::KMS::Key`.
    pub(crate) kind: String,
    /// The name in the template.
    pub(crate) name: String,
}

/// The names of the stacks of one account and region.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) there: Vec<String>,
    /// Deleted stacks, which CloudFormation lists for 90 days. A stack of the same name may exist again.
    pub(crate) deleted: Vec<String>,
}

impl Stacks {
    pub(crate) fn new(config: &SdkConfig) -> Self {
        Self { client: Client::new(config) }
    }

    /// Returns the stack called `name` (or with that ARN), if there is one.
    pub(crate) async fn find(&self, name: &str) -> Result<Option<Stack>> {
        match self.client.describe_stacks().stack_name(name).send().await {
            Ok(found) => Ok(found.stacks().first().map(Stack::of)),
            Err(error) if error.message().is_some_and(|m| m.contains("does not exist")) => Ok(None),
            Err(error) => Err(error).doing(format!("look up stack `{name}`")),
        }
    }

    /// Returns the template that a stack was launched with.
    pub(crate) async fn template(&self, name: &str) -> Result<String> {
        let found = self.client.get_template().stack_name(name).send().await;
        let found = found.doing(format!("read the template of stack `{name}`"))?;
        Ok(found.template_body().unwrap_or_default().to_owned())
    }

    /// Returns the resources of the stack called `name` that exist.
    pub(crate) async fn resources(&self, name: &str) -> Result<Vec<Resource>> {
        let mut pages = self.client.list_stack_resources().stack_name(name).into_paginator().send();
        let mut resources = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.doing(format!("list the resources of stack `{name}`"))?;
            for one in page.stack_resource_summaries() {
                if one.resource_status() != Some(&ResourceStatus::DeleteComplete) {
                    let (kind, name) = (one.resource_type(), one.logical_resource_id());
                    let (kind, name) = (kind.unwrap_or_default().to_owned(), name.unwrap_or_default().to_owned());
                    resources.push(Resource { kind, name });
                }
            }
        }
        Ok(resources)
    }

    /// Returns the names of a stack's parameters whose values CloudFormation shows to nobody (`NoEcho`).
    pub(crate) async fn hidden_parameters(&self, name: &str) -> Result<BTreeSet<String>> {
        let found = self.client.get_template_summary().stack_name(name).send().await;
        let found = found.doing(format!("read the parameters of stack `{name}`"))?;
        let hidden = found.parameters().iter().filter(|parameter| parameter.no_echo() == Some(true));
        Ok(hidden.filter_map(|parameter| parameter.parameter_key().map(str::to_owned)).collect())
    }

    /// Returns the newest events of a stack, the newest first, and whether there are older ones.
    pub(crate) async fn newest_events(&self, id: &str) -> Result<(Vec<StackEvent>, bool)> {
        let page = self.client.describe_stack_events().stack_name(id).send().await;
        let page = page.doing("read the stack's events")?;
        let has_older = page.next_token().is_some_and(|token| !token.is_empty());
        Ok((page.stack_events().to_vec(), has_older))
    }

    /// Returns the names of all stacks in the account and region.
    pub(crate) async fn names(&self) -> Result<Names> {
        let mut pages = self.client.list_stacks().into_paginator().send();
        let mut names = Names::default();
        while let Some(page) = pages.next().await {
            for stack in page.doing("list the stacks")?.stack_summaries() {
                let is_deleted = stack.stack_status() == Some(&StackStatus::DeleteComplete);
                let of = if is_deleted { &mut names.deleted } else { &mut names.there };
                of.extend(stack.stack_name().map(str::to_owned));
            }
        }
        Ok(names)
    }

    /// Deletes the stack and waits until the deletion has ended. Returns whether the stack existed.
    pub(crate) async fn delete(&self, name: &str, progress: &Progress) -> Result<bool> {
        let Some(stack) = self.find(name).await?.filter(|s| s.status != StackStatus::DeleteComplete) else {
            return Ok(false);
        };
        let stack = if stack.is_busy() { self.wait_for_earlier(&stack.id, progress).await? } else { stack };
        let mut events = Events::from_now(&self.client, &stack.id).await?;
        if stack.status != StackStatus::DeleteInProgress && stack.status != StackStatus::DeleteComplete {
            self.client.delete_stack().stack_name(name).send().await.doing(format!("delete stack `{name}`"))?;
        }
        let ended = self.follow(&stack.id, &mut events, progress).await?;
        match ended {
            None => Ok(true),
            Some(stack) if stack.status == StackStatus::DeleteComplete => Ok(true),
            Some(stack) => Err(events.failure(format!("stack `{name}` could not be deleted"), &stack)),
        }
    }

    /// Waits until an earlier operation on the stack has ended.
    async fn wait_for_earlier(&self, id: &str, progress: &Progress) -> Result<Stack> {
        progress.now(format!("waiting for an earlier change of stack `{id}` to end"));
        let mut events = Events::from_now(&self.client, id).await?;
        let stack = self.follow(id, &mut events, progress).await?;
        stack.ok_or_else(|| Error::conflict(format!("stack `{id}` was deleted meanwhile; run the command again")))
    }

    /// Shows the stack's events until its operation ends.
    async fn follow(&self, id: &str, events: &mut Events, progress: &Progress) -> Result<Option<Stack>> {
        let mut pause = POLL_INTERVAL;
        loop {
            let stack = self.find(id).await?;
            events.show_new(&self.client, progress).await?;
            match stack {
                Some(stack) if stack.is_busy() => {}
                ended => return Ok(ended),
            }
            tokio::time::sleep(pause).await;
            pause = longer(pause);
        }
    }
}

/// Returns the next, longer pause between two requests for the state of a stack. `pause` was the last one.
fn longer(pause: Duration) -> Duration {
    (pause * 5 / 4).min(LONGEST_POLL_INTERVAL)
}
