//! The machine of the build runner exists while there is something to build (decision 0062). The functions, the group's
//! API with its permissions, and the builder are real. The local cloud starts no machine: the test starts the builder
//! when the group asks for one, as the machine's start script does.

use anyhow::Context as _;
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Needs, World, app};

const NEEDS: Needs =
    Needs { cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced], programs: &["bwrap"] };
/// How long the builder waits for the next build. The order of the first one may come late on a busy machine.
const IDLE_SECS: u32 = 20;

/// Returns how many machines the group shall have.
async fn wanted(world: &World) -> anyhow::Result<i32> {
    let scaling = aws_sdk_autoscaling::Client::new(&world.administrator(world.tenant_account())?);
    let groups = scaling.describe_auto_scaling_groups().auto_scaling_group_names(name(world)).send().await?;
    let group = groups.auto_scaling_groups().first().context("the tenant's stack has no group")?;
    group.desired_capacity().context("a group without a capacity")
}

fn name(world: &World) -> String {
    format!("fh-{}--build-runner", world.tenant())
}

/// Writes the config of the builder, with the settings that the machine's start script adds.
async fn configure(world: &World) -> anyhow::Result<()> {
    let file = world.directory().join("build.toml");
    let (out, state) = (file.display().to_string(), world.directory().join("build-state").display().to_string());
    world.vendor(&["tenant", "build-runner", "--out", &out, "--force", "--state-dir", &state]).await?;
    let text = std::fs::read_to_string(&file)?;
    let own = format!("scaling_group = \"{}\"\nidle_secs = {IDLE_SECS}\n", name(world));
    Ok(std::fs::write(&file, own + &text)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_starts_the_machine_and_the_builder_ends_it_when_there_is_nothing_to_build() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_build_machine", NEEDS).await? else { return Ok(()) };
    let directory = app::demo(world.directory(), &[1000])?;
    let digest = "0".repeat(64);
    let machine = ["--build-subnet", "subnet-1", "--build-vpc", "vpc-1", "--builder-sha256", &digest];
    let program = ["--builder-url", "https://releases.example/freehold-builder"];
    world.deploy_tenant_with(&[&machine[..], &program].concat()).await?.ended_with(0)?;
    configure(&world).await?;
    let asleep = wanted(&world).await?;

    let starts = async {
        let look = || async { Ok((wanted(&world).await? == 1).then_some(())) };
        until("the group shall have a machine", SOON, look).await?;
        world.build_runner().await
    };
    let (built, builder) = tokio::join!(world.sync_and_build(&directory, "demo"), starts);
    let (built, mut builder) = (built?, builder?);
    let code = builder.ends(SOON).await?;

    assert_eq!(asleep, 0);
    assert!(!built.is_null(), "{built}");
    assert_eq!(code, Some(4), "{}", builder.log());
    assert!(builder.log().contains("looking at the queue for the last time"), "{}", builder.log());
    assert_eq!(wanted(&world).await?, 0);
    Ok(())
}
