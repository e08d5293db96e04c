//! Each part of the demo waits for the customer: those with a plan, and those that are approved as a whole.

use anyhow::ensure;
use freehold_protocol::api::JobView;
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Needs, World, app};

const OPEN: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::EmptyAccounts],
    programs: &["bwrap", "terraform|tofu"],
};

#[tokio::test(flavor = "multi_thread")]
async fn stacks_images_and_modules_wait_until_the_customer_approves_each() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_approvals_kinds", OPEN).await? else { return Ok(()) };
    let demo = app::demo(world.directory(), &[1000])?;
    world.ship(&demo).await?;
    let install = world.install_answering("globex", "demo", &["ApproveChanges=all"]).await?;
    let _runner = world.runner(&install).await?;

    let workflow = until("the provisioning ends", SOON * 3, || {
        let (world, install) = (&world, &install);
        async move {
            let workflow_view = world.newest_workflow("globex").await?;
            for node in workflow_view["nodes"].as_array().into_iter().flatten() {
                let (Some(job), "waiting_for_approval") =
                    (node["job"].as_str(), node["state"].as_str().unwrap_or_default())
                else {
                    continue;
                };
                let view: JobView = serde_json::from_value(world.vendor(&["job", "show", job]).await?)?;
                let Some(plan) = view.plan.filter(|plan| !plan.waits_for.is_empty()) else { continue };
                let words = ["customer", "approve", "globex", "--plan", plan.proposed.plan.as_str()];
                let words = [&words[..], &["--tenant", world.tenant(), "--json"]].concat();
                let decision = world.command(&install.account, &words).await?;
                // To approve a plan again changes nothing, and is refused once an order has begun to apply it.
                ensure!([0, 4].contains(&decision.code), "{}{}", decision.out, decision.error);
            }
            Ok((!workflow_view["ended_at"].is_null()).then_some(workflow_view))
        }
    })
    .await?;

    assert_eq!(workflow["state"], "succeeded", "{workflow}");
    for node in workflow["nodes"].as_array().into_iter().flatten() {
        let Some(job) = node["job"].as_str().filter(|_| node["name"] != "preflight:install") else { continue };
        let view: JobView = serde_json::from_value(world.vendor(&["job", "show", job]).await?)?;
        let waited = view.history.iter().any(|one| one.to == "waiting_for_approval");
        ensure!(waited, "`{}` did not wait: {view:?}", view.node);
    }
    Ok(())
}
