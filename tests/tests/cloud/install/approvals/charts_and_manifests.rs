//! Charts and manifests wait for their approval as other kinds do, and are applied once.

use freehold_tests::harness::{Capability, Needs, World};

use super::older_plans::{Change, change_with_approval};
use super::parts::Part;
use crate::install::demo_cluster::app_with_cluster;

const CLUSTERS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced, Capability::Clusters],
    programs: &["bwrap", "helm", "terraform|tofu"],
};

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_and_a_manifest_are_applied_once_as_they_were_approved() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_approvals.charts_and_manifests", CLUSTERS).await? else { return Ok(()) };
    let directory = app_with_cluster(&world)?;
    world.ship(&directory).await?;
    let install = world.install("globex", "demo").await?;
    let mut runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    world.vendor(&["install", "approvals", "globex", "prompt"]).await?;

    let change = Change {
        parts: &Part::IN_CLUSTER,
        scope: &["--component", "greeter", "--component", "limits"],
        input: &["--input", "greeting=two"],
        value: "two",
    };
    change_with_approval(&world, &install, &mut runner, &change).await
}
