//! What the customer does in the middle of work: switches off, deletes, and does not agree.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use freehold_app::messages::{GrantMessage, Wants};
use freehold_app::table::grants_pk;
use freehold_domain::job::Job;
use freehold_protocol::report::{Away, AwayReason, Fence, Report, ReportBody};
use freehold_protocol::{Digest, Envelope, GrantId, JobId};
use freehold_runner::keys::runner_key::Identity;

use super::calls::{self, Work};
use super::cell::{APP, Cell, LIMIT, states};
use super::class::{Point, Tried, declare};
use crate::harness::forger::now;
use crate::harness::runner::Signal;
use crate::harness::wait::until;
use crate::harness::{Install, app};

declare! {
    22 "the customer switches a mode off in the middle of a job" mode_off [];
    23 "the customer stops the runner" switched_off [];
    24 "the install stack is deleted" stack_deleted [];
    29 "the customer's consent denies" beyond_consent [];
}

/// The customer switches the mode off while a call of its job is under way, each call of a deploy: the job ends, and its
/// reason names the switch; a deploy after the mode is on again does it all.
async fn mode_off(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let count = cell.calls(&point, Work::Deploy, calls::STACKS).await?;
    let [skip] = point.among([count]);
    cell.fail(calls::STACKS, "hold", &format!("skip={skip} times=1"))?;
    let begun = cell.deploy().await?;
    cell.hit_within(LIMIT).await;
    let hit = cell.hits() > 0;
    cell.world.change_stack(&cell.install, &["EnableMaintenance=false"]).await?;
    cell.calm();
    let ended = cell.ended(&begun).await;
    cell.world.change_stack(&cell.install, &["EnableMaintenance=true"]).await?;
    let workflow = ended?;
    let jobs = cell.jobs(&workflow).await?;
    // A job that had changed something is not `blocked`, and has failed for the same reason.
    let is_stopped = |job: &Job| matches!(job.state.as_str(), "blocked" | "failed");
    let names_switch = |job: &Job| job.reason().is_some_and(|reason| reason.contains("switched off"));
    let blocked = jobs.iter().any(|(_, job)| is_stopped(job) && names_switch(job));
    let next = cell.deploy().await?;
    cell.succeeds(&next).await?;
    ensure!(!hit || blocked, "no job ended for the switch: {:?}", states(&workflow));
    Ok(Tried::when(hit))
}

