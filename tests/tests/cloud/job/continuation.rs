//! A workflow that failed continues with real programs: resumed by two people at once, retried, with a node skipped, and after
//! a cancel that its runner has not answered.

use anyhow::{Context as _, ensure};
use freehold_protocol::order::Order;
use freehold_protocol::{Envelope, Payload as _};
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Install, Needs, World, app};
use serde_json::Value;

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced],
    programs: &["bwrap", "terraform|tofu"],
};

/// The module of `net`, with an output that `site` reads.
const NET: &str =
    "resource \"terraform_data\" \"net\" { input = \"one\" }\noutput \"id\" { value = terraform_data.net.output }\n";
const SITE: &str =
    "variable \"net\" { type = string }\nresource \"terraform_data\" \"site\" { input = \"page one of ${var.net}\" }\n";
/// The customer forbids every change of `net` for now: a reason outside of the app.
const NOT_NOW: &str = "package freehold\n\ndeny contains \"not before the audit\" if {\n\tsome r in \
                       input.plan.resource_changes\n\tr.address == \"terraform_data.net\"\n}\n";
const ANYTHING: &str = "package freehold\n";

fn component(name: &str, vars: &str) -> String {
    format!(
        "name = \"{name}\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"../{name}\"\n{vars}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_for_a_reason_outside_continues_where_it_stopped() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_continuation", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    app::write(&directory, "components/net.toml", &component("net", ""))?;
    let reads = "\n[vars]\nnet = \"{{ .nuon.components.net.outputs.id }}\"\n";
    app::write(&directory, "components/site.toml", &component("site", reads))?;
    app::write(&directory, "net/main.tf", NET)?;
    app::write(&directory, "site/main.tf", SITE)?;
    world.ship(&directory).await?;
    let install = world.install("globex", "small").await?;
    policy(&world, &install, NOT_NOW).await?;
    let mut runner = world.runner(&install).await?;
    let provisioning = install.created["workflow"].as_str().context("no workflow")?.to_owned();
    let denied = world.run(&["workflow", "watch", &provisioning]).await?;
    ensure!(denied.code == 1, "{} {}", denied.out, denied.error);

    // Nothing can stand in for what was never deployed.
    let skip = ["workflow", "skip", provisioning.as_str(), "net", "--reason", "later"];
    let refused = world.run(&skip).await?.ended_with(4)?;
    ensure!(refused.contains("`net` was never deployed in this install"), "{refused}");

    // Two people resume it at once: one of them does.
    policy(&world, &install, ANYTHING).await?;
    let resume = ["workflow", "resume", provisioning.as_str(), "--reason", "the audit is over", "--no-wait"];
    let (one, other) = tokio::join!(world.run(&resume), world.run(&resume));
    let mut codes = [one?.code, other?.code];
    codes.sort_unstable();
    ensure!(codes == [0, 4], "{codes:?}");
    let done = world.vendor(&["workflow", "watch", &provisioning]).await?;
    ensure!(states(&done) == [("net", "succeeded"), ("site", "succeeded")], "{done}");
    ensure!(done["again"].as_array().is_some_and(|all| all.len() == 1), "{done}");
    ensure!(done["again"][0]["reason"] == "the audit is over" && done["again"][0]["ended_as"] == "failed", "{done}");
    let job = job_of(&world, &done, "net").await?;
    ensure!(job["fence"]["dispatch"] == 2, "{job}");
    let ordered = orders(&world, &install).await?;
    let why = "resumed: the audit is over";
    let asked: Vec<_> = ordered.iter().filter(|order| order.asked_why.as_deref() == Some(why)).collect();
    ensure!(asked.len() == 2 && asked.iter().all(|order| order.asked_by.is_some()), "{ordered:#?}");
    let again = world.run(&resume).await?.ended_with(4)?;
    ensure!(again.contains("succeeded, so it has nothing left to run"), "{again}");

    // A new version of both. The customer's policy stops `net`; a retry changes nothing, so the vendor continues without it.
    policy(&world, &install, NOT_NOW).await?;
    app::edit(&directory, "net/main.tf", "one", "two")?;
    app::edit(&directory, "site/main.tf", "page one", "page two")?;
    world.ship(&directory).await?;
    let version = world.vendor(&["install", "show", "globex"]).await?["version"].clone();
    let stopped = world.run(&["deploy", "globex"]).await?;
    ensure!(stopped.code == 1, "{} {}", stopped.out, stopped.error);
    let deploy = world.newest_workflow("globex").await?;
    let id = deploy["workflow"].as_str().context("no workflow")?.to_owned();
    let net = job_of(&world, &deploy, "net").await?;
    let net = net["job"].as_str().context("no job")?;
    let retried = world.run(&["job", "retry", net, "--reason", "perhaps now"]).await?;
    ensure!(retried.code == 1, "{} {}", retried.out, retried.error);
    let reason = "the customer wants `net` as it is until the audit is over";
    world.run(&["workflow", "skip", &id, "net", "--reason", reason]).await?.ended_with(0)?;
    let skipped = world.vendor(&["workflow", "show", &id]).await?;
    ensure!(states(&skipped) == [("net", "skipped"), ("site", "succeeded")], "{skipped}");
    ensure!(skipped["state"] == "succeeded", "{skipped}");
    let note = skipped["nodes"][0]["reason"].as_str().unwrap_or_default();
    ensure!(note.starts_with("skipped by arn:") && note.ends_with(reason), "{note}");
    let details = world.run(&["workflow", "show", &id]).await?.ended_with(0)?;
    ensure!(details.contains("`net` retried at") && details.contains("`net` skipped at"), "{details}");
    let after = world.vendor(&["install", "show", "globex"]).await?;
    ensure!(after["version"] == version, "the install counts as deployed: {after}");
    let text = world.run(&["install", "show", "globex"]).await?.ended_with(0)?;
    ensure!(text.contains(&format!("in {id} by arn:")) && text.contains("the next deploy runs it"), "{text}");

    // The runner is killed, and a deploy that it has not answered is cancelled. The deploy never starts.
    policy(&world, &install, ANYTHING).await?;
    runner.kill().await?;
    let begun = world.vendor(&["deploy", "globex", "--no-wait"]).await?;
    let silent = begun["workflow"].as_str().context("no workflow")?.to_owned();
    until("the job is queued", SOON, || async {
        let view = world.vendor(&["workflow", "show", &silent]).await?;
        Ok(view["nodes"].as_array().is_some_and(|nodes| nodes.iter().any(|node| !node["job"].is_null())).then_some(()))
    })
    .await?;
    let cancel = ["workflow", "cancel", silent.as_str(), "--reason", "the wrong week"];
    let output = world.run(&cancel).await?.ended_with(0)?;
    ensure!(output.contains("a runner that does not respond cannot start it after"), "{output}");
    let open = world.run(&["workflow", "resume", &silent]).await?.ended_with(4)?;
    ensure!(open.contains("has not ended"), "{open}");
    let asked = world.vendor(&["workflow", "show", &silent]).await?;
    ensure!(asked["state"] == "running" && asked["cancel_reason"] == "the wrong week", "{asked}");
    until("the order and the cancel are in the queue", SOON, || async {
        Ok((waiting_messages(&world).await? >= 2).then_some(()))
    })
    .await?;
    runner.start_again()?;
    let cancelled = until("the cancelled deploy ends", SOON, || async {
        let view = world.vendor(&["workflow", "show", &silent]).await?;
        Ok((!view["ended_at"].is_null()).then_some(view))
    })
    .await?;
    ensure!(cancelled["state"] == "cancelled", "{cancelled}");
    let net = job_of(&world, &cancelled, "net").await?;
    ensure!(net["state"] == "cancelled", "{net}");
    let history = net["history"].as_array().context("no history")?;
    let wish = history.iter().find(|one| one["what"] == "cancel").and_then(|one| one["reason"].as_str());
    ensure!(wish.is_some_and(|wish| wish.starts_with("the wrong week, asked for by arn:")), "{net}");

    // What a later deploy did, an older workflow does not undo.
    world.run(&["deploy", "globex"]).await?.ended_with(0)?;
    let late = world.run(&["workflow", "resume", &silent]).await?.ended_with(4)?;
    ensure!(late.contains("another workflow has changed install `globex`"), "{late}");
    let finally = world.vendor(&["install", "show", "globex"]).await?;
    ensure!(finally["version"] != version, "{finally}");
    Ok(())
}

/// Returns the states of the components' nodes.
fn states(workflow: &Value) -> Vec<(&str, &str)> {
    let nodes = workflow["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let named = nodes.iter().filter(|node| node["name"] == "net" || node["name"] == "site");
    named.filter_map(|node| Some((node["name"].as_str()?, node["state"].as_str()?))).collect()
}

/// Returns the job of a node.
async fn job_of(world: &World, workflow: &Value, node: &str) -> anyhow::Result<Value> {
    let nodes = workflow["nodes"].as_array().context("no nodes")?;
    let id = nodes.iter().find(|one| one["name"] == node).and_then(|one| one["job"].as_str());
    world.vendor(&["job", "show", id.with_context(|| format!("no job of `{node}`: {workflow}"))?]).await
}

async fn policy(world: &World, install: &Install, text: &str) -> anyhow::Result<()> {
    let s3 = aws_sdk_s3::Client::new(&world.administrator(&install.account)?);
    let body = text.as_bytes().to_vec().into();
    let put = s3.put_object().bucket(bucket(install)).key("policies/not-now.rego").body(body);
    put.send().await.context("the customer's bucket")?;
    Ok(())
}

/// Returns the signed orders that the runner has put into the customer's bucket.
async fn orders(world: &World, install: &Install) -> anyhow::Result<Vec<Order>> {
    let s3 = aws_sdk_s3::Client::new(&world.administrator(&install.account)?);
    let page = s3.list_objects_v2().bucket(bucket(install)).prefix("audit/orders/").send().await?;
    let mut found = Vec::new();
    for key in page.contents().iter().filter_map(|object| object.key()) {
        let body = s3.get_object().bucket(bucket(install)).key(key).send().await?.body.collect().await?;
        let envelope = Envelope::parse(&body.to_vec())?;
        if envelope.payload_type == Order::TYPE {
            found.push(envelope.peek()?);
        }
    }
    Ok(found)
}

/// Returns how many messages wait in the orders queue.
async fn waiting_messages(world: &World) -> anyhow::Result<usize> {
    let sqs = aws_sdk_sqs::Client::new(&world.administrator(world.tenant_account())?);
    let found = sqs.get_queue_url().queue_name(format!("fh-{}--globex.fifo", world.tenant())).send().await?;
    let asked = sqs.get_queue_attributes().queue_url(found.queue_url().context("no such queue")?);
    let name = aws_sdk_sqs::types::QueueAttributeName::ApproximateNumberOfMessages;
    let answer = asked.attribute_names(name.clone()).send().await?;
    let count = answer.attributes().and_then(|all| all.get(&name)).context("the queue has no number of messages")?;
    Ok(count.parse()?)
}

fn bucket(install: &Install) -> String {
    format!("fh-acme--globex--{}", install.account)
}
