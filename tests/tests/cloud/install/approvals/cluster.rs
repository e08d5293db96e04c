//! What the chart and the manifest of the demo have in its cluster: the value that a deploy gives to an object of each.

use anyhow::Context as _;
use freehold_tests::harness::{Install, World};
use serde_json::Value;

use super::content::Content;
use crate::install::demo_cluster::{GREETING, NAMESPACE, POLICY, cluster, object};

/// Helm keeps a secret for each revision of a release.
pub(super) async fn chart(world: &World, install: &Install) -> anyhow::Result<Content> {
    let cluster = cluster(world, install).await?;
    let words = ["get", "secrets", NAMESPACE, "--selector=owner=helm,name=greeter", "--output=json"];
    let revisions = cluster.kubectl(&words).await?.json()?["items"].as_array().map(Vec::len);
    let value = text(&object(&cluster, GREETING).await?["data"]["index.html"]);
    Ok(Content { value, changes: revisions.context("no list of secrets")? })
}

/// The API server counts the changes of an object's `spec`.
pub(super) async fn manifest(world: &World, install: &Install) -> anyhow::Result<Content> {
    let policy = object(&cluster(world, install).await?, POLICY).await?;
    let value = text(&policy["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"]["app"]);
    let changes = policy["metadata"]["generation"].as_u64().unwrap_or_default();
    Ok(Content { value, changes: usize::try_from(changes)? })
}

/// Deletes an object of the demo, as somebody who administers its cluster can.
pub(super) async fn delete(world: &World, install: &Install, which: [&str; 2]) -> anyhow::Result<()> {
    crate::install::demo_cluster::delete(&cluster(world, install).await?, which).await
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
