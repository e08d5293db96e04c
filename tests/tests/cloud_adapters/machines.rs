//! Step Functions: an execution is started once, and its waiting state gets heartbeats and one callback.

use anyhow::Context as _;
use aws_sdk_sfn::types::ExecutionStatus;
use freehold_app::ports::{Callbacks as _, Machines as _};
use freehold_aws::workflow::{SfnCallbacks, SfnMachines};
use freehold_domain::workflow::WorkflowKind;
use freehold_tests::harness::World;
use freehold_tests::harness::wait::{SOON, until};
use serde_json::json;

/// Returns the ARN of a new role of state machines, which may send to queues.
async fn role_that_sends(iam: &aws_sdk_iam::Client) -> anyhow::Result<String> {
    let trust = json!({ "Version": "2012-10-17", "Statement": [
        { "Effect": "Allow", "Principal": { "Service": "states.amazonaws.com" }, "Action": "sts:AssumeRole" },
    ] });
    let sends = json!({ "Version": "2012-10-17", "Statement": [
        { "Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*" },
    ] });
    let made = iam.create_role().role_name("machine").assume_role_policy_document(trust.to_string()).send().await?;
    iam.put_role_policy().role_name("machine").policy_name("sends").policy_document(sends.to_string()).send().await?;
    Ok(made.role().context("no role")?.arn().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_is_started_once_and_ends_by_its_callback() -> anyhow::Result<()> {
    let Some(world) = World::without_tenant("cloud_adapters.machines", super::NEEDS).await? else { return Ok(()) };
    let config = world.administrator(world.tenant_account())?;
    let (sfn, sqs) = (aws_sdk_sfn::Client::new(&config), aws_sdk_sqs::Client::new(&config));
    let url = super::queue(&world, "tokens").await?;
    let definition = json!({ "StartAt": "Wait", "States": { "Wait": {
        "Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken", "HeartbeatSeconds": 60, "End": true,
        "Parameters": { "QueueUrl": url, "MessageBody": { "token.$": "$$.Task.Token", "input.$": "$" } },
    } } });
    let role = role_that_sends(&aws_sdk_iam::Client::new(&config)).await?;
    let made = sfn.create_state_machine().name("fh-acme--run-action").role_arn(role).definition(definition.to_string());
    let arn = made.send().await?.state_machine_arn;
    let machines = SfnMachines::new(&config, arn.trim_end_matches("run-action"));
    let callbacks = SfnCallbacks::new(&config);
    let (workflow, install) = ("wf_00000000000000000001".parse()?, "globex".parse()?);

    machines.start(WorkflowKind::RunAction, &workflow, &install, 0).await?;
    machines.start(WorkflowKind::RunAction, &workflow, &install, 0).await?;
    let message = until("the state waits", SOON, || async {
        let got = sqs.receive_message().queue_url(&url).wait_time_seconds(1).send().await?;
        Ok(got.messages().first().and_then(|message| message.body()).map(str::to_owned))
    })
    .await?;
    let message: serde_json::Value = serde_json::from_str(&message)?;
    let token = message["token"].as_str().context("no token")?;
    callbacks.heartbeat(token).await?;
    callbacks.succeed(token, &json!({ "state": "succeeded" })).await?;
    let executions = until("the execution ends", SOON, || async {
        let runs = sfn.list_executions().state_machine_arn(&arn).send().await?.executions;
        Ok(runs.iter().all(|one| one.status != ExecutionStatus::Running).then_some(runs))
    })
    .await?;

    assert_eq!(message["input"], json!({ "workflow": workflow, "install": install, "attempt": 0 }));
    let ended: Vec<_> = executions.iter().map(|one| (one.name.as_str(), one.status.as_str())).collect();
    assert_eq!(ended, [(workflow.as_str(), "SUCCEEDED")]);
    // A workflow that is continued has another execution.
    machines.start(WorkflowKind::RunAction, &workflow, &install, 1).await?;
    let runs = sfn.list_executions().state_machine_arn(&arn).send().await?.executions;
    assert!(runs.iter().any(|one| one.name == format!("{workflow}-1")), "{runs:?}");
    // What ends twice is not an error: the second report of a job comes so.
    callbacks.succeed(token, &json!({})).await?;
    callbacks.heartbeat(token).await?;
    Ok(())
}
