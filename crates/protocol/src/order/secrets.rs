//! Copies of the app's secrets in a Kubernetes cluster.

use serde::{Deserialize, Serialize};

use super::ClusterOf;

/// Copies secrets of the app into a cluster. Each becomes a Kubernetes secret with the key `value`. Earlier copies that
/// are not in the list are removed, unless `keeps_others` is true, because a later order removes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CopySecrets {
    #[serde(default)]
    pub cluster: ClusterOf,
    pub copies: Vec<SecretCopy>,
    /// Whether earlier copies that are not in the list stay, because components may still use them. A runner of an earlier
    /// release removes them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_others: bool,
}

/// One secret to copy, and the Kubernetes secret that the runner writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretCopy {
    /// The name of the secret in the order's `secrets`.
    pub secret: String,
    /// The namespace, as a template. The runner creates it when it does not exist.
    pub namespace: String,
    /// The name of the Kubernetes secret, as a template.
    pub name: String,
}
