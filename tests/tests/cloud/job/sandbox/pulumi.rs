//! A sandbox that is a program of Pulumi, with a program that stands in for Pulumi.

use freehold_tests::harness::{World, app};

use super::{
    NEEDS, a_changed_sandbox_is_made_again, app_with_site, everything_is_removed_once_the_customer_allows_it, names,
    states, summary,
};

const SANDBOX: &str =
    "type = \"pulumi\"\nruntime = \"go\"\nsource = \"./sandbox\"\n[pulumi_config]\nnetwork = \"network of a\"\n";
const PROGRAM: &str = r#"{
  "resources": [{ "name": "main", "type": "aws:ec2/vpc:Vpc" }],
  "outputs": { "network": "config:network" }
}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_of_pulumi_lives_from_the_first_deploy_to_the_teardown() -> anyhow::Result<()> {
    let Some(mut world) = World::start("cloud_sandbox.pulumi", NEEDS).await? else { return Ok(()) };
    world.find_pulumi_stand_in()?;
    let directory = app_with_site(world.directory(), SANDBOX)?;
    app::write(&directory, "sandbox/Pulumi.yaml", "name: net\nruntime: go\n")?;
    app::write(&directory, "sandbox/program.json", PROGRAM)?;
    world.ship(&directory).await?;
    let install = world.install("globex", "small").await?;
    let _runner = world.runner(&install).await?;

    let provisioned = world.provisioned(&install).await?;

    assert_eq!(names(&provisioned), ["preflight:install", "sandbox", "site"], "{provisioned}");
    assert_eq!(summary(&world).await?, "site in the network of a");
    let keys = states(&world, &install).await?;
    let stack = "terraform/sandbox/.pulumi/stacks/net/globex.json";
    assert!(keys.iter().any(|key| key == stack), "{keys:?}");
    assert!(!keys.iter().any(|key| key == "terraform/sandbox/sandbox.tfstate"), "{keys:?}");
    a_changed_sandbox_is_made_again(&world, &directory, ("network of a", "network of b")).await?;
    everything_is_removed_once_the_customer_allows_it(&world, &install).await
}
