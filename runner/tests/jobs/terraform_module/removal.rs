//! Data that the removal of a module would destroy. A program stands in for Terraform, because no provider with data is
//! at hand.

use freehold_protocol::order::{RemovePart, Work};
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::json;

use super::{MODULE, artifact, fake_terraform, work};
use crate::cloud::Cloud;
use crate::fixture::{outputs, reason};

#[tokio::test]
async fn data_is_destroyed_only_when_the_order_permits_it() {
    if !have(&["bwrap"]) {
        return;
    }
    let test = "terraform_module::removal::data_is_destroyed_only_when_the_order_permits_it";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = artifact(&cloud, MODULE).await;
    let removal = |destroy_data| {
        let what = Box::new(work(&artifact, json!({ "name": "net" })));
        Work::Remove(RemovePart { what, destroy_data, removes_policies: false })
    };
    let deleted = |name: &str, kind: &str| {
        json!({ "address": format!("{kind}.{name}"), "type": kind,
            "change": { "actions": ["delete"], "before": {}, "after": null } })
    };
    let changes = [deleted("main", "aws_vpc"), deleted("orders", "aws_dynamodb_table")];
    let plan = json!({ "resource_changes": changes });
    let mut bench = cloud.bench(removal(false), &artifact);
    fake_terraform(&mut bench, &format!("echo plan > plan.bin ;;\nshow) echo '{plan}' ;;\napply) echo it is applied"));

    let (why, partial) = reason(execute(&bench.job).await);
    let refused_log = bench.log();
    bench.next_attempt();
    bench.change_order(|order| order.work = removal(true));
    let removed = outputs(execute(&bench.job).await);

    assert_eq!(
        why,
        "component `network`: the removal would destroy data, in `aws_dynamodb_table.orders`; keep a copy of what is \
         needed, and allow the removal with `freehold teardown ... --destroy-data`"
    );
    assert!(!partial && refused_log.contains("2 to delete\n"), "{refused_log}");
    assert!(!refused_log.contains("it is applied"), "{refused_log}");
    assert_eq!(removed, json!({}));
    assert!(bench.log().contains("it is applied\n"), "{}", bench.log());
}
