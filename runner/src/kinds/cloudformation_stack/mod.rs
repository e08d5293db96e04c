//! `cloudformation_stack`: executes a change set and waits for its end. AWS does the work, so the job does not need a
//! box.

mod events;
mod execution;
#[cfg(test)]
mod fake;
mod halt;
mod health;
mod ownership;
mod remove;
mod stack;

use std::collections::BTreeMap;

use aws_sdk_cloudformation::Client;
use aws_sdk_cloudformation::operation::create_change_set::builders::CreateChangeSetFluentBuilder;
use aws_sdk_cloudformation::types::{
    Capability, ChangeAction, ChangeSetStatus, ChangeSetType, Parameter, Replacement, ResourceAttribute,
    ResourceChange, Tag,
};
use freehold_protocol::digest::hex;
use freehold_protocol::order::{DeployStack, TEMPLATE_LAYER};
use serde_json::{Value, json};

use crate::approvals::{self, Asked};
use crate::job::bucket::{JobBucket, explain};
use crate::job::failure::{Failure, until_stopped};
use crate::job::{Job, sdk_config};
use crate::kinds::guard;
use crate::kinds::result::Done;
use crate::kinds::sync_artifact::{fetch_layer, sync_artifact};
use crate::kinds::templates::Templates;
use crate::workspace::{self, WorkspaceError};
use events::Events;
pub(super) use health::health;
pub(super) use remove::{HOLDERS, remove};
use stack::{Pause, Stack, State, describe, settle};

/// The file name of the template in the workspace.
const TEMPLATE: &str = "template";
/// The maximum number of change sets that one attempt tries to create.
const MOST_SETS: usize = 3;
/// The size limit of a template in a request, in bytes (CloudFormation quotas, "Template body size in a request").
const MAX_INLINE_BYTES: usize = 51_200;
/// The size limit of a template in a bucket, in bytes (CloudFormation quotas).
const MAX_BYTES: u64 = 1_048_576;

pub(super) async fn run(job: &Job, work: &DeployStack) -> Result<Done, Failure> {
    let templates = Templates::of(job);
    let name = templates.text("stack name", &work.stack_name)?;
    ownership::check_name(&job.order, &name)?;
    let parameters = templates.map("parameter", &work.parameters)?;
    let sdk = sdk_config(job).await;
    let client = Client::new(&sdk);
    let asked = approvals::asked(job).await?;
    let done = until_stopped(job, async {
        let repository = sync_artifact(job, &work.artifact).await?;
        fetch_layer(&repository, &work.artifact, TEMPLATE_LAYER, &job.workspace.join(TEMPLATE)).await?;
        let deploy = Deploy { job, client: &client, name: &name };
        let stack = deploy.make_ready().await?;
        let request = deploy.change_set(work, &parameters, stack.as_ref());
        let request = with_template(job, &sdk, request).await?;
        if let Some(set) = deploy.plan(request).await? {
            let asked = deploy.ask(&set, asked, (work, &parameters)).await;
            if let Err(failure) = asked {
                deploy.drop_change_set(&set).await;
                return Err(failure);
            }
            deploy.execute(&set).await.map_err(Failure::after_change)?;
        }
        deploy.done().await
    })
    .await;
    halt::halt_if_cancelled(job, &client, &name, done).await
}

async fn with_template(
    job: &Job,
    sdk: &aws_types::SdkConfig,
    request: CreateChangeSetFluentBuilder,
) -> Result<CreateChangeSetFluentBuilder, Failure> {
    let bytes = workspace::read(&job.workspace, TEMPLATE, MAX_BYTES).await.map_err(|error| match error {
        WorkspaceError::TooLarge { size, most, .. } => {
            Failure::new(format!("the template is {size} bytes; CloudFormation takes at most {most}"))
        }
        other => Failure::from(other),
    })?;
    if bytes.len() > MAX_INLINE_BYTES {
        let store = JobBucket::of(job, sdk)?;
        let key = format!("plans/{}/{}.template", job.order.job, job.fence);
        store.put(&key, bytes).await?;
        return Ok(request.template_url(store.url(&key).await?));
    }
    let text = String::from_utf8(bytes).map_err(|_| Failure::new("the template is not UTF-8 text"))?;
    Ok(request.template_body(text))
}

struct Deploy<'a> {
    job: &'a Job,
    client: &'a Client,
    name: &'a str,
}

