//! Work in a Kubernetes cluster: Helm releases, manifests and jobs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Artifact;
use crate::ComponentName;

/// The part of the app that created the cluster of a job. The runner finds the cluster's name in the output
/// `cluster.name` or `cluster_name` of this part.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClusterOf {
    #[default]
    Sandbox,
    Component(ComponentName),
}

/// Installs or upgrades a Helm release. The outputs are `release`, `namespace`, `revision`, `chart` and `app_version`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstallChart {
    pub component: ComponentName,
    pub artifact: Artifact,
    #[serde(default)]
    pub cluster: ClusterOf,
    /// The name of the Helm release, as a template.
    pub release: String,
    /// The namespace of the Helm release, as a template. Helm creates it when it does not exist.
    pub namespace: String,
    /// The kind of object in which Helm stores the release: `secret` or `configmap`. Empty means `secret`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub storage_driver: String,
    /// Whether Helm may take over objects that another release owns, or that no release owns.
    #[serde(default)]
    pub take_ownership: bool,
    /// Values by path, in the notation of `helm --set`. Strings are templates. These values override `values_files`.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
    /// The contents of values files, in order. Each is a template. A later file overrides an earlier one.
    #[serde(default)]
    pub values_files: Vec<String>,
}

/// Applies the objects of a manifest. The outputs are `namespace` and `objects`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApplyManifest {
    pub component: ComponentName,
    pub artifact: Artifact,
    #[serde(default)]
    pub cluster: ClusterOf,
    /// The namespace of objects that do not name one, as a template. The runner creates it when it does not exist.
    pub namespace: String,
}

/// Runs a program to its end, as a Kubernetes Job in the namespace of the install. The outputs are `namespace`, `job`,
/// `image` and, when the program wrote one, `message`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunKubernetesJob {
    pub component: ComponentName,
    /// The image itself, or the settings of the job when another component provides the image.
    pub artifact: Artifact,
    #[serde(default)]
    pub cluster: ClusterOf,
    pub image: JobImage,
    /// The words of the program that replaces the image's entry point. They are templates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cmd: Vec<String>,
    /// The arguments of the program. They are templates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The environment of the program; values are templates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env_vars: BTreeMap<String, String>,
}

/// The image that a Kubernetes Job runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobImage {
    /// The artifact of the order.
    Artifact,
    /// An image that another component copied into the install registry. Both values are templates.
    Component { image_url: String, tag: String },
}
