//! The runner is killed (-9) in the middle of a health check that is a gate, and of a drift check: the check is made
//! again when its order is delivered again, and nothing is deployed twice or repaired.

use anyhow::{Context as _, ensure};
use freehold_protocol::api::JobView;
use freehold_skips::have;
use freehold_tests::harness::wait::SOON;
use freehold_tests::harness::{Install, Proxies, World, app};
use freehold_tests::proxy::parse_rules;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::health::{INPUTS, NEEDS, NET, net, states};

const SEED: u64 = 15;
const STATE: &str = "terraform/net.tfstate";
const BY_HAND: &str = "changed-by-hand-4714";

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_dies_in_a_gate_or_in_a_drift_check_makes_the_check_again() -> anyhow::Result<()> {
    if !have(NEEDS.programs) {
        return Ok(());
    }
    let proxies = Proxies::start(SEED).await?;
    let world = World::start_behind(&proxies, None).await?;
    let (at, first_request) = server().await?;
    let directory = app::small(world.directory())?;
    app::write(&directory, "inputs.toml", INPUTS)?;
    app::write(&directory, "components/net.toml", &net(&at, "well"))?;
    app::write(&directory, "net/main.tf", NET)?;
    world.ship(&directory).await?;
    let install = world.install("globex", "small").await?;

    // The runner dies while it waits for the answer of the probe.
    let mut runner = world.runner(&install).await?;
    tokio::time::timeout(SOON * 2, first_request).await.context("the gate asks its probe")??;
    runner.kill().await?;
    runner.start_again()?;
    let provisioned = world.provisioned(&install).await?;
    let [deploy, gate] = [job(&world, &provisioned, "net").await?, job(&world, &provisioned, "health:net").await?];
    let before = changed_by_hand(&world, &install).await?;
    // And while Terraform reads its state for the plan of a drift check.
    let rule = format!("s3.GetObject 1 kill-before about={STATE} times=1");
    proxies.runners.set_faults(SEED, parse_rules(&rule)?);
    let started = world.vendor(&["drift", "detect", "globex", "--no-wait"]).await?;
    runner.ends(SOON).await?;
    proxies.runners.set_faults(SEED, Vec::new());
    runner.start_again()?;
    let id = started["workflow"].as_str().context("no workflow")?;
    let check = world.vendor(&["workflow", "watch", id]).await?;
    let drift = job(&world, &check, "net").await?;
    let list = world.vendor(&["drift", "list", "globex"]).await?;

    ensure!(provisioned["state"] == "succeeded" && states(&check) == [("net", "succeeded")], "{provisioned} {check}");
    assert_eq!(receives(&deploy)?, 1, "the component was deployed once: {deploy:?}");
    for one in [&gate, &drift] {
        ensure!(one.state == "succeeded" && receives(one)? > 1, "its order was not delivered again: {one:?}");
    }
    let found = &list["parts"][0];
    let resource = &found["resources"][0];
    assert_eq!((&found["state"], &resource["attributes"]), (&json!("drifted"), &json!(["input"])), "{list}");
    assert_eq!(state(&world, &install).await?, before, "a check repairs nothing");
    Ok(())
}

/// Starts a server. Returns its address, and a receiver of the first request: the server never answers this one, and
/// answers all others with 200.
async fn server() -> anyhow::Result<(String, oneshot::Receiver<()>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let at = listener.local_addr()?;
    let (sender, first_request) = oneshot::channel();
    tokio::spawn(async move {
        let Ok((_unanswered, _)) = listener.accept().await else { return };
        let _ = sender.send(());
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
            });
        }
    });
    Ok((at.to_string(), first_request))
}

/// Returns the job of a node.
async fn job(world: &World, workflow: &Value, node: &str) -> anyhow::Result<JobView> {
    let found = workflow["nodes"].as_array().into_iter().flatten().find(|one| one["name"] == node);
    let id = found.and_then(|one| one["job"].as_str()).with_context(|| format!("no job of `{node}`: {workflow}"))?;
    Ok(serde_json::from_value(world.vendor(&["job", "show", id]).await?)?)
}

/// Returns how often the order of a job was delivered until the attempt that counts.
fn receives(job: &JobView) -> anyhow::Result<u32> {
    Ok(job.fence.with_context(|| format!("no attempt: {job:?}"))?.receive)
}

async fn state(world: &World, install: &Install) -> anyhow::Result<Value> {
    let s3 = aws_sdk_s3::Client::new(&world.administrator(&install.account)?);
    let object = s3.get_object().bucket(bucket(install)).key(STATE).send().await?;
    Ok(serde_json::from_slice(&object.body.collect().await?.into_bytes())?)
}

/// Changes the only resource, as a person with rights in the customer's account can. Returns the state with the change.
async fn changed_by_hand(world: &World, install: &Install) -> anyhow::Result<Value> {
    let mut found = state(world, install).await?;
    let attributes = &mut found["resources"][0]["instances"][0]["attributes"];
    for name in ["input", "output"] {
        attributes[name]["value"] = json!(BY_HAND);
    }
    let s3 = aws_sdk_s3::Client::new(&world.administrator(&install.account)?);
    s3.put_object().bucket(bucket(install)).key(STATE).body(serde_json::to_vec(&found)?.into()).send().await?;
    Ok(found)
}

fn bucket(install: &Install) -> String {
    format!("fh-acme--globex--{}", install.account)
}
