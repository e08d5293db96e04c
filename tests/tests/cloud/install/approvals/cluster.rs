//! The parts of the demo that need a cluster: a chart and a manifest. Each has an object with the value that a deploy
//! gives it.

use std::path::PathBuf;

use anyhow::Context as _;
use freehold_tests::harness::{Cluster, Install, World, app};
use serde_json::Value;

use super::content::Content;

/// The object of the chart whose value changes, and that of the manifest.
pub(super) const GREETING: [&str; 2] = ["configmap", "greeter"];
pub(super) const POLICY: [&str; 2] = ["networkpolicy", "own-namespace-only"];
const NAMESPACE: &str = "--namespace=demo";

/// Writes the demo with its cluster. A deploy with another greeting changes the chart and the manifest.
pub(super) fn app_with_cluster(world: &World) -> anyhow::Result<PathBuf> {
    let directory = app::demo_with_cluster(world.directory(), &[1000])?;
    let all = "        - podSelector: {}\n";
    let greeted = "        - podSelector: {matchLabels: {app: \"{{ .nuon.inputs.inputs.greeting }}\"}}\n";
    app::edit(&directory, "components/limits.toml", all, greeted)?;
    Ok(directory)
}

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

/// Deletes an object, as somebody who administers the cluster can.
pub(super) async fn delete(world: &World, install: &Install, [kind, name]: [&str; 2]) -> anyhow::Result<()> {
    let cluster = cluster(world, install).await?;
    cluster.kubectl(&["delete", kind, name, NAMESPACE]).await?.ended_with(0).map(drop)
}

/// Returns the cluster that the demo makes.
async fn cluster(world: &World, install: &Install) -> anyhow::Result<Cluster> {
    world.started_cluster(&install.account, "acme--globex--demo").await
}

/// Returns an object; null if it does not exist.
async fn object(cluster: &Cluster, [kind, name]: [&str; 2]) -> anyhow::Result<Value> {
    let words = ["get", kind, name, NAMESPACE, "--ignore-not-found", "--output=json"];
    let found = cluster.kubectl(&words).await?;
    found.ended_with(0)?;
    Ok(if found.out.trim().is_empty() { Value::Null } else { serde_json::from_str(&found.out)? })
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
