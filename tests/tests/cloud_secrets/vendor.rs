//! Everything that the vendor has of an install: rows, objects, histories of executions, logs of functions, and messages.

use std::collections::BTreeMap;

use anyhow::ensure;
use aws_credential_types::Credentials;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_types::SdkConfig;
use freehold_protocol::Envelope;
use freehold_protocol::envelope::decode_base64;
use freehold_tests::faults::Queues;
use freehold_tests::harness::World;
use freehold_tests::harness::clients::REGION;
use freehold_tests::harness::web::send_signed_for;
use serde_json::{Value, json};

/// Returns all rows of the tenant's table, with orders, reports and logs of jobs, all objects of its buckets, the histories
/// of all executions of its state machines, and the logs of its functions. Messages are left out, because they can only be
/// taken.
pub(crate) async fn what_the_vendor_has(world: &World) -> anyhow::Result<String> {
    let account = world.administrator(world.tenant_account())?;
    let parts =
        [rows(world, &account).await?, objects(world, &account).await?, logs_of_functions(world, &account).await?];
    Ok(parts.concat() + &histories(world, &account).await?)
}

async fn rows(world: &World, account: &SdkConfig) -> anyhow::Result<String> {
    let table = aws_sdk_dynamodb::Client::new(account);
    let mut rows = table.scan().table_name(format!("fh-{}", world.tenant())).into_paginator().items().send();
    let mut found = String::new();
    while let Some(row) = rows.next().await {
        for value in row?.values() {
            found.push_str(&text(value));
            found.push('\n');
        }
    }
    Ok(found)
}

/// Returns a value of the table as text; a deflated one is read.
fn text(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) => text.clone(),
        AttributeValue::B(bytes) => inflated(bytes.as_ref()),
        other => format!("{other:?}"),
    }
}

fn inflated(bytes: &[u8]) -> String {
    use std::io::Read as _;

    let mut text = Vec::new();
    match flate2::read::DeflateDecoder::new(bytes).read_to_end(&mut text) {
        Ok(_) => String::from_utf8_lossy(&text).into_owned(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

async fn objects(world: &World, account: &SdkConfig) -> anyhow::Result<String> {
    let s3 = aws_sdk_s3::Client::new(account);
    let prefix = format!("fh-{}--", world.tenant());
    let mut found = String::new();
    for bucket in s3.list_buckets().send().await?.buckets() {
        let Some(name) = bucket.name().filter(|name| name.starts_with(&prefix)) else { continue };
        let mut pages = s3.list_objects_v2().bucket(name).into_paginator().send();
        while let Some(page) = pages.next().await {
            for object in page?.contents() {
                let key = object.key().unwrap_or_default();
                let body = s3.get_object().bucket(name).key(key).send().await?.body.collect().await?;
                found.push_str(&String::from_utf8_lossy(&body.into_bytes()));
            }
        }
    }
    Ok(found)
}

async fn logs_of_functions(world: &World, account: &SdkConfig) -> anyhow::Result<String> {
    let logs = aws_sdk_cloudwatchlogs::Client::new(account);
    let of_tenant = format!("fh-{}", world.tenant());
    let mut groups = logs.describe_log_groups().into_paginator().items().send();
    let mut found = String::new();
    while let Some(group) = groups.next().await {
        let group = group?;
        let Some(name) = group.log_group_name().filter(|name| name.contains(&of_tenant)) else { continue };
        let mut pages = logs.filter_log_events().log_group_name(name).into_paginator().send();
        while let Some(page) = pages.next().await {
            for event in page?.events() {
                found.push_str(event.message().unwrap_or_default());
                found.push('\n');
            }
        }
    }
    Ok(found)
}

async fn histories(world: &World, account: &SdkConfig) -> anyhow::Result<String> {
    let states = aws_sdk_sfn::Client::new(account);
    let prefix = format!("fh-{}--", world.tenant());
    let mut machines = states.list_state_machines().into_paginator().items().send();
    let mut found = String::new();
    while let Some(machine) = machines.next().await {
        let machine = machine?;
        if !machine.name().starts_with(&prefix) {
            continue;
        }
        let executions = states.list_executions().state_machine_arn(machine.state_machine_arn());
        let mut executions = executions.into_paginator().items().send();
        while let Some(execution) = executions.next().await {
            found.push_str(&history(world, execution?.execution_arn()).await?);
        }
    }
    Ok(found)
}

/// Returns the history of an execution as the API answers it: the SDK hides inputs and outputs when it prints an event.
async fn history(world: &World, execution: &str) -> anyhow::Result<String> {
    let aws = format!("https://states.{REGION}.amazonaws.com");
    let url = format!("{}/", world.endpoint().unwrap_or(&aws));
    let keys = world.administrator_keys(world.tenant_account())?;
    let headers =
        [("content-type", "application/x-amz-json-1.0"), ("x-amz-target", "AWSStepFunctions.GetExecutionHistory")];
    let (mut found, mut request) = (String::new(), json!({ "executionArn": execution, "maxResults": 1000 }));
    loop {
        let answer = send_signed_for("states", &keys, "POST", &url, &headers, request.to_string().as_bytes()).await?;
        ensure!(answer.status == 200, "no history of `{execution}`: {} {}", answer.status, answer.body);
        found.push_str(&answer.body);
        let page: Value = serde_json::from_str(&answer.body)?;
        if page["nextToken"].is_null() {
            return Ok(found);
        }
        request["nextToken"] = page["nextToken"].clone();
    }
}

/// Takes all messages of the tenant's queues, dead letters included, and returns them by queue. Orders may be taken by
/// `runner` alone, the role of the install's runner, and those of builds by the role of the build runner.
pub(crate) async fn take_messages(world: &World, runner: Credentials) -> anyhow::Result<BTreeMap<String, String>> {
    let queues = Queues::new(world)?;
    let builder = world.role(world.tenant_account(), &format!("fh-{}--build-runner", world.tenant())).await?;
    let taker = |role: Credentials| anyhow::Ok(aws_sdk_sqs::Client::new(&world.acting_as(role)?));
    let (runner, builder) = (taker(runner)?, taker(builder)?);
    let mut found = BTreeMap::new();
    for name in queues.names().await? {
        let bodies = match name.as_str() {
            "globex.fifo" => queues.take_all_as(&runner, &name).await?,
            "build.fifo" => queues.take_all_as(&builder, &name).await?,
            _ => queues.take_all(&name).await?,
        };
        found.insert(name, bodies.iter().map(|body| with_payload(body)).collect());
    }
    Ok(found)
}

/// Returns a message with the payload of its envelope, if it is one.
fn with_payload(body: &str) -> String {
    let payload = Envelope::parse(body.as_bytes()).and_then(|envelope| decode_base64(&envelope.payload));
    let payload = payload.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    format!("{body}\n{payload}\n")
}
