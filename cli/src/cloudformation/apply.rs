//! Creates or updates a stack through a change set. The same template with the same parameters changes nothing.

use std::collections::BTreeMap;

use aws_sdk_cloudformation::types::{
    Capability, ChangeSetStatus, ChangeSetType, OnStackFailure, Parameter, StackStatus, Tag,
};

use super::events::{Events, SEE_EVENTS};
use super::{POLL_INTERVAL, Stack, Stacks, longer};
use crate::error::{Error, Kind, Result, ResultExt};
use crate::progress::Progress;

/// The maximum size of a template inside a request, in bytes (AWS CloudFormation quotas, "Template body size in a
/// request").
const MAX_BODY: usize = 51_200;

/// A template, or its address.
#[derive(Debug, Clone)]
pub(crate) enum Template {
    Body(String),
    /// The address of an object in S3.
    Url(String),
    /// The address of an object in S3, and the template in it.
    Object {
        address: String,
        body: String,
    },
    /// The template that the stack was launched with.
    Launched,
}

impl Template {
    /// Returns whether the template may declare the parameter `name`; true when the template's text is not known.
    /// CloudFormation refuses a parameter that the template does not declare.
    fn may_have_parameter(&self, name: &str) -> bool {
        match self {
            Self::Body(body) | Self::Object { body, .. } => {
                body.lines().any(|line| line.trim_start().starts_with(&format!("{name}:")))
            }
            Self::Url(_) | Self::Launched => true,
        }
    }
}

/// The desired state of a stack.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) stack: String,
    pub(crate) template: Template,
    /// The values to set. Every other parameter of an existing stack keeps its value; a new parameter gets the
    /// template's default.
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) tags: BTreeMap<String, String>,
}

/// The effect of a change on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Created,
    Updated,
    Unchanged,
}

impl Stacks {
    /// Changes the stack to match `change` and waits until the change has ended.
    pub(crate) async fn apply(&self, change: &Change, progress: &Progress) -> Result<(Outcome, Stack)> {
        let name = &change.stack;
        let existing = self.ready_for_change(name, progress).await?;
        let set = format!("freehold-{}", crate::random::hex()?);
        progress.now(format!("asking CloudFormation what changes in stack `{name}`"));
        let kind = if existing.is_some() { ChangeSetType::Update } else { ChangeSetType::Create };
        let (set, id) = self.create_set(change, existing.as_ref(), &set, kind).await?;
        if !self.has_changes(name, &set, existing.is_none()).await? {
            let stack = existing.ok_or_else(|| {
                Error::failed(format!("the template of stack `{name}` creates no resources"))
                    .or("check that it is the whole template, and that its conditions and parameters leave a resource")
            })?;
            return Ok((Outcome::Unchanged, stack));
        }
        let mut events = Events::from_now(&self.client, &id).await?;
        let execute = self.client.execute_change_set().change_set_name(&set);
        execute.send().await.doing(format!("execute the change set of stack `{name}`"))?;
        let ended = self.followed_to_a_change(name, existing.as_ref(), &mut events, progress).await?;
        let (wanted, outcome) = match existing {
            None => (StackStatus::CreateComplete, Outcome::Created),
            Some(_) => (StackStatus::UpdateComplete, Outcome::Updated),
        };
        if ended.status == wanted {
            return Ok((outcome, ended));
        }
        Err(events.failure(format!("stack `{name}` could not be {}", outcome.as_str()), &ended))
    }

    /// Returns the existing stack, if there is one that can be updated. Deletes a stack whose creation failed, because
    /// CloudFormation cannot update it.
    async fn ready_for_change(&self, name: &str, progress: &Progress) -> Result<Option<Stack>> {
        let Some(mut stack) = self.find(name).await? else {
            return Ok(None);
        };
        if stack.is_busy() {
            stack = self.wait_for_earlier(&stack.id, progress).await?;
        }
        match &stack.status {
            StackStatus::DeleteComplete | StackStatus::ReviewInProgress => Ok(None),
            StackStatus::RollbackComplete | StackStatus::RollbackFailed | StackStatus::CreateFailed => {
                progress.say(&format!(
                    "stack `{name}` was never created ({}); deleting its remains",
                    stack.status.as_str()
                ));
                self.delete(name, progress).await?;
                Ok(None)
            }
            StackStatus::DeleteFailed | StackStatus::UpdateRollbackFailed => {
                Err(broken(name, stack.status.as_str(), &stack.reason))
            }
            _ => Ok(Some(stack)),
        }
    }

    /// Creates a change set. Returns the ids of the change set and of its stack.
    async fn create_set(
        &self,
        change: &Change,
        existing: Option<&Stack>,
        set: &str,
        kind: ChangeSetType,
    ) -> Result<(String, String)> {
        let create = self
            .client
            .create_change_set()
            .stack_name(&change.stack)
            .change_set_name(set)
            .capabilities(Capability::CapabilityNamedIam)
            .set_parameters(Some(parameters(change, existing)))
            .set_tags(Some(change.tags.iter().map(|(k, v)| Tag::builder().key(k).value(v).build()).collect()));
        let create = match &change.template {
            Template::Body(body) if body.len() > MAX_BODY => {
                return Err(Error::invalid(format!(
                    "the template of stack `{}` has {} bytes, more than the {MAX_BODY} that CloudFormation accepts in \
                     a request; make it smaller",
                    change.stack,
                    body.len()
                )));
            }
            Template::Body(body) => create.template_body(body),
            Template::Url(url) | Template::Object { address: url, .. } => create.template_url(url),
            Template::Launched => create.use_previous_template(true),
        };
        let create = match kind {
            ChangeSetType::Create => create.on_stack_failure(OnStackFailure::Rollback),
            _ => create,
        };
        let created = create.change_set_type(kind).send().await;
        let created = created.doing(format!("make a change set for stack `{}`", change.stack))?;
        let id = created.stack_id().unwrap_or(&change.stack).to_owned();
        Ok((created.id().unwrap_or(set).to_owned(), id))
    }

