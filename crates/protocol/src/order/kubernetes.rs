//! What is done in a Kubernetes cluster.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Artifact;
use crate::ComponentName;

/// Whose outputs name the cluster that a job works in. The runner reads `cluster.name` or `cluster_name` there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClusterOf {
    #[default]
    Sandbox,
    Component(ComponentName),
}

/// Installs or upgrades a Helm release; its outputs are `release`, `namespace`, `revision`, `chart` and `app_version`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstallChart {
    pub component: ComponentName,
    pub artifact: Artifact,
    #[serde(default)]
    pub cluster: ClusterOf,
    /// The release's name; a template.
    pub release: String,
    /// The release's namespace, which is created when it is missing; a template.
    pub namespace: String,
    /// Where Helm keeps the release: `secret` or `configmap`; empty for `secret`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub storage_driver: String,
    /// Whether Helm may take over objects that belong to no release or to another one.
    #[serde(default)]
    pub take_ownership: bool,
    /// Values by their path, as `helm --set` reads them; strings are templates. They win over the files.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
    /// Contents of values files, in order; each a template. A later file wins.
    #[serde(default)]
    pub values_files: Vec<String>,
}

/// Applies the objects of a manifest; its outputs are `namespace` and `objects`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApplyManifest {
    pub component: ComponentName,
    pub artifact: Artifact,
    #[serde(default)]
    pub cluster: ClusterOf,
    /// The namespace of objects that name none, which is created when it is missing; a template.
    pub namespace: String,
}
