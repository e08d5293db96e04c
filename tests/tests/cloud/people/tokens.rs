//! Tokens: each is accepted below its own prefix alone, and the prefix and the verified token decide who calls.

use anyhow::Context as _;
use freehold_tests::harness::World;
use freehold_tests::harness::web::{send, send_signed};
use serde_json::Value;

use super::NEEDS;
use super::person::{Place, call};

#[tokio::test(flavor = "multi_thread")]
async fn a_token_counts_below_its_prefix_and_a_signature_elsewhere() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_people_tokens", NEEDS).await? else { return Ok(()) };
    let place = Place::of(&world).await?;
    let token = place.sign_up("ana@example.com").await?.token;
    let vendor = world.administrator_keys(world.tenant_account())?;
    let [people, pipelines, plain] =
        ["/people/v1/caller", "/pipelines/v1/caller", "/v1/caller"].map(|path| format!("{}{path}", place.api));
    let (signed, tail) = token.rsplit_once('.').context("a token without a signature")?;
    let flipped = if tail.starts_with('A') { "B" } else { "A" };
    let forged = format!("{signed}.{flipped}{}", tail.get(1..).unwrap_or_default());

    let mut statuses = vec![send("GET", &people, &[], b"").await?.status, call(&people, &forged, None).await?.status];
    statuses.push(call(&plain, &token, None).await?.status);
    statuses.push(call(&pipelines, &token, None).await?.status);
    statuses.push(send_signed(&vendor, "GET", &people, &[], b"").await?.status);
    let signed = send_signed(&vendor, "GET", &pipelines, &[], b"").await?;

    assert_eq!(statuses, [401, 401, 403, 403, 401], "none, forged, plain, pipelines, signed");
    assert!(matches!(signed.status, 401 | 403), "a signed request of a pipeline: {} {}", signed.status, signed.body);
    assert_eq!(call(&people, &token, None).await?.status, 200);
    assert_eq!(send_signed(&vendor, "GET", &plain, &[], b"").await?.status, 200);
    Ok(())
}

/// The pool stands for the issuer of a CI: the prefix makes a pipeline of the same subject.
#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_may_do_what_a_policy_permits_its_subject_and_a_person_with_it_may_not() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_people_pipelines", NEEDS).await? else { return Ok(()) };
    let place = Place::of(&world).await?;
    let options = ["--pipeline-issuer", place.issuer.as_str(), "--pipeline-audience", place.client.as_str()];
    world.deploy_tenant_with(&options).await?.json()?;
    let token = place.sign_up("ci@example.com").await?.token;
    let [people, pipelines] = ["people", "pipelines"].map(|prefix| format!("{}/{prefix}/v1", place.api));

    let caller = call(&format!("{pipelines}/caller"), &token, None).await?;
    let caller: Value = serde_json::from_str(&caller.body).with_context(|| caller.body.clone())?;
    let subject = caller["who"].as_str().and_then(|who| who.strip_prefix("pipeline:")).context("a pipeline")?;
    let before = call(&format!("{pipelines}/members"), &token, None).await?;
    permit(&world, subject).await?;
    let after = call(&format!("{pipelines}/members"), &token, None).await?;
    let more = call(&format!("{pipelines}/access/policies"), &token, None).await?;
    let person = call(&format!("{people}/members"), &token, None).await?;

    assert_eq!([before.status, after.status, more.status, person.status], [403, 200, 403, 403], "{}", after.body);
    Ok(())
}

/// Adds a policy by which the pipeline with this subject lists members.
async fn permit(world: &World, subject: &str) -> anyhow::Result<()> {
    let shown = world.vendor(&["access", "show"]).await?;
    let policies = shown["policies"].as_str().context("no policies")?;
    let file = world.directory().join("policies.cedar");
    let added = format!(
        "@id(\"ci-lists-members\")\npermit (\n  principal is Freehold::Pipeline,\n  \
         action == Freehold::Action::\"list_members\",\n  resource\n)\nwhen {{ principal.subject == \"{subject}\" }};\n"
    );
    std::fs::write(&file, format!("{policies}\n{added}"))?;
    world.vendor(&["access", "set", &file.display().to_string(), "--yes"]).await?;
    Ok(())
}
