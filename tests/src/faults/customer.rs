//! What the customer does in the middle of work: switches off, deletes, and does not agree.

use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::cell::{APP, Cell, LIMIT, states};
use super::class::{Point, Tried, declare};
use crate::harness::app;
use crate::harness::wait::until;

declare! {
    22 "the customer switches a mode off in the middle of a job" mode_off [];
    23 "the customer stops the runner" switched_off [];
    24 "the install stack is deleted" stack_deleted [];
    29 "the customer's consent denies" beyond_consent [];
}

/// The customer switches the mode off while a call of its job is under way: the job ends, and no other call is made under
/// another role; a deploy after the mode is on again does it all.
async fn mode_off(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let skip = point.number % 5;
    cell.on_runner(&format!("cloudformation.* 1 hold skip={skip} times=1"))?;
    let begun = cell.deploy().await?;
    cell.hit_within(LIMIT).await;
    let hit = cell.hits() > 0;
    cell.world.change_stack(&cell.install, &["EnableMaintenance=false"]).await?;
    cell.calm();
    let ended = cell.ended(&begun).await;
    cell.world.change_stack(&cell.install, &["EnableMaintenance=true"]).await?;
    let workflow = ended?;
    let jobs = cell.jobs(&workflow).await?;
    let blocked = jobs.iter().any(|(_, job)| job.state.as_str() == "blocked");
    let next = cell.deploy().await?;
    cell.succeeds(&next).await?;
    ensure!(!hit || blocked, "no job is blocked: {:?}", states(&workflow));
    Ok(Tried::when(hit))
}

/// The customer switches the runner off before or in the middle of a job, and on again after a while.
async fn switched_off(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let (when, secs) = (point.of(&["before", "during"]), 5 + u64::from(point.number % 4) * 10);
    cell.effects().hold(when == "during");
    let begun = if when == "before" {
        cell.world.change_stack(&cell.install, &["EnableRunner=false"]).await?;
        cell.act("again").await?
    } else {
        let begun = cell.act("again").await?;
        cell.wrote(&begun, "begin", 0).await?;
        cell.world.change_stack(&cell.install, &["EnableRunner=false"]).await?;
        begun
    };
    tokio::time::sleep(Duration::from_secs(secs)).await;
    let waits = !cell.workflow(&begun.workflow).await?.state.is_terminal();
    cell.world.change_stack(&cell.install, &["EnableRunner=true"]).await?;
    cell.effects().hold(false);
    cell.succeeds(&begun).await?;
    ensure!(waits, "the work ended although the runner was switched off");
    Ok(Tried::Passed)
}

/// The customer deletes the install stack of an install that is ready, with its runner at work: what was deployed stays.
async fn stack_deleted(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let name = format!("gone-{}", cell.next_try());
    let install = cell.world.install_with_inputs(&name, APP, &["round:=1"]).await?;
    let mut runner = cell.world.runner(&install).await?;
    cell.world.provisioned(&install).await?;
    let cloudformation = aws_sdk_cloudformation::Client::new(&cell.world.administrator(&install.account)?);
    let stack = format!("freehold-{}--{name}", cell.world.tenant());
    cloudformation.delete_stack().stack_name(&stack).send().await?;
    until("the stack is gone", LIMIT, || async {
        let found = cloudformation.describe_stacks().stack_name(&stack).send().await;
        let all = found.map(|found| found.stacks().iter().filter_map(|one| one.stack_status().cloned()).collect());
        let left: Vec<aws_sdk_cloudformation::types::StackStatus> = all.unwrap_or_default();
        Ok(left.iter().all(|status| status.as_str() == "DELETE_COMPLETE").then_some(()))
    })
    .await?;
    if point.of(&[false, true]) {
        // Nobody can do it.
        cell.world.vendor(&["action", "run", &name, "note", "--no-wait"]).await?;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    for queue in ["first", "second"] {
        let delay = cell.queues.delay(&cell.world, &install, &format!("{name}-{queue}")).await;
        ensure!(delay.context("what was deployed is gone")? == 1, "`{queue}` was changed");
    }
    let all = cell.world.vendor(&["workflow", "list", &name]).await?;
    let kinds: Vec<_> = all.as_array().into_iter().flatten().map(|one| one["kind"].clone()).collect();
    ensure!(!kinds.iter().any(|kind| kind == "teardown-install"), "a teardown began by itself: {kinds:?}");
    runner.kill().await?;
    Ok(Tried::Passed)
}

/// The vendor asks for more than the customer agreed to, by one of several permissions: the runner refuses it.
async fn beyond_consent(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let action = point.of(&["sqs:PurgeQueue", "s3:DeleteBucket", "iam:CreateUser", "kms:Decrypt", "ec2:RunInstances"]);
    let name = format!("wary-{}", cell.next_try());
    let directory = app::small(&cell.world.directory().join(&name))?;
    let path = directory.display().to_string();
    cell.world.vendor(&["app", "sync", &path]).await?;
    let install = cell.world.install(&name, "small").await?;
    let role = std::fs::read_to_string(directory.join("permissions/provision.toml"))?;
    let policy = format!(
        r#"{{"Version": "2012-10-17", "Statement": [{{"Effect": "Allow", "Action": "{action}", "Resource": "*"}}]}}"#
    );
    let wider = format!("{role}\n[[policies]]\nname = \"more\"\ncontents = \"./more.json\"\n");
    app::write(&directory, "permissions/more.json", &policy)?;
    app::write(&directory, "permissions/provision.toml", &wider)?;
    let post = "name = \"say\"\ntimeout = \"1m\"\n\n[[triggers]]\ntype = \"post-provision\"\n\n[[steps]]\nname = \
                \"say\"\ncommand = \"echo said\"\n";
    app::write(&directory, "actions/say.toml", post)?;
    cell.world.vendor(&["app", "sync", &path]).await?;
    let mut runner = cell.world.runner(&install).await?;
    let provisioned = cell.world.provisioned(&install).await;
    let log = runner.log();
    runner.kill().await?;
    // So that the next try begins with what its customer can agree to.
    std::fs::remove_dir_all(&directory)?;
    ensure!(provisioned.is_err(), "the runner followed what nobody agreed to: {provisioned:?}");
    ensure!(log.contains("the customer has not agreed to its order"), "the runner itself did not refuse: {log}");
    let workflow = cell.world.newest_workflow(&name).await?;
    let reason = workflow["nodes"][0]["reason"].as_str().unwrap_or_default();
    ensure!(workflow["nodes"][0]["state"] == "blocked" && reason.contains(action), "{workflow}");
    Ok(Tried::Passed)
}
