//! One call in ten fails, at random, between the control plane's functions and the cloud; a whole deploy ends right.

#![cfg(test)]

use freehold_tests::harness::cloud::skip;
use freehold_tests::harness::{app, lacking_on_path};
use freehold_tests::proxy::parse_rules;
use freehold_tests::stage::{CUSTOMER_ACCOUNT, Stage};
use freehold_tests::workspace::workspace_root;

#[tokio::test(flavor = "multi_thread")]
async fn a_deploy_ends_right_while_one_call_in_ten_of_the_functions_fails() -> anyhow::Result<()> {
    if let Some(missing) = lacking_on_path(&["terraform|tofu", "bwrap"]) {
        return skip("cloud_faults", &format!("there is no `{missing}` on PATH"));
    }
    let seed = 4;
    let stage = Stage::start(seed, &workspace_root()?.join("target/lambda/local")).await?;
    let demo = app::demo(&stage.path("apps"), &[200_000])?;
    let _builder = stage.build_runner().await?;
    stage.sync_and_build(&demo).await?;
    stage.functions.set_faults(seed, parse_rules("* 0.1 any")?);

    let _runner = stage.install("globex", "demo", &[]).await?;
    let provisioned = stage.settled("globex").await?;
    let deployed = stage.vendor(&["deploy", "globex", "--input", "greeting=good morning"]).await?;

    for workflow in [&provisioned, &deployed] {
        assert_eq!(workflow["state"], "succeeded", "seed {seed}: {workflow}");
    }
    let failed = stage.functions.counts().injected("*");
    assert!(failed > 10, "only {failed} calls failed");
    let shown = stage.vendor(&["install", "show", "globex"]).await?;
    assert_eq!(shown["components"].as_array().map(Vec::len), Some(4), "{shown}");
    let settings = shown["components"].as_array().and_then(|all| all.iter().find(|one| one["component"] == "settings"));
    assert_eq!(settings.map(|one| &one["outputs"]["message"]), Some(&"good morning from globex".into()));
    let sqs = aws_sdk_sqs::Client::new(&stage.sdk(CUSTOMER_ACCOUNT));
    sqs.get_queue_url().queue_name("globex-demo").send().await?;
    Ok(())
}
