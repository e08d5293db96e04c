//! A gate stops what depends on an unhealthy component, and a verified deploy goes back to what ran before, with real programs.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use freehold_protocol::order::Order;
use freehold_protocol::{Envelope, Payload as _};
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Install, Needs, World, app};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

pub(super) const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced],
    programs: &["bwrap", "terraform|tofu"],
};

pub(super) const INPUTS: &str = "[[group]]\nname = \"all\"\ndescription = \"All\"\n[[input]]\nname = \"size\"\ndisplay_name = \"Size\"\n\
                      description = \"Size\"\ngroup = \"all\"\ndefault = \"small\"\n";
pub(super) const NET: &str = "variable \"size\" { type = string }\nresource \"terraform_data\" \"net\" { input = \"one ${var.size}\" }\n\
                   output \"id\" { value = terraform_data.net.output }\n";
pub(super) const SITE: &str =
    "variable \"net\" { type = string }\nresource \"terraform_data\" \"site\" { input = \"page one of ${var.net}\" }\n";

pub(super) fn component(name: &str, more: &str) -> String {
    format!(
        "name = \"{name}\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"../{name}\"\n{more}"
    )
}

/// Returns the config of `net`, whose gate asks `path`: for long when that is well, because the machine may be busy.
pub(super) fn net(at: &str, path: &str) -> String {
    let vars = "[vars]\nsize = \"{{ .nuon.inputs.inputs.size }}\"\n";
    let window = if path == "well" { "10s" } else { "2s" };
    let health = format!("[health]\nblock_deploy = true\nstabilization_window = \"{window}\"\n");
    component(
        "net",
        &format!("{vars}{health}[[health.probes]]\nname = \"up\"\ntype = \"http\"\nurl = \"http://{at}/{path}\"\n"),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_stops_what_depends_on_it_and_a_verified_deploy_goes_back() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_health", NEEDS).await? else { return Ok(()) };
    let at = server().await?;
    let directory = app::small(world.directory())?;
    app::write(&directory, "inputs.toml", INPUTS)?;
    app::write(&directory, "components/net.toml", &net(&at, "well"))?;
    let reads = "[vars]\nnet = \"{{ .nuon.components.net.outputs.id }}\"\n";
    app::write(&directory, "components/site.toml", &component("site", reads))?;
    app::write(&directory, "net/main.tf", NET)?;
    app::write(&directory, "site/main.tf", SITE)?;
    world.ship(&directory).await?;
    let install = world.install("globex", "small").await?;
    let mut runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    let healthy = world.vendor(&["install", "show", "globex"]).await?;
    ensure!(healthy["health"]["state"] == "healthy", "{healthy}");
    let before = Ran::of(&healthy)?;

    // The next version is not healthy. What depends on it does not run, and the install is unhealthy, though deployed in part.
    app::write(&directory, "components/net.toml", &net(&at, "sick"))?;
    app::edit(&directory, "net/main.tf", "one", "two")?;
    app::edit(&directory, "site/main.tf", "page one", "page two")?;
    world.ship(&directory).await?;
    let stopped = world.run(&["deploy", "globex", "--input", "size=large"]).await?;
    ensure!(
        stopped.code == 1 && stopped.error.contains("component `net` is not healthy after 4 s"),
        "{}",
        stopped.error
    );
    let plain = world.newest_workflow("globex").await?;
    ensure!(states(&plain) == [("health:net", "blocked"), ("net", "succeeded"), ("site", "skipped")], "{plain}");
    let sick = world.run(&["install", "show", "globex"]).await?.ended_with(0)?;
    ensure!(sick.contains("unhealthy since") && sick.contains("the answer is 503"), "{sick}");
    // A check apart from a deploy asks as the version says that deployed the component.
    let checked = world.vendor(&["health", "check", "globex"]).await?;
    ensure!(checked["state"] == "succeeded" && states(&checked) == [("health:net", "succeeded")], "{checked}");
    let again = world.vendor(&["install", "show", "globex"]).await?;
    let net = again["components"].as_array().and_then(|all| all.iter().find(|one| one["component"] == "net"));
    let net = &net.context("no `net`")?["health"];
    ensure!(net["state"] == "unhealthy" && net["at"].as_u64() > net["since"].as_u64(), "{net}");
    ensure!(net["reason"].as_str().is_some_and(|reason| reason.contains("the answer is 503")), "{net}");
    let mixed = world.run(&["deploy", "globex", "--verified"]).await?.ended_with(4)?;
    ensure!(mixed.contains("does not run the artifact of the install's version"), "{mixed}");

    // By hand, back to the first version.
    let version = before.version.clone();
    let back = ["deploy", "globex", "--version", version.as_str(), "--input", "size=small"];
    world.run(&back).await?.ended_with(0)?;
    ensure!(Ran::of(&world.vendor(&["install", "show", "globex"]).await?)? == before, "not as before");

    // The same again, verified: it goes back by itself, also when the runner is killed meanwhile.
    let failed = world.run(&["deploy", "globex", "--input", "size=large", "--verified"]).await?;
    ensure!(failed.code == 1, "{} {}", failed.out, failed.error);
    runner.kill().await?;
    runner.start_again()?;
    let deploy = until("the deploy names its roll back", SOON, || async {
        let all = world.vendor(&["workflow", "list", "globex"]).await?;
        let all = all.as_array().context("no list")?;
        let verified = all.iter().find(|one| one["verified"] == true && !one["rolled_back"].is_null());
        Ok(verified.cloned())
    })
    .await?;
    let by = deploy["rolled_back"]["workflow"].as_str().with_context(|| format!("refused: {deploy}"))?.to_owned();
    let roll_back = world.vendor(&["workflow", "watch", &by]).await?;
    ensure!(roll_back["roll_back_of"] == deploy["workflow"], "{roll_back}");
    ensure!(roll_back["state"] == "succeeded" && roll_back["asked_by"] == deploy["asked_by"], "{roll_back}");
    let after = world.vendor(&["install", "show", "globex"]).await?;
    ensure!(Ran::of(&after)? == before, "{after}");
    ensure!(after["health"]["state"] == "healthy", "{after}");
    let output = world.run(&["workflow", "show", &by]).await?.ended_with(0)?;
    ensure!(output.contains(&format!("roll back of {}", deploy["workflow"].as_str().unwrap_or_default())), "{output}");

    // Who asked and why is in the customer's own account.
    let why = format!("roll back of {}: `health:net` blocked", deploy["workflow"].as_str().unwrap_or_default());
    let ordered = orders(&world, &install).await?;
    let of_it: Vec<&Order> = ordered.iter().filter(|order| order.workflow.as_str() == by).collect();
    ensure!(!of_it.is_empty(), "no order of {by}");
    for order in of_it {
        ensure!(order.asked_why.as_ref().is_some_and(|text| text.starts_with(&why)), "{:?}", order.asked_why);
    }
    Ok(())
}

/// What a roll back brings back.
#[derive(Debug, PartialEq)]
struct Ran {
    version: String,
    artifacts: BTreeMap<String, String>,
    outputs: BTreeMap<String, Value>,
    size: Value,
}

impl Ran {
    fn of(install: &Value) -> anyhow::Result<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned).context("no text");
        let (mut artifacts, mut outputs) = (BTreeMap::new(), BTreeMap::new());
        for one in install["components"].as_array().context("no components")? {
            artifacts.insert(text(&one["component"])?, text(&one["artifact"])?);
            outputs.insert(text(&one["component"])?, one["outputs"].clone());
        }
        // An input that has its default has no value of the vendor's.
        let size = install["inputs"].get("size").cloned().unwrap_or_else(|| "small".into());
        Ok(Self { version: text(&install["version"])?, artifacts, outputs, size })
    }
}

