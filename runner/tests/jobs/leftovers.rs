//! The list of what still exists of an app, in the local cloud.

use std::path::Path;

use freehold_protocol::order::{Mode, Work};
use freehold_runner::kinds::execute;
use serde_json::json;

use crate::cloud::Cloud;
use crate::fixture::{Bench, outputs};

async fn queue(cloud: &Cloud, name: &str, tags: &[(&str, &str)]) {
    let sqs = aws_sdk_sqs::Client::new(&cloud.customer);
    let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    sqs.create_queue().queue_name(name).set_tags(Some(tags)).send().await.unwrap();
}

#[tokio::test]
async fn what_carries_the_tag_of_the_install_is_listed_and_nothing_of_a_neighbour() {
    let test = "leftovers::what_carries_the_tag_of_the_install_is_listed_and_nothing_of_a_neighbour";
    let Some(cloud) = Cloud::here(test).await else { return };
    let mut bench = Bench::new(Work::Leftovers(Default::default()));
    bench.change_order(|order| order.mode = Mode::Deprovision);
    let nothing = outputs(execute(&bench.job).await);
    bench.next_attempt();
    for at in 0..120 {
        queue(&cloud, &format!("left-{at:03}"), &[("freehold:owner", "acme--globex-prod")]).await;
    }
    queue(&cloud, "neighbour", &[("freehold:owner", "acme--globex-prod-2")]).await;
    queue(&cloud, "of-the-stack", &[("freehold:tenant", "acme"), ("freehold:install", "globex-prod")]).await;
    let iam = aws_sdk_iam::Client::new(&cloud.customer);
    for role in ["acme--globex-prod--web", "acme--globex-prod-2--web", "fh-acme--globex-prod--runner"] {
        iam.create_role().role_name(role).assume_role_policy_document("{}").send().await.unwrap();
    }

    let found = outputs(execute(&bench.job).await);

    let log = bench.log();
    assert_eq!(nothing, json!({ "leftovers": { "resources": [] } }));
    let found = &found["leftovers"];
    let arns: Vec<&str> = found["resources"].as_array().unwrap().iter().filter_map(|arn| arn.as_str()).collect();
    assert_eq!((arns.len(), &found["more"], &found["unknown"]), (100, &json!(21), &json!(null)), "{log}");
    assert_eq!(arns[0], "arn:aws:iam::222222222222:role/acme--globex-prod--web");
    assert!(arns[1..].iter().all(|arn| arn.contains(":left-")), "{arns:?}");
    assert!(log.contains("left: iam role acme--globex-prod--web\n") && log.contains("and 21 more"), "{log}");
}

#[tokio::test]
async fn what_aws_does_not_list_is_not_a_failure_and_the_rest_is_listed() {
    let test = "leftovers::what_aws_does_not_list_is_not_a_failure_and_the_rest_is_listed";
    // As in a network without a way to this service.
    let nowhere = [("AWS_ENDPOINT_URL_RESOURCE_GROUPS_TAGGING_API", Path::new("http://127.0.0.1:1"))];
    let Some(cloud) = Cloud::here_under(test, &[], &nowhere).await else { return };
    let role = aws_sdk_iam::Client::new(&cloud.customer).create_role().role_name("acme--globex-prod--web");
    role.assume_role_policy_document("{}").send().await.unwrap();
    let bench = Bench::new(Work::Leftovers(Default::default()));

    let found = outputs(execute(&bench.job).await);

    let (found, log) = (&found["leftovers"], bench.log());
    let reason = found["unknown"].as_str().unwrap_or_default();
    assert_eq!(found["resources"], json!(["arn:aws:iam::222222222222:role/acme--globex-prod--web"]), "{log}");
    assert!(reason.contains("`tag:GetResources`") && log.contains(reason), "{reason}: {log}");
    assert!(reason.contains("make a VPC endpoint for `tagging`"), "{reason}");
}
