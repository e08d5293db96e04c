//! CloudFormation stacks in the local cloud.

use std::collections::BTreeMap;

use aws_sdk_cloudformation::Client;
use aws_sdk_cloudformation::types::{ChangeSetType, Parameter, StackStatus};
use freehold_protocol::order::{Artifact, DeployStack, Package, RemovePart, TEMPLATE_ARTIFACT, TEMPLATE_LAYER, Work};
use freehold_runner::kinds::execute;
use serde_json::json;

use crate::artifacts::of_layer;
use crate::cloud::{Cloud, storage_that_says};
use crate::fixture::{outputs, reason};

const TEMPLATE: &str = "
Parameters:
  Name: {Type: String}
Resources:
  Queue: {Type: 'AWS::SQS::Queue', Properties: {QueueName: !Ref Name}}
Outputs:
  QueueName: {Value: !GetAtt Queue.QueueName}
";

async fn artifact(cloud: &Cloud, template: &str) -> Artifact {
    let layer = template.as_bytes().to_vec();
    of_layer(cloud, Package::CloudformationTemplate, layer, (TEMPLATE_LAYER, TEMPLATE_ARTIFACT)).await
}

fn work(artifact: &Artifact, name: &str) -> Work {
    Work::CloudformationStack(DeployStack {
        component: "network".parse().unwrap(),
        artifact: artifact.clone(),
        stack_name: "{{ .nuon.install_stack.outputs.prefix }}queue".into(),
        parameters: BTreeMap::from([("Name".to_owned(), name.to_owned())]),
        capabilities: Vec::new(),
    })
}

#[tokio::test]
async fn a_stack_is_created_left_alone_and_updated() {
    let Some(cloud) = Cloud::here("cloudformation_stack::a_stack_is_created_left_alone_and_updated").await else {
        return;
    };
    let artifact = artifact(&cloud, TEMPLATE).await;
    let mut bench = cloud.bench(work(&artifact, "one"), &artifact);

    let created = execute(&bench.job).await;
    println!("{}", bench.log());
    bench.next_attempt();
    let same = execute(&bench.job).await;
    println!("{}", bench.log());
    bench.next_attempt();
    bench.change_order(|order| order.work = work(&artifact, "two"));
    let updated = execute(&bench.job).await;
    println!("{}", bench.log());

    assert_eq!(outputs(created), json!({ "QueueName": "one" }));
    assert_eq!(outputs(same), json!({ "QueueName": "one" }));
    assert_eq!(outputs(updated), json!({ "QueueName": "two" }));
    let stacks =
        Client::new(&cloud.customer).describe_stacks().stack_name("acme--globex-prod--queue").send().await.unwrap();
    let tags = stacks.stacks()[0].tags();
    assert!(tags.iter().any(|tag| tag.key() == Some("freehold:install") && tag.value() == Some("globex-prod")));
}

/// Whoever has the mode's rights can make a change set of any name, with another template and the same list of resources.
#[tokio::test]
async fn a_change_set_that_somebody_else_made_is_not_executed() {
    let Some(cloud) = Cloud::here("cloudformation_stack::a_change_set_that_somebody_else_made_is_not_executed").await
    else {
        return;
    };
    let artifact = artifact(&cloud, TEMPLATE).await;
    let mut bench = cloud.bench(work(&artifact, "seven"), &artifact);
    assert_eq!(outputs(execute(&bench.job).await), json!({ "QueueName": "seven" }));
    bench.next_attempt();
    bench.change_order(|order| order.work = work(&artifact, "eight"));
    let fence = bench.job.fence;
    let name = format!("fh-{}-{}-{}", bench.job.order.job, fence.dispatch, fence.receive).replace('_', "-");
    let parameter = Parameter::builder().parameter_key("Name").parameter_value("planted").build();
    let planted = Client::new(&cloud.customer)
        .create_change_set()
        .stack_name("acme--globex-prod--queue")
        .change_set_name(&name)
        .change_set_type(ChangeSetType::Update)
        .template_body(TEMPLATE)
        .parameters(parameter);
    planted.send().await.unwrap();

    let updated = execute(&bench.job).await;
    println!("{}", bench.log());

    assert_eq!(outputs(updated), json!({ "QueueName": "eight" }));
}

