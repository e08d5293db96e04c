//! The install stack: the same bytes twice, everything filled in, a vendor's text left as it is.

use freehold_app::Kind;
use freehold_protocol::Digest;
use freehold_protocol::app_version::RolePolicy;
use serde_json::{Value, json};

use crate::support::{World, app, globex};

/// Returns a world whose provision role has this inline policy.
async fn with_policy(document: &str) -> World {
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;
    let mut version = app::document();
    version.roles[0].policies.push(RolePolicy::Inline { name: "extra one".into(), document: document.into() });
    world.sync(&version).await;
    world
}

/// Returns the JSON after `key` in the template's line of the provision role.
fn after<'a>(template: &'a str, key: &str) -> impl Iterator<Item = Value> + 'a {
    let key = format!("      {key}: ");
    let lines: Vec<_> = template.lines().filter_map(|line| line.strip_prefix(key.as_str())).collect();
    lines.into_iter().filter_map(|json| serde_json::from_str(json).ok())
}

#[tokio::test]
async fn the_same_install_and_version_give_the_same_bytes() {
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;

    let first = world.render_stack().render(&globex()).await.unwrap();
    world.memory.advance_secs(3600);
    let second = world.render_stack().render(&globex()).await.unwrap();

    assert_eq!(first, second);
    assert_eq!(first.digest, Digest::of(first.template.as_bytes()));
    assert_eq!(first.stack_name, "freehold-globex");
}

#[tokio::test]
async fn every_placeholder_is_filled_in() {
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;

    let template = world.render_stack().render(&globex()).await.unwrap().template;

    assert!(!template.contains("%{"));
    for part in [
        "arn:aws:sqs:eu-west-1:111111111111:fh-acme-globex.fifo",
        "arn:aws:sqs:eu-west-1:111111111111:fh-acme-reports",
        "https://sqs.invalid/111111111111/fh-acme-globex.fifo",
        &world.keys.public().to_string(),
        "\"222222222222\": \"globex\"",
    ] {
        assert!(template.contains(part), "{part}");
    }
    let managed: Vec<_> = after(&template, "ManagedPolicyArns").collect();
    assert!(managed.contains(&json!(["arn:aws:iam::aws:policy/PowerUserAccess"])));
    let policies: Vec<_> = after(&template, "Policies").collect();
    assert_eq!(
        policies[0][0]["PolicyDocument"]["Statement"][0]["Resource"],
        json!("arn:aws:dynamodb:*:222222222222:table/globex-*")
    );
}

#[tokio::test]
async fn a_placeholder_in_a_vendors_policy_stays_a_text() {
    let text = "%{TENANT} %{PROVISION_MANAGED} %{MAINTENANCE_POLICIES} %{NOTHING} %{";
    let world = with_policy(&json!({ "Statement": [], "Id": text }).to_string()).await;

    let template = world.render_stack().render(&globex()).await.unwrap().template;

    let policies: Vec<_> = after(&template, "Policies").collect();
    assert_eq!(policies[0][1]["PolicyDocument"]["Id"], json!(text));
    assert_eq!(policies[0][1]["PolicyName"], json!("extraone"));
    assert_eq!(policies[1], json!([]));
}

#[tokio::test]
async fn a_policy_that_is_no_json_is_refused_by_role() {
    for bad in ["{", "{{ .nuon.install.id }}", "{{ if }}"] {
        let world = with_policy(bad).await;

        let error = world.render_stack().render(&globex()).await.unwrap_err();

        assert_eq!(error.kind, Kind::Invalid);
        assert!(error.message.starts_with("role `provision` of app `demo`: "), "{error}");
    }
}

#[tokio::test]
async fn there_is_no_stack_before_the_queue_nor_for_the_build_runner() {
    let mut world = World::with_app().await;
    world.create().await;

    let early = world.render_stack().render(&globex()).await.unwrap_err();
    let build = world.render_stack().render(&"build".parse().unwrap()).await.unwrap_err();
    let nobody = world.render_stack().render(&"nobody".parse().unwrap()).await.unwrap_err();

    assert_eq!((early.kind, build.kind, nobody.kind), (Kind::Conflict, Kind::Invalid, Kind::NotFound));
}