/// Returns the states of the nodes, by name.
pub(super) fn states(workflow: &Value) -> Vec<(&str, &str)> {
    let nodes = workflow["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut all: Vec<_> =
        nodes.iter().filter_map(|node| Some((node["name"].as_str()?, node["state"].as_str()?))).collect();
    all.sort_unstable();
    all
}

/// Starts a server that answers `/well` with 200 and everything else with 503. Returns its address.
pub(super) async fn server() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let at = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = vec![0; 4096];
                let read = stream.read(&mut head).await.unwrap_or_default();
                let is_well = head.get(..read).is_some_and(|head| head.starts_with(b"GET /well"));
                let status = if is_well { "200 OK" } else { "503 Service Unavailable" };
                let _ = stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes()).await;
            });
        }
    });
    Ok(at.to_string())
}

/// Returns the signed orders that the runner has put into the customer's bucket.
async fn orders(world: &World, install: &Install) -> anyhow::Result<Vec<Order>> {
    let s3 = aws_sdk_s3::Client::new(&world.administrator(&install.account)?);
    let bucket = format!("fh-acme--globex--{}", install.account);
    let page = s3.list_objects_v2().bucket(&bucket).prefix("audit/orders/").send().await?;
    let mut found = Vec::new();
    for key in page.contents().iter().filter_map(|object| object.key()) {
        let body = s3.get_object().bucket(&bucket).key(key).send().await?.body.collect().await?;
        let envelope = Envelope::parse(&body.to_vec())?;
        if envelope.payload_type == Order::TYPE {
            found.push(envelope.peek()?);
        }
    }
    Ok(found)
}
