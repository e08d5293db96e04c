//! Removes a stack of the install. It never removes a stack with termination protection. It removes a stack that holds
//! data only when the order permits this.

use aws_sdk_cloudformation::Client;
use freehold_protocol::order::DeployStack;
use serde_json::{Value, json};

use super::events::Events;
use super::stack::{State, describe, settle};
use super::{halt, ownership};
use crate::approvals;
use crate::job::bucket::explain;
use crate::job::failure::{Failure, until_stopped};
use crate::job::{Job, sdk_config};
use crate::kinds::guard;
use crate::kinds::result::Done;
use crate::kinds::templates::Templates;

/// The types of resources that hold data, as CloudFormation names them. Buckets are not in this list, because
/// CloudFormation deletes only empty buckets.
pub(in crate::kinds) const HOLDERS: [&str; 22] = [
    "AWS::Backup::BackupVault",
    "AWS::Cassandra::Table",
    "AWS::Cognito::UserPool",
    "AWS::DocDB::DBCluster",
    "AWS::DynamoDB::GlobalTable",
    "AWS::DynamoDB::Table",
    "AWS::EC2::Volume",
    "AWS::EFS::FileSystem",
    "AWS::ElastiCache::CacheCluster",
    "AWS::ElastiCache::ReplicationGroup",
    "AWS::ElastiCache::ServerlessCache",
    "AWS::FSx::FileSystem",
    "AWS::KMS::Key",
    "AWS::MSK::Cluster",
    "AWS::MemoryDB::Cluster",
    "AWS::Neptune::DBCluster",
    "AWS::OpenSearchService::Domain",
    "AWS::RDS::DBCluster",
    "AWS::RDS::DBInstance",
    "AWS::Redshift::Cluster",
    "AWS::SecretsManager::Secret",
    "AWS::Timestream::Table",
];

pub(in crate::kinds) async fn remove(job: &Job, work: &DeployStack, destroy_data: bool) -> Result<Done, Failure> {
    let name = Templates::of(job).text("stack name", &work.stack_name)?;
    ownership::check_name(&job.order, &name)?;
    let client = Client::new(&sdk_config(job).await);
    let removal = Removal { job, client: &client, name: &name };
    let done = until_stopped(job, removal.run(destroy_data)).await;
    halt::halt_if_cancelled(job, &client, &name, done).await
}

struct Removal<'a> {
    job: &'a Job,
    client: &'a Client,
    name: &'a str,
}

impl Removal<'_> {
    async fn run(&self, destroy_data: bool) -> Result<Done, Failure> {
        let Self { job, client, name } = self;
        let mut events = Events::from_now(client, name).await?;
        let Some(mut stack) = describe(client, name).await? else {
            job.log.line(&format!("stack `{name}` does not exist"));
            return Ok(Done::default());
        };
        ownership::check(&job.order, name, &stack)?;
        if stack.state() == State::Working {
            job.log.line(&format!("stack `{name}` is {}; waiting for the end of that change", stack.status));
            match settle(job, client, name, &mut events).await? {
                Some(settled) => stack = settled,
                None => return Ok(Done::default()),
            }
        }
        if stack.protected {
            return Err(Failure::new(format!(
                "stack `{name}` has termination protection; switch it off in the customer's account and tear down again"
            )));
        }
        let (held, changes) = self.list_resources().await?;
        if !held.is_empty() && !destroy_data {
            return Err(Failure::destroys_data(&held));
        }
        let planned = approvals::of_plan(&json!({ "resource_changes": changes }));
        let document = json!({ "stack": name, "removal": changes });
        guard::changes(job, changes).await?;
        Box::pin(approvals::require_document_approval(
            job,
            approvals::asked(job).await?,
            planned,
            (&document, Value::Null),
        ))
        .await?;
        let deleted = client.delete_stack().stack_name(*name).send().await;
        deleted.map_err(|error| Failure::new(format!("could not delete stack `{name}`: {}", explain(&error))))?;
        match settle(job, client, name, &mut events).await? {
            None => Ok(Done::default()),
            Some(stack) => Err(Failure::partial(format!("stack `{name}` is {}{}", stack.status, events.reason()))),
        }
    }

    /// Returns the resources of the stack that hold data, and the deletions of all its resources for policies. Logs their
    /// number.
    async fn list_resources(&self) -> Result<(Vec<String>, Vec<Value>), Failure> {
        let mut pages = self.client.list_stack_resources().stack_name(self.name).into_paginator().items().send();
        let (mut held, mut changes) = (Vec::new(), Vec::new());
        while let Some(resource) = pages.next().await {
            let resource = resource
                .map_err(|error| Failure::new(format!("could not list stack `{}`: {}", self.name, explain(&error))))?;
            let kind = resource.resource_type().unwrap_or_default();
            let id = resource.logical_resource_id().unwrap_or_default();
            changes.push(guard::change(id, kind, &["delete"], &Value::Null, &Value::Null));
            if HOLDERS.contains(&kind) {
                held.push(format!("{id} ({kind})"));
            }
        }
        self.job.log.line(&format!("stack `{}`: {} resources to delete", self.name, changes.len()));
        Ok((held, changes))
    }
}