/// Row 18 of the faults: the tenant registry is down at sync.
#[tokio::test]
async fn a_registry_that_is_down_leaves_the_stack_as_it_is_and_the_deploy_can_be_tried_again() {
    const TEST: &str =
        "cloudformation_stack::a_registry_that_is_down_leaves_the_stack_as_it_is_and_the_deploy_can_be_tried_again";
    let Some(cloud) = Cloud::here(TEST).await else { return };
    let before = artifact(&cloud, TEMPLATE).await;
    let mut bench = cloud.bench(work(&before, "one"), &before);
    let created = outputs(execute(&bench.job).await);
    let after = artifact(&cloud, &TEMPLATE.replace("QueueName: !Ref Name", "QueueName: !Sub '${Name}-after'")).await;
    let storage = storage_that_says("500 Internal Server Error").await;
    let stack = async || {
        let client = Client::new(&cloud.customer);
        let found = client.describe_stacks().stack_name("acme--globex-prod--queue").send().await.unwrap();
        let stack = &found.stacks()[0];
        (
            stack.stack_status().cloned(),
            stack.outputs()[0].output_key().map(str::to_owned),
            stack.last_updated_time().copied(),
        )
    };
    let untouched = stack().await;

    bench.next_attempt();
    bench.change_order(|order| order.work = work(&after, "one"));
    bench.job.grants = cloud.grants(&after, u32::MAX, &storage);
    let (why, partial) = reason(execute(&bench.job).await);
    let then = stack().await;
    bench.next_attempt();
    bench.job.grants = cloud.grants(&after, 0, "");
    let updated = outputs(execute(&bench.job).await);

    assert!(why.contains("500") && !why.contains("secret") && !partial, "{why}");
    assert_eq!(then, untouched);
    assert_eq!((created, updated), (json!({ "QueueName": "one" }), json!({ "QueueName": "one-after" })));
}

#[tokio::test]
async fn a_failed_creation_says_why_and_the_next_attempt_starts_over() {
    let test = "cloudformation_stack::a_failed_creation_says_why_and_the_next_attempt_starts_over";
    let Some(cloud) = Cloud::here(test).await else { return };
    // On AWS and in the local cloud alike there is no such function.
    let bad = "  Bad: {Type: 'AWS::Lambda::Url', Properties: {AuthType: AWS_IAM, TargetFunctionArn: nope}}\nOutputs:";
    let bad = TEMPLATE.replace("Outputs:", bad);
    let artifact_bad = artifact(&cloud, &bad).await;
    let artifact_good = artifact(&cloud, TEMPLATE).await;
    let mut bench = cloud.bench(work(&artifact_bad, "three"), &artifact_bad);

    let failed = execute(&bench.job).await;
    println!("{}", bench.log());
    let next = cloud.bench(work(&artifact_good, "three"), &artifact_good);
    bench.next_attempt();
    bench.job.grants = next.job.grants.clone();
    bench.change_order(|order| order.work = work(&artifact_good, "three"));
    let made = execute(&bench.job).await;
    println!("{}", bench.log());

    let (reason, partial) = reason(failed);
    assert!(reason.contains("ROLLBACK") && reason.contains("`Bad`") && partial, "{reason}");
    assert_eq!(outputs(made), json!({ "QueueName": "three" }));
}

#[tokio::test]
async fn a_stack_whose_creation_failed_is_removed_and_one_that_does_not_exist_is_too() {
    let test = "cloudformation_stack::a_stack_whose_creation_failed_is_removed_and_one_that_does_not_exist_is_too";
    let Some(cloud) = Cloud::here(test).await else { return };
    let bad = "  Bad: {Type: 'AWS::Lambda::Url', Properties: {AuthType: AWS_IAM, TargetFunctionArn: nope}}\nOutputs:";
    let artifact = artifact(&cloud, &TEMPLATE.replace("Outputs:", bad)).await;
    let mut bench = cloud.bench(work(&artifact, "four"), &artifact);
    let (_, partial) = reason(execute(&bench.job).await);
    assert!(partial);

    let what = Box::new(work(&artifact, "four"));
    bench.next_attempt();
    bench.change_order(|order| {
        order.work = Work::Remove(RemovePart { what, destroy_data: false, removes_policies: false })
    });
    let first = outputs(execute(&bench.job).await);
    bench.next_attempt();
    let second = outputs(execute(&bench.job).await);

    assert_eq!((first, second), (json!({}), json!({})));
    assert!(bench.log().contains("does not exist"), "{}", bench.log());
}

