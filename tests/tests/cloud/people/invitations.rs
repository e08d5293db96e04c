//! An account is not a permission: the code of an invitation makes a person a member, until the member is removed.

use freehold_tests::harness::World;
use serde_json::{Value, json};

use super::NEEDS;
use super::person::{Person, Place};

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_an_account_may_do_nothing_until_a_code_is_accepted_and_after_the_removal() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_people_invitations", NEEDS).await? else { return Ok(()) };
    let place = Place::of(&world).await?;
    let (ana, ben) = (place.sign_up("ana@example.com").await?, place.sign_up("ben@example.com").await?);

    let stranger = caller(&ana).await?;
    let refused = ana.get("/v1/apps").await?;
    let invited = world.vendor(&["member", "invite", "ana@example.com", "--group", "auditor"]).await?;
    let guessed = ana.accept(&json!({ "code": "0".repeat(64) })).await?;
    let accepted = ana.accept(&invited).await?;
    let taken = ben.accept(&invited).await?;
    let member = caller(&ana).await?;
    let may = ana.get("/v1/apps").await?;
    let remove = ["member", "remove", "ana@example.com", "--confirm", "ana@example.com"];
    world.vendor(&remove).await?;
    let removed = ana.get("/v1/apps").await?;
    let again = ana.accept(&invited).await?;

    assert_eq!(stranger["is_member"], false, "{stranger}");
    assert!(stranger["who"].as_str().is_some_and(|who| who.starts_with("person:")), "{stranger}");
    assert!(refused.error()?.1.contains("`freehold member accept CODE`"), "{}", refused.body);
    assert_eq!((accepted.status, may.status), (200, 200), "{} {}", accepted.body, may.body);
    assert_eq!((&member["name"], &member["groups"]), (&json!("ana@example.com"), &json!(["auditor"])), "{member}");
    let statuses = [refused.status, guessed.status, taken.status, removed.status, again.status];
    assert_eq!(statuses, [403, 404, 404, 403, 404], "{} {} {}", guessed.body, taken.body, again.body);
    assert_eq!(caller(&ben).await?["is_member"], false);
    let rows = world.vendor(&["member", "list"]).await?;
    assert_eq!(rows, json!([]), "nobody is a member any more");
    Ok(())
}

async fn caller(person: &Person) -> anyhow::Result<Value> {
    let answer = person.get("/v1/caller").await?;
    assert_eq!(answer.status, 200, "{}", answer.body);
    Ok(serde_json::from_str(&answer.body)?)
}