/// The customer switches the runner off before or in the middle of a job, and on again after a while.
async fn switched_off(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let [when, secs] = point.among([2, 4]);
    let (when, secs) = (["before", "during"][when], [5, 15, 25, 35][secs]);
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

/// The customer deletes the install stack of an install that is ready: its queue gives no orders any more, grants are
/// refused, and what was deployed stays, also after sweeps. The local cloud deletes the role of a runner before its
/// machine ends, so the report that a runner sends at the end of its machine is sent before the deletion.
async fn stack_deleted(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let name = format!("gone-{}", cell.next_try());
    let install = cell.world.install_with_inputs(&name, APP, &["round:=1"]).await?;
    let mut runner = cell.world.runner(&install).await?;
    cell.world.provisioned(&install).await?;
    let workflow = cell.world.newest_workflow(&name).await?;
    ensure!(cell.queues.gives_orders(&name).await?, "the queue gives no orders while the stack exists");
    // Stopped and not killed: a runner that lives would announce itself again.
    runner.signal(Signal::TERM)?;
    runner.ends(LIMIT).await?;
    report_deletion(cell, &install, &Identity::load_or_make(&runner.state_directory()?)?).await?;
    delete_stack(cell, &install).await?;
    if point.of(&[false, true]) {
        // Nobody can do it.
        cell.world.vendor(&["action", "run", &name, "note", "--no-wait"]).await?;
    }
    until("the install is cut off", LIMIT, || async {
        let view = cell.world.vendor(&["install", "show", &name]).await?;
        Ok((view["connection"]["state"] == "cut_off").then_some(()))
    })
    .await?;
    for _ in 0..2 {
        cell.queues.invoke("sweep").await?;
    }
    ensure!(!cell.queues.gives_orders(&name).await?, "the queue still gives orders after two sweeps");
    let job = workflow["nodes"][0]["job"].as_str().context("a workflow without a job")?;
    let refusal = refusal_of_grant(cell, &name, &job.parse()?).await?;
    ensure!(refusal == "cut_off", "a grant was refused as {refusal}, and not because the install is cut off");
    for queue in ["first", "second"] {
        let delay = cell.queues.delay(&cell.world, &install, &format!("{name}-{queue}")).await;
        ensure!(delay.context("what was deployed is gone")? == 1, "`{queue}` was changed");
    }
    let all = cell.world.vendor(&["workflow", "list", &name]).await?;
    let kinds: Vec<_> = all.as_array().into_iter().flatten().map(|one| one["kind"].clone()).collect();
    ensure!(!kinds.iter().any(|kind| kind == "teardown-install"), "a teardown began by itself: {kinds:?}");
    Ok(Tried::Passed)
}

/// Sends the last report of a runner whose machine ends because its stack is deleted, with the session of its role.
async fn report_deletion(cell: &Cell, install: &Install, runner: &Identity) -> anyhow::Result<()> {
    let body = Away { reason: AwayReason::StackDeleted, detail: "the stack is being deleted".to_owned() };
    let report = Report {
        tenant: cell.world.tenant().parse()?,
        install: install.name.parse()?,
        runner: runner.id().clone(),
        at: now()?,
        head: None,
        body: ReportBody::Away(body),
    };
    let message = Envelope::seal(&report, &[runner.key()])?.to_json()?;
    let role = format!("fh-{}--{}--runner", cell.world.tenant(), install.name);
    let role = cell.world.role(&install.account, &role).await?;
    let sqs = aws_sdk_sqs::Client::new(&cell.world.acting_as(role)?);
    sqs.send_message().queue_url(cell.queues.url("reports").await?).message_body(message).send().await?;
    Ok(())
}

async fn delete_stack(cell: &Cell, install: &Install) -> anyhow::Result<()> {
    let cloudformation = aws_sdk_cloudformation::Client::new(&cell.world.administrator(&install.account)?);
    let stack = format!("freehold-{}--{}", cell.world.tenant(), install.name);
    cloudformation.delete_stack().stack_name(&stack).send().await?;
    until("the stack is gone", LIMIT, || async {
        let found = cloudformation.describe_stacks().stack_name(&stack).send().await;
        let all = found.map(|found| found.stacks().iter().filter_map(|one| one.stack_status().cloned()).collect());
        let left: Vec<aws_sdk_cloudformation::types::StackStatus> = all.unwrap_or_default();
        Ok(left.iter().all(|status| status.as_str() == "DELETE_COMPLETE").then_some(()))
    })
    .await
}

/// Asks for a grant as the attempt at a job does, and returns the word for the refusal.
async fn refusal_of_grant(cell: &Cell, install: &str, job: &JobId) -> anyhow::Result<String> {
    let (fence, artifact) = (Fence { dispatch: 1, receive: 1 }, Digest::of(b"artifact"));
    let request = GrantMessage {
        install: install.parse()?,
        job: job.clone(),
        fence,
        grant: GrantId::of_round(job, fence, &artifact, 0),
        seq: 1,
        artifact,
        wants: Wants::Blobs { missing: Vec::new(), round: 0 },
    };
    cell.queues.send("grants", &serde_json::to_string(&request)?).await?;
    until("the grant is refused", LIMIT, || async {
        let rows = cell.world.rows(&grants_pk(job), "refused#").await?;
        Ok(rows.first().and_then(|(_, row)| row["refusal"].as_str().map(str::to_owned)))
    })
    .await
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
