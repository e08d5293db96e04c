//! Policies across two accounts: a policy of the vendor travels in the order, one of the customer is in their bucket, and the
//! runner follows the more careful one. What they said reaches the vendor, and the audit log.

use anyhow::{Context as _, ensure};
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::policy::{PolicyOrigin, PolicyResult};
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Install, Needs, World, app};

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced],
    programs: &["bwrap", "terraform|tofu"],
};

const COMPONENT: &str =
    "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"../net\"\n";
const MODULE: &str = "resource \"terraform_data\" \"this\" { input = \"the-value\" }\n";
const POLICIES: &str = "[[policy]]\ntype = \"terraform_module\"\nengine = \"opa\"\ncomponents = [\"net\"]\n\
                        contents = \"./policies/careful.rego\"\n";
/// The vendor warns of what is created.
const CAREFUL: &str = "package nuon\n\nwarn contains msg if {\n\tsome r in input.plan.resource_changes\n\t\"create\" in \
                       r.change.actions\n\tmsg := sprintf(\"%s is new\", [r.address])\n}\n";
/// The customer forbids it, and names the value.
const NOTHING_NEW: &str = "package freehold\n\ndeny contains msg if {\n\tsome r in input.plan.resource_changes\n\t\"create\" in \
                           r.change.actions\n\tmsg := sprintf(\"%s would hold %s\", [r.address, \
                           r.change.after.input])\n}\n";

#[tokio::test(flavor = "multi_thread")]
async fn the_customers_policy_stops_what_the_vendor_only_warns_of() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_policies", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    app::write(&directory, "components/net.toml", COMPONENT)?;
    app::write(&directory, "net/main.tf", MODULE)?;
    app::write(&directory, "policies.toml", POLICIES)?;
    app::write(&directory, "policies/careful.rego", CAREFUL)?;
    world.ship(&directory).await?;
    let install = world.install("globex", "small").await?;
    put(&world, &install, "policies/nothing-new.rego", NOTHING_NEW).await?;
    let _runner = world.runner(&install).await?;

    let denied = world.provisioned(&install).await;
    let stopped = job(&world).await?;
    // A record is stored after the report, and while it is written nobody can read it.
    let recorded = until("the records can be read", SOON, || async {
        Ok(recorded(&world, &install).await.ok().filter(|records| !records.is_empty()))
    })
    .await?;
    put(&world, &install, "policies/nothing-new.rego", "package freehold\n").await?;
    let deploy = world.vendor(&["deploy", "globex"]).await?;
    let done = job(&world).await?;

    ensure!(denied.is_err(), "{denied:?}");
    assert_eq!(stopped.state, "blocked", "{stopped:?}");
    let reason =
        "policy `policies/nothing-new.rego` (of the customer) denies this: terraform_data.this would hold [value]";
    ensure!(stopped.reason.starts_with(reason), "{}", stopped.reason);
    let origins: Vec<_> = stopped.policies.iter().map(|one| (one.origin, one.stops())).collect();
    assert_eq!(origins, [(PolicyOrigin::Vendor, false), (PolicyOrigin::Customer, true)]);
    assert_eq!(stopped.policies[0].warn, ["terraform_data.this is new"]);
    assert_eq!(recorded, [stopped.policies]);
    assert_eq!((&deploy["state"], done.policies.len()), (&"succeeded".into(), 2), "{deploy}");
    Ok(())
}

async fn put(world: &World, install: &Install, key: &str, text: &str) -> anyhow::Result<()> {
    let s3 = aws_sdk_s3::Client::new(&world.administrator(&install.account)?);
    let body = text.as_bytes().to_vec().into();
    s3.put_object().bucket(bucket(install)).key(key).body(body).send().await.context("the customer's bucket")?;
    Ok(())
}

fn bucket(install: &Install) -> String {
    format!("fh-acme--globex--{}", install.account)
}

/// Returns the job of the component in the newest workflow.
async fn job(world: &World) -> anyhow::Result<freehold_protocol::api::JobView> {
    let workflow = world.newest_workflow("globex").await?;
    let nodes = workflow["nodes"].as_array().context("no nodes")?;
    let id = nodes.iter().find(|node| node["name"] == "net").and_then(|node| node["job"].as_str());
    let id = id.with_context(|| format!("no job of `net`: {workflow}"))?;
    Ok(serde_json::from_value(world.vendor(&["job", "show", id]).await?)?)
}

/// Returns what the audit log of the install says about policies.
async fn recorded(world: &World, install: &Install) -> anyhow::Result<Vec<Vec<PolicyResult>>> {
    let results = world.audit_records(install).await?.into_iter().filter_map(|record| match record.event {
        AuditEvent::PoliciesAsked { results, .. } => Some(results),
        _ => None,
    });
    Ok(results.collect())
}