    /// Waits until the change set is ready, and returns whether it has changes. Deletes a change set without changes.
    async fn has_changes(&self, stack: &str, set: &str, new: bool) -> Result<bool> {
        let mut pause = POLL_INTERVAL;
        loop {
            let answer = self.client.describe_change_set().stack_name(stack).change_set_name(set).send().await;
            let answer = answer.doing(format!("read the change set of stack `{stack}`"))?;
            match answer.status() {
                Some(ChangeSetStatus::CreateComplete) => return Ok(true),
                Some(ChangeSetStatus::Failed) => {
                    let reason = answer.status_reason().unwrap_or_default().to_owned();
                    let _ = self.client.delete_change_set().stack_name(stack).change_set_name(set).send().await;
                    if freehold_aws_errors::means_no_changes(&reason) {
                        return Ok(false);
                    }
                    if new {
                        let _ = self.client.delete_stack().stack_name(stack).send().await;
                    }
                    return Err(refused(stack, &reason));
                }
                _ => tokio::time::sleep(pause).await,
            }
            pause = longer(pause);
        }
    }

    /// Follows the stack until the change has ended. Just after the start, CloudFormation may still return the state
    /// before the change.
    async fn followed_to_a_change(
        &self,
        name: &str,
        before: Option<&Stack>,
        events: &mut Events,
        progress: &Progress,
    ) -> Result<Stack> {
        let mut polls = 0;
        loop {
            let stack = self.follow(name, events, progress).await?;
            let stack = stack.ok_or_else(|| {
                Error::failed(format!("stack `{name}` was deleted during its change; run the command again"))
            })?;
            let is_old = match before {
                None => stack.status == StackStatus::ReviewInProgress,
                Some(before) => stack.changed_at == before.changed_at && stack.status == before.status,
            };
            polls += 1;
            if !is_old || polls > 40 {
                return Ok(stack);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

impl Outcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Unchanged => "left as it is",
        }
    }
}

/// Returns the error about a stack that CloudFormation does not change until somebody has repaired it.
fn broken(stack: &str, status: &str, reason: &str) -> Error {
    let reason = if reason.trim().is_empty() { String::new() } else { format!(" ({reason})") };
    Error::quoting(Kind::Conflict, format!("stack `{stack}` is {status}{reason}"))
        .or("repair it in the CloudFormation console first")
}

/// Returns the error about a change set that CloudFormation could not make.
fn refused(stack: &str, reason: &str) -> Error {
    let refused = format!("CloudFormation refused the change of stack `{stack}`");
    if reason.trim().is_empty() {
        return Error::failed(format!("{refused} without a reason")).or(SEE_EVENTS);
    }
    Error::quoting(Kind::Failed, format!("{refused}: {reason}"))
}

fn parameters(change: &Change, existing: Option<&Stack>) -> Vec<Parameter> {
    let given = change
        .parameters
        .iter()
        .map(|(key, value)| Parameter::builder().parameter_key(key).parameter_value(value).build());
    let kept = existing.into_iter().flat_map(|stack| stack.parameters.keys());
    let kept = kept.filter(|key| !change.parameters.contains_key(*key) && change.template.may_have_parameter(key));
    let kept = kept.map(|key| Parameter::builder().parameter_key(key).use_previous_value(true).build());
    given.chain(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_cloudformation_does_not_give_is_not_printed() {
        insta::assert_snapshot!(broken("s", "DELETE_FAILED", "b is not empty; empty it"), @"stack `s` is DELETE_FAILED (b is not empty; empty it); repair it in the CloudFormation console first");
        insta::assert_snapshot!(broken("s", "DELETE_FAILED", ""), @"stack `s` is DELETE_FAILED; repair it in the CloudFormation console first");
        insta::assert_snapshot!(refused("s", "no parameter `x`"), @"CloudFormation refused the change of stack `s`: no parameter `x`");
        insta::assert_snapshot!(refused("s", " "), @"CloudFormation refused the change of stack `s` without a reason; see the stack's events in the CloudFormation console");
    }

    #[test]
    fn parameters_that_are_not_given_keep_their_value_while_the_template_has_them() {
        let stack = Stack {
            id: "arn".into(),
            name: "s".into(),
            status: StackStatus::CreateComplete,
            reason: String::new(),
            parameters: [("A", "1"), ("B", "****"), ("Gone", "3")].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            outputs: BTreeMap::new(),
            changed_at: String::new(),
        };
        let change = Change {
            stack: "s".into(),
            template: Template::Body("Parameters:\n  A: {Type: String}\n  B: {Type: String}\n".into()),
            parameters: [("A".to_owned(), "2".to_owned())].into(),
            tags: BTreeMap::new(),
        };

        let sent = parameters(&change, Some(&stack));

        let found: Vec<_> =
            sent.iter().map(|p| (p.parameter_key(), p.parameter_value(), p.use_previous_value())).collect();
        assert_eq!(found, [(Some("A"), Some("2"), None), (Some("B"), None, Some(true))]);
    }
}