impl Deploy<'_> {
    /// Returns a name for a change set of this attempt. The name is random: anybody with the mode's rights could make a
    /// set of a known name first.
    fn new_name(&self) -> Result<String, Failure> {
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| self.failure("plan the change of", format!("the system gave no random bytes: {error}")))?;
        let (job, fence, random) = (&self.job.order.job, self.job.fence, hex(&random));
        Ok(format!("fh-{job}-{}-{}-{random}", fence.dispatch, fence.receive).replace('_', "-"))
    }

    /// Waits for a running change, and deletes a stack whose creation failed. Returns the stack to update, or `None` if it
    /// must be created.
    async fn make_ready(&self) -> Result<Option<Stack>, Failure> {
        let Some(mut stack) = describe(self.client, self.name).await? else { return Ok(None) };
        ownership::check(&self.job.order, self.name, &stack)?;
        if stack.state() == State::Working {
            self.job.log.line(&format!(
                "stack `{}` is being changed, perhaps by an earlier attempt; waiting for the end of that change",
                self.name
            ));
            let mut events = Events::from_now(self.client, self.name).await?;
            match settle(self.job, self.client, self.name, &mut events).await? {
                Some(settled) => stack = settled,
                None => return Ok(None),
            }
        }
        match stack.state() {
            State::Absent => Ok(None),
            State::Sound | State::Working => Ok(Some(stack)),
            State::NeverMade => {
                let (name, status) = (self.name, &stack.status);
                self.job.log.line(&format!(
                    "stack `{name}` is left over from a failed creation ({status}) and is deleted first"
                ));
                self.delete().await?;
                Ok(None)
            }
            State::Stuck => Err(Failure::new(format!(
                "stack `{}` is {}, and CloudFormation cannot leave this status automatically; continue the rollback of the \
                 stack or delete the stack",
                self.name, stack.status
            ))),
        }
    }

    async fn delete(&self) -> Result<(), Failure> {
        let mut events = Events::from_now(self.client, self.name).await?;
        let deleted = self.client.delete_stack().stack_name(self.name).send().await;
        deleted.map_err(|error| self.failure("delete", explain(&error)))?;
        match settle(self.job, self.client, self.name, &mut events).await? {
            None => Ok(()),
            Some(stack) => Err(self.failure("delete", format!("it is {}{}", stack.status, events.reason()))),
        }
    }

    fn change_set(
        &self,
        work: &DeployStack,
        parameters: &BTreeMap<String, String>,
        stack: Option<&Stack>,
    ) -> CreateChangeSetFluentBuilder {
        let parameter =
            |(key, value): (&String, &String)| Parameter::builder().parameter_key(key).parameter_value(value).build();
        let order = &self.job.order;
        let tags = ownership::tags(order, stack).into_iter();
        self.client
            .create_change_set()
            .stack_name(self.name)
            .change_set_type(if stack.is_some() { ChangeSetType::Update } else { ChangeSetType::Create })
            .description(format!("job {} attempt {}", order.job, self.job.fence))
            .set_parameters(Some(parameters.iter().map(parameter).collect()))
            .set_capabilities(Some(work.capabilities.iter().map(|word| Capability::from(word.as_str())).collect()))
            .set_tags(Some(tags.map(|(key, value)| Tag::builder().key(key).value(value).build()).collect()))
    }

    /// Creates a change set and returns its id. Later calls use the id: another set that gets this name meanwhile has
    /// another id.
    async fn create(&self, request: CreateChangeSetFluentBuilder) -> Result<String, Failure> {
        let mut name = self.new_name()?;
        for _ in 0..MOST_SETS {
            match request.clone().change_set_name(&name).send().await {
                Ok(set) => {
                    let no_id = || self.failure("plan the change of", "CloudFormation gave no id".to_owned());
                    return set.id.ok_or_else(no_id);
                }
                // The response to an earlier try of this call was lost, or somebody made a set of this name meanwhile.
                // The runner cannot tell which, so it does not use the set.
                Err(error) if error.as_service_error().is_some_and(|error| error.is_already_exists_exception()) => {
                    self.drop_change_set(&name).await;
                    name = self.new_name()?;
                }
                Err(error) => return Err(self.failure("plan the change of", explain(&error))),
            }
        }
        Err(self
            .failure("plan the change of", "each change set that the runner tried to create exists already".to_owned()))
    }

    /// Creates the change set and waits until it is ready. Returns its id, or `None` if it contains no changes.
    async fn plan(&self, request: CreateChangeSetFluentBuilder) -> Result<Option<String>, Failure> {
        let id = self.create(request).await?;
        let mut pause = Pause::default();
        loop {
            let set = self.client.describe_change_set().stack_name(self.name).change_set_name(&id);
            let set = set.send().await.map_err(|error| self.failure("plan the change of", explain(&error)))?;
            match set.status() {
                Some(ChangeSetStatus::CreateComplete) => {
                    let more = if set.next_token().is_some() { " or more" } else { "" };
                    self.job.log.line(&format!("change set: {}{more} resource changes", set.changes().len()));
                    return Ok(Some(id));
                }
                Some(ChangeSetStatus::Failed) => {
                    let reason = set.status_reason().unwrap_or_default();
                    self.drop_change_set(&id).await;
                    if freehold_aws_errors::means_no_changes(reason) {
                        self.job.log.line(&format!("stack `{}` is up to date", self.name));
                        return Ok(None);
                    }
                    return Err(self.failure("plan the change of", reason.to_owned()));
                }
                _ => pause.wait().await,
            }
        }
    }

    /// Evaluates the policies on the changes in the change set, and requires an approval if somebody has to approve it.
    async fn ask(
        &self,
        set: &str,
        asked: Asked,
        (work, parameters): (&DeployStack, &BTreeMap<String, String>),
    ) -> Result<(), Failure> {
        let set = self.client.describe_change_set().stack_name(self.name).change_set_name(set);
        let mut pages = set.into_paginator().send();
        let (mut changes, mut details) = (Vec::new(), Vec::new());
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| self.failure("read the planned change of", explain(&error)))?;
            let resources = page.changes().iter().filter_map(|change| change.resource_change());
            for resource in resources {
                changes.push(change(resource));
                details.push(detail(resource));
            }
        }
        let planned = approvals::of_plan(&json!({ "resource_changes": changes }));
        guard::changes(self.job, changes).await?;
        let template = workspace::read(&self.job.workspace, TEMPLATE, MAX_BYTES).await?;
        let template = String::from_utf8_lossy(&template);
        let document = json!({ "stack": self.name, "template": template, "changes": details });
        let inputs = json!({ "parameters": parameters, "capabilities": work.capabilities });
        Box::pin(approvals::require_document_approval(self.job, asked, planned, (&document, inputs))).await
    }

    /// Deletes the change set with this id or name, and ignores a failure: a remaining change set only lengthens the
    /// stack's list of change sets.
    async fn drop_change_set(&self, set: &str) {
        let _ = self.client.delete_change_set().stack_name(self.name).change_set_name(set).send().await;
    }

    async fn execute(&self, set: &str) -> Result<(), Failure> {
        let mut events = Events::from_now(self.client, self.name).await?;
        let started = execution::start(self.client, self.name, set, self.new_name()?).await;
        started.map_err(|reason| self.failure("change", reason))?;
        match settle(self.job, self.client, self.name, &mut events).await? {
            Some(stack) if stack.is_done() => Ok(()),
            Some(stack) => {
                Err(Failure::partial(format!("stack `{}` is {}{}", self.name, stack.status, events.reason())))
            }
            None => Err(Failure::partial(format!("stack `{}` was deleted meanwhile", self.name))),
        }
    }

    async fn done(&self) -> Result<Done, Failure> {
        let stack = describe(self.client, self.name).await?;
        Ok(Done { outputs: stack.map(|stack| stack.outputs).unwrap_or_default(), ..Done::default() })
    }

    fn failure(&self, verb: &str, reason: String) -> Failure {
        Failure::new(format!("could not {verb} stack `{}`: {reason}", self.name))
    }
}

