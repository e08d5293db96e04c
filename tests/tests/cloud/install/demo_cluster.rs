//! The demo with its cluster: a chart and a manifest, and how scenarios look into the cluster and change objects there.

use std::path::PathBuf;

use freehold_tests::harness::{Cluster, Install, World, app};
use serde_json::Value;

/// The object of the chart whose value changes, and those of the manifest. The value of the first of them changes too.
pub(super) const GREETING: [&str; 2] = ["configmap", "greeter"];
pub(super) const POLICY: [&str; 2] = ["networkpolicy", "own-namespace-only"];
pub(super) const QUOTA: [&str; 2] = ["resourcequota", "demo"];
pub(super) const NAMESPACE: &str = "--namespace=demo";

/// Writes the demo with its cluster. A deploy with another greeting changes the chart and the manifest.
pub(super) fn app_with_cluster(world: &World) -> anyhow::Result<PathBuf> {
    let directory = app::demo_with_cluster(world.directory(), &[1000])?;
    let all = "        - podSelector: {}\n";
    let greeted = "        - podSelector: {matchLabels: {app: \"{{ .nuon.inputs.inputs.greeting }}\"}}\n";
    app::edit(&directory, "components/limits.toml", all, greeted)?;
    Ok(directory)
}

/// Returns the cluster that the demo makes.
pub(super) async fn cluster(world: &World, install: &Install) -> anyhow::Result<Cluster> {
    world.started_cluster(&install.account, "acme--globex--demo").await
}

/// Returns an object; null if it does not exist.
pub(super) async fn object(cluster: &Cluster, [kind, name]: [&str; 2]) -> anyhow::Result<Value> {
    let words = ["get", kind, name, NAMESPACE, "--ignore-not-found", "--output=json"];
    let found = cluster.kubectl(&words).await?;
    found.ended_with(0)?;
    Ok(if found.out.trim().is_empty() { Value::Null } else { serde_json::from_str(&found.out)? })
}

/// Changes an object, as somebody who administers the cluster can.
pub(super) async fn patch(cluster: &Cluster, [kind, name]: [&str; 2], patch: &Value) -> anyhow::Result<()> {
    let patch = format!("--patch={patch}");
    cluster.kubectl(&["patch", kind, name, NAMESPACE, "--type=merge", &patch]).await?.ended_with(0).map(drop)
}

/// Deletes an object, as somebody who administers the cluster can.
pub(super) async fn delete(cluster: &Cluster, [kind, name]: [&str; 2]) -> anyhow::Result<()> {
    cluster.kubectl(&["delete", kind, name, NAMESPACE]).await?.ended_with(0).map(drop)
}
