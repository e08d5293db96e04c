//! One call in ten fails, at random, between the control plane's functions and the cloud; a whole deploy ends right.

use freehold_skips::have;
use freehold_tests::harness::{Proxies, World, app};
use freehold_tests::proxy::parse_rules;

#[tokio::test(flavor = "multi_thread")]
async fn a_deploy_ends_right_while_one_call_in_ten_of_the_functions_fails() -> anyhow::Result<()> {
    if !have(&["terraform|tofu", "bwrap"]) {
        return Ok(());
    }
    let seed = 4;
    let proxies = Proxies::start(seed).await?;
    let world = World::start_behind(&proxies, None).await?;
    let demo = app::demo(&world.directory().join("apps"), &[200_000])?;
    let _builder = world.build_runner().await?;
    world.sync_and_build(&demo, "demo").await?;
    proxies.functions.set_faults(seed, parse_rules("* 0.1 any")?);

    let install = world.install("globex", "demo").await?;
    let _runner = world.runner(&install).await?;
    let provisioned = world.provisioned(&install).await?;
    let deployed = world.vendor(&["deploy", "globex", "--input", "greeting=good morning"]).await?;

    for workflow in [&provisioned, &deployed] {
        assert_eq!(workflow["state"], "succeeded", "seed {seed}: {workflow}");
    }
    let failed = proxies.functions.counts().injected("*");
    assert!(failed > 10, "only {failed} calls failed");
    let view = world.vendor(&["install", "show", "globex"]).await?;
    assert_eq!(view["components"].as_array().map(Vec::len), Some(4), "{view}");
    let settings = view["components"].as_array().and_then(|all| all.iter().find(|one| one["component"] == "settings"));
    assert_eq!(settings.map(|one| &one["outputs"]["message"]), Some(&"good morning from globex".into()));
    let sqs = aws_sdk_sqs::Client::new(&world.administrator(&install.account)?);
    sqs.get_queue_url().queue_name("globex-demo").send().await?;
    Ok(())
}