/// Returns a change of the change set in the form of a plan of Terraform. CloudFormation gives no properties.
fn change(change: &ResourceChange) -> serde_json::Value {
    let is_replaced = matches!(change.replacement(), Some(Replacement::True | Replacement::Conditional));
    let actions: &[&str] = match change.action() {
        Some(ChangeAction::Add) => &["create"],
        Some(ChangeAction::Remove) => &["delete"],
        Some(ChangeAction::Modify) if is_replaced => &["delete", "create"],
        Some(ChangeAction::Modify) => &["update"],
        // CloudFormation does not know the action yet, or returns an action that this version does not know.
        Some(_) | None => &["unknown"],
    };
    let (address, kind) =
        (change.logical_resource_id().unwrap_or_default(), change.resource_type().unwrap_or_default());
    guard::change(address, kind, actions, &serde_json::Value::Null, &serde_json::Value::Null)
}

/// Returns the parts of a change that the bytes of an approved plan contain.
fn detail(change: &ResourceChange) -> Value {
    json!({
        "action": change.action().map(ChangeAction::as_str),
        "id": change.logical_resource_id(),
        "physical_id": change.physical_resource_id(),
        "type": change.resource_type(),
        "replacement": change.replacement().map(Replacement::as_str),
        "scope": change.scope().iter().map(ResourceAttribute::as_str).collect::<Vec<_>>(),
    })
}