const TABLE: &str = "
Parameters:
  Name: {Type: String}
Resources:
  Orders:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: !Ref Name
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
";

#[tokio::test]
async fn a_stack_with_data_is_removed_only_when_the_order_permits_it() {
    let test = "cloudformation_stack::a_stack_with_data_is_removed_only_when_the_order_permits_it";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = artifact(&cloud, TABLE).await;
    let mut bench = cloud.bench(work(&artifact, "orders"), &artifact);
    outputs(execute(&bench.job).await);
    let removal = |destroy_data| {
        let what = Box::new(work(&artifact, "orders"));
        Work::Remove(RemovePart { what, destroy_data, removes_policies: false })
    };

    bench.next_attempt();
    bench.change_order(|order| order.work = removal(false));
    let (why, partial) = reason(execute(&bench.job).await);
    let client = Client::new(&cloud.customer);
    let kept = client.describe_stacks().stack_name("acme--globex-prod--queue").send().await.unwrap();
    bench.next_attempt();
    bench.change_order(|order| order.work = removal(true));
    let removed = outputs(execute(&bench.job).await);
    bench.next_attempt();
    outputs(execute(&bench.job).await);

    assert_eq!(
        why,
        "component `network`: the removal would destroy data, in `Orders (AWS::DynamoDB::Table)`; keep a copy of what \
         is needed, and allow the removal with `freehold teardown ... --destroy-data`"
    );
    assert!(!partial);
    assert_eq!(kept.stacks()[0].stack_status(), Some(&StackStatus::CreateComplete));
    assert_eq!(removed, json!({}));
    assert!(bench.log().contains("does not exist"), "{}", bench.log());
}

#[tokio::test]
async fn an_invalid_template_changes_nothing() {
    let Some(cloud) = Cloud::here("cloudformation_stack::an_invalid_template_changes_nothing").await else {
        return;
    };
    let artifact = artifact(&cloud, "Resources: {A: {Type: 'AWS::Nope::Nope'}}\n").await;
    let bench = cloud.bench(work(&artifact, "four"), &artifact);

    let (reason, _) = reason(execute(&bench.job).await);

    assert!(reason.contains("acme--globex-prod--queue"), "{reason}");
}

/// The customer's stack may have a service role with more permissions than any of this install's.
#[tokio::test]
async fn a_stack_that_the_install_did_not_make_is_left_alone() {
    let test = "cloudformation_stack::a_stack_that_the_install_did_not_make_is_left_alone";
    let Some(cloud) = Cloud::here(test).await else { return };
    let customer = Client::new(&cloud.customer);
    for name in ["CDKToolkit", "acme--globex-prod--queue"] {
        let theirs = TEMPLATE.replace("{Type: String}", "{Type: String, Default: theirs}");
        customer.create_stack().stack_name(name).template_body(theirs).send().await.unwrap();
    }
    let artifact = artifact(&cloud, TEMPLATE).await;
    let mut bench = cloud.bench(work(&artifact, "six"), &artifact);

    let (untagged, _) = reason(execute(&bench.job).await);
    bench.next_attempt();
    bench.change_order(|order| {
        let Work::CloudformationStack(work) = &mut order.work else { unreachable!() };
        work.stack_name = "CDKToolkit".into();
    });
    let (foreign, _) = reason(execute(&bench.job).await);

    assert!(untagged.contains("`freehold:install` = `globex-prod`"), "{untagged}");
    assert!(foreign.contains("stack `CDKToolkit` is not this install's"), "{foreign}");
    let stacks = customer.describe_stacks().send().await.unwrap();
    let values: Vec<_> = stacks.stacks().iter().map(|stack| stack.outputs()[0].output_value().unwrap()).collect();
    assert_eq!(values, ["theirs", "theirs"]);
}

#[tokio::test]
async fn a_template_too_large_for_a_request_goes_through_the_bucket() {
    let test = "cloudformation_stack::a_template_too_large_for_a_request_goes_through_the_bucket";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = artifact(&cloud, &format!("{TEMPLATE}\n# {}\n", "x".repeat(60_000))).await;
    let bench = cloud.bench(work(&artifact, "five"), &artifact);

    let outcome = execute(&bench.job).await;

    println!("{}", bench.log());
    assert_eq!(outputs(outcome), json!({ "QueueName": "five" }));
}
