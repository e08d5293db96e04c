//! The customer's approval, which only the customer can give and which counts for one plan, and the customer's
//! rejection.

use anyhow::ensure;
use freehold_protocol::approval::{Side, approval_object};
use freehold_tests::harness::World;

use super::{
    NEEDS, NET, STATE, app_with_module, approve, bucket, ended, job, raise_serial, waiting, waiting_anew, waits,
};

#[tokio::test(flavor = "multi_thread")]
async fn the_customer_approves_under_their_own_identity_and_nobody_else_can() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_approvals_customer", NEEDS).await? else { return Ok(()) };
    let directory = app_with_module(&world)?;
    world.ship(&directory).await?;
    let install = world.install_answering("globex", "small", &["ApproveChanges=all"]).await?;
    world.vendor(&["install", "approvals", "globex", "prompt"]).await?;
    let _runner = world.runner(&install).await?;

    let (job, plan) = waiting(&world, NET).await?;
    let hash = plan.proposed.plan.as_str();
    assert_eq!(plan.waits_for, [Side::Vendor, Side::Customer]);
    for role in ["runner", "provision", "maintenance", "deprovision"] {
        let credentials = world.role(&install.account, &format!("fh-acme--globex--{role}")).await;
        let Ok(credentials) = credentials else { continue };
        let forger = aws_sdk_s3::Client::new(&world.acting_as(credentials)?);
        let key = approval_object(&plan.proposed.plan);
        let forged = forger.put_object().bucket(bucket(&install)).key(key).body(b"{}".to_vec().into()).send().await;
        ensure!(forged.is_err(), "role `{role}` wrote an approval");
    }
    approve(&world, &job, &plan.proposed.plan).await?;
    let half = self::job(&world, NET).await?;
    let customer = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let (world, account) = (&world, install.account.clone());
        async move {
            let all: Vec<&str> = words.iter().map(String::as_str).collect();
            let all = [&["customer"], all.as_slice(), &["--tenant", world.tenant(), "--json"]].concat();
            world.command(&account, &all).await?.json()
        }
    };
    let asked = customer(&["approvals", "globex"]).await?;
    let approval = customer(&["approve", "globex", "--plan", hash]).await?;
    let done = ended(&world, NET).await?;
    let approvals = customer(&["approvals", "globex"]).await?;

    assert_eq!(half.plan.map(|plan| plan.waits_for), Some(vec![Side::Customer]));
    assert_eq!(asked["answer"]["waiting"][0]["plan"], hash, "{asked}");
    assert_eq!(approval["decision"], "approved", "{approval}");
    assert_eq!(done.state, "succeeded", "{done:?}");
    let applied = &approvals["answer"]["applied"][0];
    assert_eq!((&applied["plan"], applied["customer"].is_string()), (&hash.into(), true), "{approvals}");
    ensure!(applied["vendor"]["arn"].is_string(), "{approvals}");
    let again = ["customer", "approve", "globex", "--plan", hash, "--tenant", world.tenant()];
    let again = world.command(&install.account, &again).await?.ended_with(4)?;
    ensure!(again.contains(&format!("an order of {} has begun to apply plan {hash}", job.job)), "{again}");

    // The state changes after both have approved, so the job makes a newer plan, and nobody can approve the older one.
    let (job, older) = waits(&world, &directory, "two").await?;
    let older = older.proposed.plan;
    raise_serial(&world, &install, STATE).await?;
    approve(&world, &job, &older).await?;
    customer(&["approve", "globex", "--plan", older.as_str()]).await?;
    let (_, plan) = waiting_anew(&world, NET, &older).await?;
    let hash = plan.proposed.plan.as_str();
    let refused = ["customer", "approve", "globex", "--plan", older.as_str(), "--tenant", world.tenant()];
    let refused = world.command(&install.account, &refused).await?.ended_with(4)?;
    ensure!(refused.contains(&format!("was replaced by plan {hash}")), "{refused}");

    // The older plan can still be rejected, which does not end the job. A rejection of the newer one ends it, and the
    // vendor sees by whom.
    customer(&["reject", "globex", "--plan", older.as_str(), "--reason", "too old"]).await?;
    ensure!(self::job(&world, NET).await?.plan.is_some(), "the newer plan waits");
    customer(&["reject", "globex", "--plan", hash, "--reason", "after the audit"]).await?;
    let rejected = ended(&world, NET).await?;
    ensure!(rejected.reason.contains("(customer) rejected the plan: after the audit"), "{}", rejected.reason);
    assert_eq!(rejected.state, "blocked");
    Ok(())
}
